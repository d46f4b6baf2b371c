//go:build dragonfly || freebsd

package sys

import "golang.org/x/sys/unix"

func accept(fd int) (int, unix.Sockaddr, error) {
	return unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
}
