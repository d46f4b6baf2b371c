package sys

import (
	"math"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/share"
)

// The calls in this file cannot block, so they need not tell the scheduler: they use
// RawSyscall where the wrappers of x/sys/unix use Syscall. For small messages that is
// 10 to 20% of a server's throughput, and the difference between an event loop and a
// goroutine per connection. A thread that blocks in a RawSyscall stops the process at
// the next garbage collection. So no other holder of a socket may be able to make a
// call block: the calls use MSG_DONTWAIT and do not rely on the socket's O_NONBLOCK.

// Recv reads from a socket. ok is false if there is no input yet.
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

// Send writes as many bytes of p as the socket takes. n is less than len(p) with a nil
// err if the socket is full. A closed peer gives EPIPE, never a signal.
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

// maxIovecs is the most buffers of one SendVec call.
const maxIovecs = 64

// SendVec is Send for several buffers. It may send only the first of them.
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

// Accept returns a new connection, non-blocking and close-on-exec, or -1 and a nil err
// if there is none. peer is zero unless it is IP. shared says that others hold the
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

// ConnectionFailed reports whether an error of accept(2) concerns the connection and
// not the listener.
func ConnectionFailed(e syscall.Errno) bool {
	switch e {
	case unix.ECONNABORTED, unix.EPROTO, unix.ENETDOWN, unix.ENOPROTOOPT,
		unix.EHOSTDOWN, unix.ENONET, unix.EHOSTUNREACH, unix.ENETUNREACH:
		return true
	}
	return false
}

// Peer returns the address of an IP socket's peer, or false if the socket is not
// connected, or no longer.
func Peer(fd int) (netip.AddrPort, bool) {
	var rsa unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	_, _, e := syscall.RawSyscall(unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&rsa)), uintptr(unsafe.Pointer(&size)))
	return rawAddrPort(&rsa), e == 0
}

// DescriptorLimit returns the number that a descriptor must be below.
func DescriptorLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

// local returns an IP socket's own address; false: it has none.
func local(fd int) (netip.AddrPort, bool) {
	var rsa unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	_, _, e := syscall.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&rsa)), uintptr(unsafe.Pointer(&size)))
	return rawAddrPort(&rsa), e == 0
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

// bigEndian decodes a port in the kernel's byte order.
func bigEndian(port uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&port))
	return uint16(b[0])<<8 | uint16(b[1])
}

// setInt sets an option of a socket.
func setInt(fd, level, option, value int) error {
	v := int32(value)
	if _, _, e := syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0); e != 0 {
		return e
	}
	return nil
}

func newSocket(domain int) (int, error) {
	return unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// quiet does nothing: sends have a flag against signals.
func quiet(int) error { return nil }

// A Waker wakes a poller from another goroutine. Watch its descriptor edge-triggered
// (EPOLLET), or call Drain after each event.
type Waker struct {
	fd int
	_  [share.Least - 8]byte
}

// NewWaker makes a Waker on an eventfd.
func NewWaker() (*Waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	return &Waker{fd: fd}, os.NewSyscallError("eventfd2", err)
}

// FD returns the descriptor that Wake makes readable.
func (w *Waker) FD() int { return w.fd }

// Wake makes the descriptor readable. Any goroutine may call it.
func (w *Waker) Wake() {
	one := uint64(1)
	// The only failure is EAGAIN after 2^64-2 wakes; then the descriptor is readable.
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(w.fd), uintptr(unsafe.Pointer(&one)), 8)
}

// Drain makes the descriptor unreadable.
func (w *Waker) Drain() {
	var b [8]byte
	syscall.RawSyscall(unix.SYS_READ, uintptr(w.fd), uintptr(unsafe.Pointer(&b)), 8)
}

// Close closes the Waker. Do not call Wake afterwards.
func (w *Waker) Close() { unix.Close(w.fd) }
