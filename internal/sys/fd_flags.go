//go:build dragonfly || freebsd || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

// noSignal makes a send to a closed peer return EPIPE without a signal.
const noSignal = unix.MSG_NOSIGNAL

// quiet does nothing: noSignal exists.
func quiet(int) error { return nil }

func newSocket(domain int) (int, error) {
	return unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

func newPipe() (r, w int, err error) {
	var p [2]int
	err = unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC)
	return p[0], p[1], err
}
