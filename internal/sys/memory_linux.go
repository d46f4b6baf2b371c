package sys

import "golang.org/x/sys/unix"

// DropZeroes reports whether memory reads as zero after DropMemory.
const DropZeroes = true

// DropMemory gives the pages of mapped memory back to the system. The addresses stay
// valid. It reports whether the system has taken the pages.
func DropMemory(m []byte) bool { return unix.Madvise(m, unix.MADV_DONTNEED) == nil }

// noHugePages keeps the system from backing m with huge pages: to clear one takes a
// millisecond, and one page in use would hold 2 MiB.
func noHugePages(m []byte) { _ = unix.Madvise(m, unix.MADV_NOHUGEPAGE) }

// GrowMemory makes mapped memory n bytes long, and may move it, without a copy. m is
// invalid if ok is true, and unchanged otherwise.
func GrowMemory(m []byte, n int) (grown []byte, ok bool) {
	grown, err := unix.Mremap(m, n, unix.MREMAP_MAYMOVE)
	return grown, err == nil
}
