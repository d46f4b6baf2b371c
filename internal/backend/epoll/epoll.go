//go:build linux

// Package epoll implements the Poller for Linux's epoll(7).
package epoll

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
	"github.com/rondo-go/rondo/internal/sys"
)

// batch is the most events that one epoll_wait returns. Further events come in the next
// turn.
const batch = readiness.Batch

type poller struct {
	fd     int
	coarse bool // the system has no epoll_pwait2
	events [batch]unix.EpollEvent
	parking
	door
}

// New returns a backend on epoll.
func New() (backend.Backend, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	return readiness.NewEdge(p), nil
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	w, err := sys.NewWaker()
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	p := &poller{fd: fd, door: door{waker: w}}
	// Edge-triggered: every write to the eventfd is an event, so nobody reads from it.
	if err := p.control(unix.EPOLL_CTL_ADD, w.FD(), 0, unix.EPOLLIN|unix.EPOLLET); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *poller) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	op := unix.EPOLL_CTL_MOD
	switch {
	case now == 0:
		op = unix.EPOLL_CTL_DEL
	case old == 0:
		op = unix.EPOLL_CTL_ADD
	}
	var mask uint32
	if now&readiness.In != 0 {
		mask |= unix.EPOLLIN
	}
	if now&readiness.Out != 0 {
		mask |= unix.EPOLLOUT
	}
	if now&readiness.Edge != 0 {
		mask |= unix.EPOLLET | unix.EPOLLRDHUP | unix.EPOLLPRI
	}
	return p.control(op, fd, f, mask)
}

// Forget removes the registration where closing fd may not do it in time. If there are other
// holders, it would stay until the last one closes the file. And since the first Park, threads of
// Go's runtime look at registered files too. A thread that looks holds the file, so the close is
// not the last. The kernel then ends the stream when that thread returns to user mode, but the
// thread may sleep first, for as long as nothing happens.
func (p *poller) Forget(fd int, f backend.File, alone bool) {
	if !alone || p.file != nil {
		_ = p.control(unix.EPOLL_CTL_DEL, fd, f, 0)
	}
}

func (p *poller) control(op, fd int, f backend.File, mask uint32) error {
	ev := unix.EpollEvent{Events: mask, Fd: int32(f.Slot()), Pad: int32(f.Generation())}
	_, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.fd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
	if e != 0 {
		return os.NewSyscallError("epoll_ctl", e)
	}
	return nil
}

func (p *poller) Wait(timeout time.Duration) (n int, err error) {
	var e syscall.Errno
	switch {
	case timeout == 0:
		n, e = p.look()
	case timeout > 0 && !p.coarse:
		if n, e = p.sleep(timeout); e == unix.ENOSYS || e == unix.EPERM {
			p.coarse = true // Linux before 5.11, or a seccomp filter that does not know the call
			return 0, nil
		}
	default:
		n, e = p.sleepCoarse(timeout)
	}
	if e == unix.EINTR {
		return 0, nil
	}
	if e != 0 {
		return 0, os.NewSyscallError("epoll_wait", e)
	}
	return n, nil
}

// look polls without blocking, so it uses RawSyscall and does not tell Go's scheduler.
func (p *poller) look() (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), batch, 0, 0, 0)
	return int(n), e
}

// sleep waits with the precision of the system's timers.
func (p *poller) sleep(timeout time.Duration) (int, syscall.Errno) {
	t := struct{ sec, nsec int64 }{int64(timeout / time.Second), int64(timeout % time.Second)}
	n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), batch, uintptr(unsafe.Pointer(&t)), 0, 0)
	return int(n), e
}

// sleepCoarse rounds the timeout up to milliseconds. A negative timeout waits for ever.
func (p *poller) sleepCoarse(timeout time.Duration) (int, syscall.Errno) {
	ms := -1
	if timeout > 0 {
		ms = int((min(timeout, time.Hour) + time.Millisecond - 1) / time.Millisecond)
	}
	n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), batch, uintptr(ms), 0, 0)
	return int(n), e
}

func (p *poller) Event(i int) (backend.File, readiness.Interest) {
	ev := &p.events[i]
	var ready readiness.Interest
	if ev.Events&(unix.EPOLLRDHUP|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		ready = readiness.Hup
	}
	if ev.Events&unix.EPOLLPRI != 0 {
		ready |= readiness.Mark
	}
	if ev.Events&(unix.EPOLLIN|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		ready |= readiness.In
	}
	if ev.Events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		ready |= readiness.Out
	}
	return backend.MakeFile(uint32(ev.Fd), uint32(ev.Pad)), ready
}

func (p *poller) Wake() {
	if !p.unpark() {
		p.waker.Wake()
	}
}

func (p *poller) Close() error {
	p.waker.Close()
	if p.file != nil {
		return p.file.Close() // which closes fd
	}
	return os.NewSyscallError("close", unix.Close(p.fd))
}
