//go:build linux

package epoll

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parking is what a poller has that waits as goroutines do: an epoll is itself
// something that can be polled, and here Go's runtime does so. While the goroutine
// sleeps its thread runs others, which a thread blocked in epoll_wait(2) keeps from
// running for 20 µs at least; and to wake it is a matter of Go's scheduler, where a
// thread takes a system call and a switch of threads.
//
// It is set up at the first Park: from then on the runtime hears of every event,
// which is of no use to a loop that never parks.
type parking struct {
	file *os.File        // of the epoll; nil: there was no Park yet
	raw  syscall.RawConn // file's; nil also if the runtime refused it
	try  func(uintptr) bool

	parked atomic.Bool // or about to, or was a moment ago
	woken  atomic.Bool
	timed  bool // file has a deadline, perhaps one that is past

	looks int // by try
	found int // by the last
	errno syscall.Errno
}

// past is a deadline that wakes at once.
var past = time.Unix(1, 0)

// Park is Wait for a timeout that is not 0. It looks before it sleeps, and reports
// whether it slept.
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
	// A Wake before the deadline was set is seen here; one after it finds that in
	// effect.
	if p.woken.Load() || p.raw.Read(p.try) != nil {
		p.timed = true // by time or by Wake, whose deadline may yet come
		p.woken.Store(false)
	}
	p.parked.Store(false)
	slept = p.looks > 1 || p.looks == 1 && p.found == 0
	if p.looks == 0 {
		// A Wake or a time that has passed already must not keep the loop from its
		// events: there may be one in each turn.
		p.found, p.errno = p.look()
	}
	if p.errno != 0 {
		return 0, false, os.NewSyscallError("epoll_wait", p.errno)
	}
	return p.found, slept, nil
}

// unpark wakes a parked goroutine; false: none is.
func (p *poller) unpark() bool {
	if !p.parked.Load() {
		return false
	}
	p.woken.Store(true)
	p.file.SetReadDeadline(past)
	return true
}

// register makes the runtime watch the epoll.
func (p *poller) register() {
	unix.SetNonblock(p.fd, true) // the runtime asks for it; here it means nothing else
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
