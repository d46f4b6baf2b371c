//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

// DropZeroes reports whether memory reads as zero after DropMemory.
const DropZeroes = false

// DropMemory gives the pages of mapped memory back to the system. The addresses stay
// valid. It reports whether the system has taken the pages.
func DropMemory(m []byte) bool { return unix.Madvise(m, unix.MADV_FREE) == nil }

func noHugePages([]byte) {}

// GrowMemory makes mapped memory n bytes long, and may move it, without a copy. m is
// invalid if ok is true, and unchanged otherwise.
func GrowMemory([]byte, int) (grown []byte, ok bool) { return nil, false }
