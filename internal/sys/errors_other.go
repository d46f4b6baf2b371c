//go:build !windows

package sys

// Portable makes a socket's error answer to the name that it has everywhere, as
// the system's own errors do here.
func Portable(err error) error { return err }
