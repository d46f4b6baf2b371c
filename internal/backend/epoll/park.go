//go:build linux

package epoll

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parking is the state of a poller that parks its goroutine instead of blocking its
// thread. It registers the epoll descriptor with Go's runtime. While the goroutine
// sleeps, its thread runs other goroutines; a thread blocked in epoll_wait(2) keeps
// them waiting for at least 20 µs. And Go's scheduler wakes a goroutine without the
// system call and the thread switch that a blocked thread needs.
//
// The registration happens at the first Park. From then on the runtime sees every
// event, which would be a waste for a loop that never parks.
type parking struct {
	file *os.File        // of the epoll descriptor; nil before the first Park
	raw  syscall.RawConn // of file; nil also if the runtime refused it
	try  func(uintptr) bool

	parked atomic.Bool // parked, about to park, or just unparked
	woken  atomic.Bool
	timed  bool // file has a deadline, maybe a past one

	looks int // calls of try
	found int // events that the last call found
	errno syscall.Errno
}

// past is a deadline that wakes the goroutine at once.
var past = time.Unix(1, 0)

// Park is like Wait for a timeout other than 0. It polls before it sleeps; slept
// reports whether it slept.
func (p *poller) Park(timeout time.Duration) (n int, slept bool, err error) {
	if p.file == nil {
		p.register()
	}
	if p.raw == nil {
		n, err = p.Wait(timeout)
		return n, true, err
	}
	p.parked.Store(true)
	if timeout > 0 || p.timed {
		var deadline time.Time
		if p.timed = timeout > 0; p.timed {
			deadline = time.Now().Add(timeout)
		}
		p.file.SetReadDeadline(deadline)
	}
	p.looks, p.found, p.errno = 0, 0, 0
	// A Wake before SetReadDeadline shows in woken; a later one sets a past deadline,
	// which ends Read.
	if p.woken.Load() || p.raw.Read(p.try) != nil {
		p.timed = true // a Wake may still set its deadline
		p.woken.Store(false)
	}
	p.parked.Store(false)
	slept = p.looks > 1 || p.looks == 1 && p.found == 0
	if p.looks == 0 {
		// A Wake or a passed deadline must not hide the events at hand: either may
		// happen in each turn.
		p.found, p.errno = p.look()
	}
	if p.errno != 0 {
		return 0, false, os.NewSyscallError("epoll_wait", p.errno)
	}
	return p.found, slept, nil
}

// unpark wakes a parked goroutine. It returns false if none is parked.
func (p *poller) unpark() bool {
	if !p.parked.Load() {
		return false
	}
	p.woken.Store(true)
	p.file.SetReadDeadline(past)
	return true
}

// register makes Go's runtime watch the epoll descriptor.
func (p *poller) register() {
	unix.SetNonblock(p.fd, true) // the runtime requires it; nothing reads from an epoll descriptor
	p.file = os.NewFile(uintptr(p.fd), "epoll")
	if p.file.SetReadDeadline(time.Time{}) != nil {
		return
	}
	p.raw, _ = p.file.SyscallConn()
	p.try = func(uintptr) bool {
		p.looks++
		p.found, p.errno = p.look()
		return p.found != 0 || p.errno != 0
	}
}
