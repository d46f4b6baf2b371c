package sys

import (
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls cannot block, so they need not tell the scheduler: RawSyscall
// where the wrappers of x/sys/unix use Syscall. At small messages that is 10 to
// 20% of a server's throughput, and the difference between an event loop and a
// goroutine per connection. A thread that blocks in a RawSyscall stops the process
// at the next garbage collection, so it must not depend on what others may change:
// MSG_DONTWAIT, and not the socket's O_NONBLOCK, keeps a call from blocking.

// Recv reads from a socket. ok is false if there was nothing yet.
func Recv(fd int, p []byte) (n int, ok bool, err error) {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			return int(r), true, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, false, nil
		default:
			return 0, true, os.NewSyscallError("recvfrom", e)
		}
	}
}

// Send writes what a socket takes of p. n is less than len(p) with a nil err
// if the socket is full; a closed peer is EPIPE, never a signal.
func Send(fd int, p []byte) (n int, err error) {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, os.NewSyscallError("sendto", e)
		}
	}
}

// maxIovecs bounds what one SendVec passes on; the rest goes with the next.
const maxIovecs = 64

// SendVec is Send of several buffers.
func SendVec(fd int, bufs [][]byte) (n int, err error) {
	var iov [maxIovecs]unix.Iovec
	k := 0
	for _, b := range bufs {
		if len(b) == 0 {
			continue
		}
		if k == len(iov) {
			break
		}
		iov[k].Base = unsafe.SliceData(b)
		iov[k].SetLen(len(b))
		k++
	}
	if k == 0 {
		return 0, nil
	}
	msg := unix.Msghdr{Iov: &iov[0]}
	msg.SetIovlen(k)
	for {
		r, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return 0, os.NewSyscallError("sendmsg", e)
		}
	}
}

// Accept takes a connection, non-blocking and close-on-exec; -1 and a nil err:
// there is none. peer is zero unless it is IP. shared says that others hold the
// listener too: they may make it blocking, and accept4 has no flag against that.
func Accept(fd int, shared bool) (conn int, peer netip.AddrPort, err error) {
	for {
		var rsa unix.RawSockaddrAny
		size := uint32(unix.SizeofSockaddrAny)
		r, e := uintptr(0), syscall.Errno(0)
		if shared {
			keepNonblocking(fd)
			r, _, e = syscall.Syscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&rsa)), uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		} else {
			r, _, e = syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&rsa)), uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		}
		switch e {
		case 0:
			return int(r), rawAddrPort(&rsa), nil
		case unix.EAGAIN:
			return -1, peer, nil
		case unix.EINTR:
		default:
			if !ConnectionFailed(e) {
				return -1, peer, os.NewSyscallError("accept4", e)
			}
		}
	}
}

// ConnectionFailed tells errors of accept(2) that are the connection's, not the
// listener's.
func ConnectionFailed(e syscall.Errno) bool {
	switch e {
	case unix.ECONNABORTED, unix.EPROTO, unix.ENETDOWN, unix.ENOPROTOOPT,
		unix.EHOSTDOWN, unix.ENONET, unix.EHOSTUNREACH, unix.ENETUNREACH:
		return true
	}
	return false
}

// Peer is the address of the peer that an IP socket is connected to; false if it
// is not, any more.
func Peer(fd int) (netip.AddrPort, bool) {
	var rsa unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	_, _, e := syscall.RawSyscall(unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&rsa)), uintptr(unsafe.Pointer(&size)))
	return rawAddrPort(&rsa), e == 0
}

// WithinLimit reports whether the process may have descriptors with a number as
// high as fd's.
func WithinLimit(fd int) bool {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return err != nil || uint64(fd) < limit.Cur
}

func rawAddrPort(rsa *unix.RawSockaddrAny) netip.AddrPort {
	switch rsa.Addr.Family {
	case unix.AF_INET:
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(rsa))
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), bigEndian(sa.Port))
	case unix.AF_INET6:
		sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(rsa))
		return addrPort(&unix.SockaddrInet6{Port: int(bigEndian(sa.Port)), Addr: sa.Addr, ZoneId: sa.Scope_id})
	}
	return netip.AddrPort{}
}

// bigEndian reads a port as the kernel wrote it.
func bigEndian(port uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&port))
	return uint16(b[0])<<8 | uint16(b[1])
}

func newSocket(domain int) (int, error) {
	return unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// quiet is for systems whose sends cannot ask for EPIPE without a signal.
func quiet(int) error { return nil }

// A Waker makes a poller return from another goroutine. Its descriptor is
// watched edge-triggered (EPOLLET), or emptied by Drain.
type Waker struct{ fd int }

// NewWaker makes a Waker of an eventfd.
func NewWaker() (*Waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	return &Waker{fd}, os.NewSyscallError("eventfd2", err)
}

// FD is the descriptor that becomes readable.
func (w *Waker) FD() int { return w.fd }

// Wake makes it readable. Any goroutine may call it.
func (w *Waker) Wake() {
	one := uint64(1)
	// The only failure is EAGAIN at 2^64-2 wakes not taken: it is readable then.
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(w.fd), uintptr(unsafe.Pointer(&one)), 8)
}

// Drain makes it unreadable.
func (w *Waker) Drain() {
	var b [8]byte
	syscall.RawSyscall(unix.SYS_READ, uintptr(w.fd), uintptr(unsafe.Pointer(&b)), 8)
}

// Close closes it. No Wake may follow.
func (w *Waker) Close() { unix.Close(w.fd) }
