package sys

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Acknowledge has the system acknowledge now what fd has received. Otherwise it waits up
// to 40 ms for output that could carry the acknowledgement. It does nothing if fd is not
// TCP, or everything is acknowledged.
func Acknowledge(fd int) {
	// An even number means this once: 1 would also have the next segments acknowledged
	// at once, though replies will follow.
	once := int32(2)
	syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, uintptr(unsafe.Pointer(&once)), unsafe.Sizeof(once), 0)
}
