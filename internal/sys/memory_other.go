//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package sys

import "errors"

const (
	// MapsMemory reports whether MapMemory works on this system.
	MapsMemory = false
	// DropZeroes reports whether memory reads as zero after DropMemory.
	DropZeroes = false
)

// MapMemory returns an error: use Go's heap.
func MapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

// UnmapMemory returns an error.
func UnmapMemory([]byte) error { return errors.ErrUnsupported }

// DropMemory returns false.
func DropMemory([]byte) bool { return false }

// GrowMemory returns false.
func GrowMemory([]byte, int) (grown []byte, ok bool) { return nil, false }
