package sys

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Acknowledge makes the system acknowledge fd's received bytes now. Otherwise the
// system waits up to 40 ms for output that could carry the acknowledgement. Acknowledge
// does nothing if fd is not TCP or everything is acknowledged.
func Acknowledge(fd int) {
	// An even number means once. With 1 the next segments would be acknowledged at once
	// too, although replies will follow.
	once := int32(2)
	syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, uintptr(unsafe.Pointer(&once)), unsafe.Sizeof(once), 0)
}
