//go:build linux

package goev

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// An Acceptor listens, and makes a handler for each connection.
type Acceptor struct {
	IOHandle

	reactor *Reactor
	make    func() EvHandler
	times   int // accepts in a row
}

// NewAcceptor listens on addr, which is 192.168.0.1:8080, :8080 or
// unix:/tmp/x.sock, with a poller of the Reactor. For each connection it calls
// newEvHandler and then the handler's OnOpen, which adds the handler to a
// Reactor, this one or another.
func NewAcceptor(r *Reactor, addr string, newEvHandler func() EvHandler, opts ...Option) (*Acceptor, error) {
	o := optionsOf(opts)
	a := &Acceptor{reactor: r, make: newEvHandler, times: max(1, o.backlog/2)}
	fd, err := listen(addr, o)
	if err != nil {
		return nil, fmt.Errorf("goev: listen on %s: %w", addr, err)
	}
	if err := r.AddEvHandler(a, fd, EvAccept); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return a, nil
}

// listen makes a listening socket.
func listen(addr string, o *options) (fd int, err error) {
	sa, family, err := parse(addr)
	if err != nil {
		return 0, err
	}
	if u, ok := sa.(*unix.SockaddrUnix); ok {
		os.RemoveAll(u.Name)
	}
	if fd, err = socket(family, o.recvBuffer); err != nil {
		return 0, err
	}
	if o.reuseAddr && family == unix.AF_INET {
		err = os.NewSyscallError("setsockopt SO_REUSEADDR", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	}
	if o.reusePort && family == unix.AF_INET && err == nil {
		err = os.NewSyscallError("setsockopt SO_REUSEPORT", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	}
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, sa))
	}
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(fd, o.backlog))
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, err
}

// socket makes a socket that does not block. recvBuffer is its SO_RCVBUF if it is not 0.
func socket(family, recvBuffer int) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	if recvBuffer > 0 && family == unix.AF_INET {
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, recvBuffer); err != nil {
			unix.Close(fd)
			return 0, os.NewSyscallError("setsockopt SO_RCVBUF", err)
		}
	}
	return fd, nil
}

// OnRead accepts.
func (a *Acceptor) OnRead() bool {
	for range a.times {
		fd, err := a.accept()
		switch err {
		case nil:
			h := a.make()
			h.setFd(fd)
			if !h.OnOpen() {
				h.OnClose()
			}
		case unix.EINTR, unix.ECONNABORTED:
		case unix.EAGAIN, unix.EBADF: // no more, or Destroy
			return true
		default: // such as EMFILE: try again a little later
			if a.ScheduleTimer(a, 100, 0) == nil {
				a.entry.Load().change(0, unix.EPOLLIN)
			}
			return true
		}
	}
	return true
}

func (a *Acceptor) accept() (fd int, err error) {
	a.mu.Lock() // Destroy, on another goroutine, must not give the number away now
	defer a.mu.Unlock()
	fd, _, err = unix.Accept4(a.Fd(), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	return fd, err
}

// OnTimeout accepts again.
func (a *Acceptor) OnTimeout(millisecond int64) bool {
	a.entry.Load().change(EvAccept, 0)
	return false
}

// OnClose closes the socket.
func (a *Acceptor) OnClose() { a.Destroy(a) }
