package backendtest

import (
	"errors"
	"runtime"
	"syscall"
)

// The errors that systems return in a situation. Any of them is right.
var (
	refused = []error{syscall.ECONNREFUSED}
	// A connection that the peer reset.
	reset = []error{syscall.ECONNRESET}
	// Sending to a peer that is gone.
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
