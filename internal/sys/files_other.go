//go:build !unix

package sys

// OpenFiles returns the limit of open descriptors. There is none here.
func OpenFiles() (limit uint64, known bool) { return 0, false }

// RaiseOpenFiles does nothing.
func RaiseOpenFiles(uint64) error { return nil }
