package sys

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TrafficOf returns what a TCP socket has carried. ok is false for other sockets.
func TrafficOf(fd uintptr) (t Traffic, ok bool) {
	var info unix.TCPInfo // on the stack: this is called for thousands of sockets
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 || uintptr(size) < unsafe.Offsetof(info.Bytes_received)+unsafe.Sizeof(info.Bytes_received) {
		return Traffic{}, false
	}
	return Traffic{
		In: info.Bytes_received, Out: info.Bytes_acked,
		Idle: time.Duration(min(info.Last_data_recv, info.Last_data_sent)) * time.Millisecond,
	}, true
}
