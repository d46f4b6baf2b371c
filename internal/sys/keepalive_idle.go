//go:build unix && !darwin && !openbsd

package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// setKeepAliveIdle sets the idle time before the first probe, and the time between
// probes, as package net does.
func setKeepAliveIdle(fd, seconds int) error {
	if err := setInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds); err != nil {
		return os.NewSyscallError("setsockopt TCP_KEEPIDLE", err)
	}
	return os.NewSyscallError("setsockopt TCP_KEEPINTVL", setInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds))
}

// keepAliveOptions are the options of TCP keep-alive probes.
var keepAliveOptions = []option{
	{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
	{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
	{unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
}
