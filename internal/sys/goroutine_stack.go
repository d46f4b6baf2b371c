//go:build !386 && !amd64 && !arm && !arm64

package sys

func goroutine() uintptr { return goroutineID() }
