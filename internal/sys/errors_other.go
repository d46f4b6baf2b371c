//go:build !windows

package sys

// Portable makes errors.Is recognize a socket's error by its portable name. The
// systems' errors here do so already.
func Portable(err error) error { return err }
