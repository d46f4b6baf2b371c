//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

// MapsMemory reports whether MapMemory works on this system.
const MapsMemory = true

// MapMemory maps n bytes of zeros outside Go's heap. The system adds a page when it is
// first touched. The memory is never moved or collected: it stays until UnmapMemory.
func MapMemory(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		noHugePages(m)
	}
	return m, err
}

// UnmapMemory gives back all of what MapMemory or GrowMemory returned.
func UnmapMemory(m []byte) error { return unix.Munmap(m) }
