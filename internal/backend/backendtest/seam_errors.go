package backendtest

import (
	"errors"
	"runtime"
	"syscall"
)

// What errors a system gives in a situation; any of them will do.
var (
	refused = []error{syscall.ECONNREFUSED}
	// A connection that its peer reset.
	reset = []error{syscall.ECONNRESET}
	// Sending to who is not there any more.
	broken = []error{syscall.EPIPE, syscall.ECONNRESET}
)

func init() {
	if runtime.GOOS == "windows" {
		broken = append(broken, syscall.ECONNABORTED)
	}
}

func isErr(err error, want []error) bool {
	for _, e := range want {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
