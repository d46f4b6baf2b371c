//go:build unix

package kqueue

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
)

// script is a queue that returns prepared answers and records its calls.
type script struct {
	*testing.T
	answers []answer
	calls   []call
	drained int
}

type answer struct {
	events []event
	err    error
}

type call struct {
	changes []change
	room    int
	timeout time.Duration
}

func (s *script) kevent(changes []change, events []event, timeout time.Duration) (int, error) {
	s.calls = append(s.calls, call{slices.Clone(changes), len(events), timeout})
	if len(s.answers) == 0 {
		return 0, nil
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	if a.err != nil {
		return -1, a.err
	}
	return copy(events, a.events), nil
}

func (s *script) close() error { return nil }
func (s *script) Wake()        {}
func (s *script) Drain()       { s.drained++ }
func (s *script) Close()       {}

func scripted(t *testing.T) (*poller, *script) {
	s := &script{T: t}
	return newPoller(s, s), s
}

// Short names for the tables below.
const (
	in    = readiness.In
	out   = readiness.Out
	inOut = in | out
)

func add(fd int, filter readiness.Interest) change  { return change{fd, filter, false} }
func drop(fd int, filter readiness.Interest) change { return change{fd, filter, true} }

// found runs a Wait that gets these events, and returns what the poller made of them.
func (s *script) found(p *poller, events ...event) []watch {
	s.Helper()
	s.answers = append(s.answers, answer{events: events})
	n, err := p.Wait(0)
	if err != nil {
		s.Fatal(err)
	}
	var found []watch
	for i := range n {
		f, interest := p.Event(i)
		found = append(found, watch{f, interest})
	}
	return found
}

// asked checks the number of kevent calls since the last asked, and the changes of the
// last one.
func (s *script) asked(calls int, changes ...change) {
	s.Helper()
	if len(s.calls) != calls {
		s.Fatalf("kevent was called %d times, want %d: %v", len(s.calls), calls, s.calls)
	}
	if got := s.calls[calls-1].changes; !slices.Equal(got, changes) {
		s.Fatalf("changes %v, want %v", got, changes)
	}
	s.calls = nil
}

func (s *script) want(got []watch, want ...watch) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Fatalf("found %v, want %v", got, want)
	}
}

// TestChangesGoTogether: one call adds all filters of a turn, each once.
func TestChangesGoTogether(t *testing.T) {
	p, s := scripted(t)
	p.Watch(7, 70, 0, in)
	p.Watch(8, 80, 0, out)
	p.Watch(9, 90, 0, inOut)
	p.Watch(7, 70, in, inOut)
	s.want(s.found(p))
	s.asked(1, add(7, in), add(8, out), add(9, in), add(9, out), add(7, out))
	s.want(s.found(p))
	s.asked(1)
}

// TestFilters: an event reports its file and its one condition.
func TestFilters(t *testing.T) {
	p, s := scripted(t)
	p.Watch(7, 70, 0, inOut)
	p.Watch(8, 80, 0, in)
	s.want(s.found(p, event{fd: 7, filter: out}, event{fd: 8, filter: in}, event{fd: 7, filter: in}),
		watch{70, out}, watch{80, in}, watch{70, in})
}

// TestLostInterest: dropping an interest costs no call, nor does regaining it. An event
// for a dropped interest removes the filter and is not reported.
func TestLostInterest(t *testing.T) {
	p, s := scripted(t)
	p.Watch(7, 70, 0, in)
	p.Watch(8, 80, 0, inOut)
	s.found(p)
	s.calls = nil
	p.Watch(7, 70, in, 0)
	p.Watch(8, 80, inOut, in)
	s.want(s.found(p, event{fd: 7, filter: in}, event{fd: 8, filter: out}, event{fd: 8, filter: in}), watch{80, in})
	s.asked(1)
	p.Watch(7, 70, 0, in)
	s.want(s.found(p))
	s.asked(1, drop(7, in), drop(8, out), add(7, in))
	if len(p.watched) != 2 {
		t.Errorf("%d descriptors are watched, want 2", len(p.watched))
	}
	p.Watch(7, 70, in, 0)
	p.Watch(8, 80, in, 0)
	if len(p.watched) != 0 {
		t.Errorf("%d descriptors are still watched, want none", len(p.watched))
	}
}

// TestDescriptorUsedAgain: an event belongs to the file that had the descriptor when
// Wait returned, even if the descriptor was reused since.
func TestDescriptorUsedAgain(t *testing.T) {
	p, s := scripted(t)
	p.Watch(7, 70, 0, in)
	got := s.found(p, event{fd: 7, filter: in})
	p.Watch(7, 70, in, 0) // closed
	p.Watch(7, 71, 0, out)
	if f, _ := p.Event(0); f != 70 {
		t.Errorf("an event of file 70 is reported for file %d after its descriptor was reused", f)
	}
	s.want(got, watch{70, in})
	s.want(s.found(p, event{fd: 7, filter: out}), watch{71, out})
}

