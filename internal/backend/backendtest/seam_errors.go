package backendtest

import (
	"errors"
	"runtime"
	"syscall"
)

// What errors a system gives in a situation; any of them will do.
var (
	refused = errnos(10061, syscall.ECONNREFUSED)
	// A connection that its peer reset.
	reset = errnos(10054, syscall.ECONNRESET)
	// Sending to who is not there any more.
	broken = append(errnos(10053, syscall.EPIPE), reset...)
)

// errnos is e, or on Windows, whose syscall.Exxx are not what its sockets
// return, the WSA error.
func errnos(wsa syscall.Errno, e syscall.Errno) []syscall.Errno {
	if runtime.GOOS == "windows" {
		return []syscall.Errno{wsa}
	}
	return []syscall.Errno{e}
}

func isErr(err error, want []syscall.Errno) bool {
	for _, e := range want {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
