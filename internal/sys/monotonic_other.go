//go:build !linux

package sys

// Monotonic returns 0: only systemd, which is of Linux, wants it.
func Monotonic() int64 { return 0 }
