//go:build unix

package sys

import "golang.org/x/sys/unix"

// cut tells whether a datagram was longer than the memory for it, and the error
// that is left then.
func cut(flags int, err error) (bool, error) { return flags&unix.MSG_TRUNC != 0, err }
