package sys

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Pipe carries bytes from one socket to another, without a copy. The sockets must not be
// in blocking mode: splice(2) has no flag against that.
type Pipe struct{ r, w int }

const (
	// pipeSlots is how many pieces a Pipe holds. The kernel's default of 16 is 64 KiB of full
	// pages; segments from a network fill their pages in part.
	pipeSlots = 64
	// leastSlots is how many must be there. If a user has many pipes, the kernel gives new ones
	// two: then copying costs less.
	leastSlots = 16
)

// NewPipe makes a Pipe.
func NewPipe() (*Pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	p := &Pipe{fds[0], fds[1]}
	size, err := unix.FcntlInt(uintptr(p.w), unix.F_SETPIPE_SZ, pipeSlots*os.Getpagesize())
	if err != nil {
		size, err = unix.FcntlInt(uintptr(p.w), unix.F_GETPIPE_SZ, 0)
	}
	if err == nil && size < leastSlots*os.Getpagesize() {
		err = unix.ENOBUFS
	}
	if err != nil {
		p.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	return p, nil
}

// Fill receives at most n bytes from a socket. It returns 0, nil if Recv must be asked: there
// is no input, the stream has ended, or the system cannot splice from such a socket.
func (p *Pipe) Fill(fd, n int) (int, error) { return splice(fd, p.w, n) }

// Send sends at most n of the bytes. It returns 0, nil if the socket is full, or if the
// system cannot splice to such a socket.
func (p *Pipe) Send(fd, n int) (int, error) { return splice(p.r, fd, n) }

// Read takes bytes from the Pipe.
func (p *Pipe) Read(b []byte) int {
	r, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(p.r), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if e != 0 {
		return 0
	}
	return int(r)
}

// Close closes the Pipe.
func (p *Pipe) Close() {
	unix.Close(p.r)
	unix.Close(p.w)
}

// splice moves at most n bytes between a pipe and a socket that does not block.
func splice(from, to, n int) (int, error) {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n), unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR:
		case unix.EAGAIN, unix.EINVAL, unix.EOPNOTSUPP, unix.ENOSYS, unix.EPERM:
			return 0, nil
		default:
			return 0, os.NewSyscallError("splice", e)
		}
	}
}
