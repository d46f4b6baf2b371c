package backendtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamPatience is the longest time, on a backend's clock, that a test waits for
// something. A passing test never waits so long.
const seamPatience = time.Minute

// A driver runs the loops of one test, on its goroutine.
type driver struct {
	testing.TB
	open  func(testing.TB) backend.Backend
	loops []*loop
}

func newDriver(t testing.TB, open func(testing.TB) backend.Backend) *driver {
	return &driver{TB: t, open: open}
}

// until runs turns until done returns true, and fails the test if that takes too long.
func (d *driver) until(what string, done func() bool) {
	d.Helper()
	d.among(d.loops, what, done)
}

// alone is until for one loop: the others take no turns.
func (l *loop) alone(what string, done func() bool) {
	l.Helper()
	l.among([]*loop{l}, what, done)
}

func (d *driver) among(loops []*loop, what string, done func() bool) {
	d.Helper()
	limit := make([]backend.Time, len(loops))
	for i, l := range loops {
		limit[i] = l.b.Now().Add(seamPatience)
	}
	for !done() {
		for i, l := range loops {
			if l.b.Now() >= limit[i] {
				d.Fatalf("%s: not within %v; in flight:%s", what, seamPatience, d.inFlight())
			}
			until := limit[i]
			if len(loops) > 1 {
				until = l.b.Now().Add(time.Millisecond) // the other loops need turns
			}
			l.turn(until)
		}
	}
}

// wait runs turns until all calls are complete.
func (d *driver) wait(calls ...*call) {
	d.Helper()
	for _, c := range calls {
		d.until(c.String(), func() bool { return !c.flying })
	}
}

// ok waits for calls that must succeed.
func (d *driver) ok(calls ...*call) {
	d.Helper()
	d.wait(calls...)
	for _, c := range calls {
		if c.err != nil {
			d.Fatalf("%v: %v", c, c.err)
		}
	}
}

// oked is ok for one call, which it returns.
func (l *loop) oked(c *call) *call {
	l.Helper()
	l.ok(c)
	return c
}

func (d *driver) inFlight() string {
	var s strings.Builder
	for _, l := range d.loops {
		for _, calls := range l.flying {
			for c := range calls {
				s.WriteString("\n\t" + c.String())
			}
		}
	}
	return s.String()
}

// A loop is a backend and the test's knowledge of its Files and Ops.
type loop struct {
	*driver
	b         backend.Backend
	closed    bool
	turns     int // so far
	flying    map[backend.File]map[*call]bool
	closing   map[backend.File]bool // from Close's submission to its completion
	listeners []*listener
	forPairs  map[string]*listener // by network
}

// loop opens a backend.
func (d *driver) loop() *loop {
	d.Helper()
	l := &loop{
		driver:   d,
		b:        d.open(d.TB),
		flying:   make(map[backend.File]map[*call]bool),
		closing:  make(map[backend.File]bool),
		forPairs: make(map[string]*listener),
	}
	d.loops = append(d.loops, l)
	d.Cleanup(l.close)
	return l
}

// close closes the backend, whatever is in flight.
func (l *loop) close() {
	l.Helper()
	if l.closed {
		return
	}
	l.closed = true
	for _, ln := range l.listeners {
		ln.discardRest()
	}
	if err := l.b.Close(); err != nil {
		l.Errorf("closing the backend: %v", err)
	}
}

// turn is one turn of the loop: it waits and takes the completions. It and complete
// check laws in every test of the suite.
func (l *loop) turn(until backend.Time) {
	l.Helper()
	var c backend.Completion
	if l.b.Next(&c) {
		l.Fatalf("%v completed after Next had returned false in the same turn", c.Op.Owner)
	}
	l.turns++
	ready, err := l.b.Wait(until)
	if err != nil {
		l.Fatalf("Wait: %v", err)
	}
	for {
		// Next must set every field: any of these values that remains shows.
		c = backend.Completion{N: -1, Err: errLeft, More: true, Piped: true, Lent: make([]byte, 1), Conn: backend.Handle{FD: -2}}
		if !l.b.Next(&c) {
			return
		}
		if !ready {
			l.Fatalf("%v completed in a turn in which Wait had reported no completions", c.Op.Owner)
		}
		l.complete(&c)
	}
}

var errLeft = errors.New("err of a Completion that Next did not set")

// turnFor runs a few turns in which nothing has to happen.
func (d *driver) turnFor(turns int) {
	d.Helper()
	for range turns {
		for _, l := range d.loops {
			l.turn(l.b.Now().Add(time.Millisecond))
		}
	}
}
