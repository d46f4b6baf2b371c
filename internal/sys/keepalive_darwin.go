package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

func setKeepAliveIdle(fd, seconds int) error {
	return os.NewSyscallError("setsockopt TCP_KEEPALIVE", unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPALIVE, seconds))
}
