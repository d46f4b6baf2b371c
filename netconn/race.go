package netconn

import (
	"os"
	"sync"

	"github.com/rondo-go/rondo/internal/sys"
)

// A Write happens before the Read that gets its bytes, also by another connection of the
// process: package syscall tells the race detector so of every write and read, and programs
// rely on it whose parties talk to each other by package net. In race builds beforeWrite
// and afterRead tell it likewise, of a file of no consequence.

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
