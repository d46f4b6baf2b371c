package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

func setKeepAliveIdle(fd, seconds int) error {
	return os.NewSyscallError("setsockopt TCP_KEEPALIVE", unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPALIVE, seconds))
}

// keepAliveOptions are the options of TCP keep-alive probes.
var keepAliveOptions = []option{
	{unix.IPPROTO_TCP, unix.TCP_KEEPALIVE},
	{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
	{unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
}
