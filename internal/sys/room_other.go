//go:build unix && !linux

package sys

// Room does nothing: it is needed on Linux only.
func Room(int) {}
