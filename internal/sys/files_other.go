//go:build !unix

package sys

// OpenFiles is how many descriptors the process may have open: there is no such
// limit.
func OpenFiles() (limit uint64, known bool) { return 0, false }

// RaiseOpenFiles has nothing to do.
func RaiseOpenFiles(uint64) error { return nil }
