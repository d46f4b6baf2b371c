//go:build linux

package epoll

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
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
	raw    syscall.RawConn // of the epoll descriptor's file; nil also if the runtime refused it
	try    func(uintptr) bool
	armed  time.Time // the file's deadline, if it has one and has not passed
	passed bool      // it has passed, or may have

	looks int // calls of try
	found int // events that the last call found
	errno syscall.Errno
}

// door is what Wake uses, which any goroutine may call.
type door struct {
	_      share.Pad
	waker  *sys.Waker
	file   *os.File   // of the epoll descriptor; nil before the first Park
	parked share.Bool // parked, about to park, or just unparked
	woken  share.Bool
	_      share.Pad
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
	p.arm(timeout)
	p.looks, p.found, p.errno = 0, 0, 0
	// A Wake before SetReadDeadline shows in woken; a later one sets a past deadline,
	// which ends Read.
	if p.woken.Load() || p.raw.Read(p.try) != nil {
		p.passed = true // also after a Wake, which may still set its deadline
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

// slack is how much later than asked a Park may end. The runtime's poller waits for whole
// milliseconds, so this adds little.
const slack = 100 * time.Microsecond

// arm gives file a deadline for a Park. One that comes earlier may stay, for one Park that ends
// too early: a loop's first timer is mostly the same for many turns, and each change of the
// deadline changes one of the runtime's timers.
func (p *poller) arm(timeout time.Duration) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
		if !p.passed && !p.armed.IsZero() && p.armed.Before(deadline.Add(slack)) {
			return
		}
	} else if !p.passed {
		return
	}
	p.armed, p.passed = deadline, false
	p.file.SetReadDeadline(deadline)
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