// TestRemovalTooLate: a removal fails harmlessly if the descriptor was closed or
// reused. Wait then calls kevent again, because the failed call returned no events.
func TestRemovalTooLate(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{"used again": syscall.ENOENT, "closed": syscall.EBADF} {
		t.Run(name, func(t *testing.T) {
			p, s := scripted(t)
			p.Watch(6, 60, 0, in)
			s.found(p, event{fd: 7, filter: in})
			if errno == syscall.ENOENT {
				p.Watch(7, 71, 0, in)
			}
			s.calls = nil
			s.answers = []answer{{events: []event{{7, in, errno}}}, {events: []event{{fd: 6, filter: in}}}}
			if n, err := p.Wait(time.Second); n != 1 || err != nil {
				t.Fatalf("%d events, %v", n, err)
			}
			if f, interest := p.Event(0); f != 60 || interest != in {
				t.Errorf("file %d is ready for %d", f, interest)
			}
			if len(s.calls) != 2 || s.calls[1].timeout != 0 {
				t.Errorf("calls: %v", s.calls)
			}
			s.asked(2)
			s.found(p)
			s.asked(1)
		})
	}
}

// TestAddingFails: a filter that cannot be added is reported as ready, so that the next
// call on the descriptor returns the error. It is added again until the interest is
// dropped.
func TestAddingFails(t *testing.T) {
	p, s := scripted(t)
	p.Watch(7, 70, 0, out)
	for range 3 {
		s.answers = append(s.answers, answer{events: []event{{7, out, syscall.ENOMEM}}})
		s.want(s.found(p), watch{70, out})
		if first := s.calls[0].changes; !slices.Equal(first, []change{add(7, out)}) {
			t.Errorf("changes %v", first)
		}
		s.asked(2)
	}
	p.Watch(7, 70, out, 0)
	s.answers = append(s.answers, answer{events: []event{{7, out, syscall.ENOMEM}}})
	s.want(s.found(p))
	s.asked(2)
	s.want(s.found(p))
	s.asked(1)
}

// TestRoomForFailures: every change has room for an error event.
func TestRoomForFailures(t *testing.T) {
	p, s := scripted(t)
	for fd := range 3 * batch {
		p.Watch(fd, backend.File(fd), 0, in)
	}
	p.Wait(0)
	if c := s.calls[0]; len(c.changes) != 3*batch || c.room < len(c.changes) {
		t.Errorf("%d changes, room for %d events", len(c.changes), c.room)
	}
}

// TestWakers: a user event belongs to no file, even if a file has descriptor 0. Wait
// drains the waker's pipe.
func TestWakers(t *testing.T) {
	p, s := scripted(t)
	p.Watch(0, 10, 0, in)
	s.want(s.found(p, event{}, event{fd: 0, filter: in}), watch{0, 0}, watch{10, in})
	if s.drained != 1 {
		t.Errorf("drained %d times, want once", s.drained)
	}
	p.Watch(3, 0, 0, in)
	s.want(s.found(p, event{fd: 3, filter: in}), watch{0, in})
	if s.drained != 2 {
		t.Errorf("drained %d times, want twice", s.drained)
	}
}

func TestTimeouts(t *testing.T) {
	p, s := scripted(t)
	for give, want := range map[time.Duration]time.Duration{
		0: 0, 1: 1, time.Millisecond + 1: time.Millisecond + 1, -1: -1, 1 << 62: time.Hour,
	} {
		s.calls = nil
		p.Wait(give)
		if got := s.calls[0].timeout; got != want {
			t.Errorf("Wait(%d) asked for %d ns", give, got)
		}
	}
}

// TestErrors: a signal ends a wait early, after the changes were made. Wait returns
// other errors.
func TestErrors(t *testing.T) {
	p, s := scripted(t)
	p.Watch(7, 70, 0, in)
	s.answers = []answer{{err: syscall.EINTR}}
	if n, err := p.Wait(-1); n != 0 || err != nil {
		t.Errorf("after a signal: %d events, %v", n, err)
	}
	s.asked(1, add(7, in))
	s.answers = []answer{{err: syscall.EBADF}}
	if _, err := p.Wait(-1); !errors.Is(err, syscall.EBADF) {
		t.Errorf("err is %v", err)
	}
	s.asked(1)
}

// TestNoAllocations: a turn allocates nothing once the slices have grown.
func TestNoAllocations(t *testing.T) {
	p := newPoller(readyQueue{}, &script{})
	turn := func() {
		for fd := range 100 {
			p.Watch(fd, backend.File(fd+1), 0, in)
		}
		if n, err := p.Wait(0); n != 100 || err != nil {
			t.Fatal(n, err)
		}
		for fd := range 100 {
			p.Watch(fd, backend.File(fd+1), in, 0)
		}
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

// readyQueue reports each added filter as ready at once.
type readyQueue struct{}

func (readyQueue) kevent(changes []change, events []event, _ time.Duration) (int, error) {
	for i, c := range changes {
		events[i] = event{fd: c.fd, filter: c.filter}
	}
	return len(changes), nil
}

func (readyQueue) close() error { return nil }
