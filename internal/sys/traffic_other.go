//go:build !linux

package sys

// TrafficOf returns false: only Linux counts for each socket.
func TrafficOf(uintptr) (t Traffic, ok bool) { return Traffic{}, false }
