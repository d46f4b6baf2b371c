package sys

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// SetKeepAlive makes TCP probe the peer after d without input, and then every d.
func SetKeepAlive(fd uintptr, d time.Duration) error {
	ms := uint32((d + time.Millisecond - 1) / time.Millisecond)
	k := syscall.TCPKeepalive{OnOff: 1, Time: ms, Interval: ms}
	var n uint32
	err := syscall.WSAIoctl(syscall.Handle(fd), syscall.SIO_KEEPALIVE_VALS,
		(*byte)(unsafe.Pointer(&k)), uint32(unsafe.Sizeof(k)), nil, 0, &n, nil, 0)
	return os.NewSyscallError("wsaioctl SIO_KEEPALIVE_VALS", err)
}
