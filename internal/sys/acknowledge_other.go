//go:build !linux

package sys

// Acknowledge does nothing: only Linux has such a call.
func Acknowledge(int) {}
