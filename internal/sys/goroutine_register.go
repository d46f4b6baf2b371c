//go:build 386 || amd64 || arm || arm64

package sys

// goroutine returns the address of the runtime's record of the calling goroutine. Go's
// assembler knows its location.
func goroutine() uintptr
