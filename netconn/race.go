package netconn

import (
	"os"
	"sync"

	"github.com/rondo-go/rondo/internal/sys"
)

// A Write happens before the Read that gets its bytes, even if the Read is another
// connection's in the same process. Package syscall reports this to the race detector at
// every write and read, and programs whose goroutines communicate through package net rely
// on it. In race builds beforeWrite and afterRead do the same, with a write to and
// a read from the null device.

var null = sync.OnceValue(func() *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	return f
})

func beforeWrite() {
	if sys.Race {
		null().Write([]byte{0})
	}
}

func afterRead() {
	if sys.Race {
		null().Read([]byte{0})
	}
}
