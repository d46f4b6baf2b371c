//go:build unix && !linux

package sys

import (
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/share"
)

// Recv reads from a socket. ok is false if there is no input yet. Recv and Send do not
// block even if another holder of the socket has made it blocking.
func Recv(fd int, p []byte) (n int, ok bool, err error) {
	for {
		switch n, _, err = unix.Recvfrom(fd, p, unix.MSG_DONTWAIT); err {
		case nil:
			return n, true, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, false, nil
		default:
			return 0, true, os.NewSyscallError("recvfrom", err)
		}
	}
}

// Send writes as many bytes of p as the socket takes. n is less than len(p) with a nil
// err if the socket is full. A closed peer gives EPIPE, never a signal: see quiet.
func Send(fd int, p []byte) (n int, err error) {
	for {
		switch n, err = unix.SendmsgN(fd, p, nil, nil, noSignal|unix.MSG_DONTWAIT); err {
		case nil:
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, os.NewSyscallError("sendmsg", err)
		}
	}
}

// SendVec is Send for several buffers, one after the other: x/sys/unix has no such call
// for all of these systems.
func SendVec(fd int, bufs [][]byte) (n int, err error) {
	for _, b := range bufs {
		k, err := Send(fd, b)
		n += k
		if err != nil || k < len(b) {
			return n, err
		}
	}
	return n, nil
}

// Accept returns a new connection, non-blocking and close-on-exec, or -1 and a nil err
// if there is none. peer is zero unless it is IP. shared says that others hold the
// listener too: they may make it blocking.
func Accept(fd int, shared bool) (conn int, peer netip.AddrPort, err error) {
	for {
		if shared {
			keepNonblocking(fd)
		}
		conn, sa, err := accept(fd)
		switch err {
		case nil:
			return conn, addrPort(sa), nil
		case unix.EAGAIN:
			return -1, peer, nil
		case unix.EINTR, unix.ECONNABORTED, unix.EPROTO:
			// accept(2): errors of the connection, not of the listener.
		default:
			return -1, peer, os.NewSyscallError("accept", err)
		}
	}
}

func connect(fd int, to net.Addr) error {
	sa, _, err := sockaddr(to)
	if err != nil {
		return err
	}
	return unix.Connect(fd, sa)
}

func setInt(fd, level, option, value int) error { return unix.SetsockoptInt(fd, level, option, value) }

// Peer returns the address of an IP socket's peer, or false if the socket is not
// connected, or no longer.
func Peer(fd int) (netip.AddrPort, bool) {
	sa, err := unix.Getpeername(fd)
	return addrPort(sa), err == nil
}

// local returns an IP socket's own address; false: it has none.
func local(fd int) (netip.AddrPort, bool) {
	sa, err := unix.Getsockname(fd)
	return addrPort(sa), err == nil
}

// ShutdownWrite closes fd's sending direction.
func ShutdownWrite(fd int) error {
	return os.NewSyscallError("shutdown", unix.Shutdown(fd, unix.SHUT_WR))
}

// CloseReset closes fd so that a TCP peer sees a reset.
func CloseReset(fd int) error {
	// This fails if fd is not TCP, which has no reset; then Close is a plain close.
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	return Close(fd)
}

// Close closes fd.
func Close(fd int) error { return os.NewSyscallError("close", unix.Close(fd)) }

// A Waker wakes a poller from another goroutine. Call Drain after each event of its
// descriptor.
type Waker struct {
	r, w int
	_    [share.Least - 16]byte
}

// NewWaker makes a Waker on a pipe.
func NewWaker() (*Waker, error) {
	r, w, err := newPipe()
	return &Waker{r: r, w: w}, os.NewSyscallError("pipe", err)
}

// FD returns the descriptor that Wake makes readable.
func (w *Waker) FD() int { return w.r }

// Wake makes the descriptor readable. Any goroutine may call it.
func (w *Waker) Wake() { unix.Write(w.w, []byte{1}) }

// Drain makes the descriptor unreadable.
func (w *Waker) Drain() {
	var b [64]byte
	for {
		if n, err := unix.Read(w.r, b[:]); n < len(b) || err != nil {
			return
		}
	}
}

// Close closes the Waker. Do not call Wake afterwards.
func (w *Waker) Close() {
	unix.Close(w.r)
	unix.Close(w.w)
}
