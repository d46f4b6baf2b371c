//go:build unix

package sys

import "golang.org/x/sys/unix"

// cut reports whether a datagram was truncated, and returns the remaining error.
func cut(flags int, err error) (bool, error) { return flags&unix.MSG_TRUNC != 0, err }
