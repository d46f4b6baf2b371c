package sim

import (
	"errors"
	"io"
	"math"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

func never() bool { return false }

// waiter starts a loop that only waits, each time until the time that next returns,
// until the network closes. It returns the loop's Backend.
func waiter(n *Network, next func(b *Backend) backend.Time) *Backend {
	b := n.Open()
	go func() {
		defer b.Close()
		for {
			if _, err := b.Wait(next(b)); err != nil {
				return
			}
		}
	}()
	return b
}

// period returns a next function for waiter that makes a turn every d.
func period(d time.Duration) func(*Backend) backend.Time {
	return func(b *Backend) backend.Time { return b.Now().Add(d) }
}

func TestDriveEnds(t *testing.T) {
	n := NewNetwork(Options{})
	defer n.Close()
	if err := n.Drive(backend.Forever, false, never); err != ErrIdle {
		t.Error("on an empty network:", err)
	}
	if err := n.Drive(start+5, false, never); err != ErrTime || n.Now() != start+5 {
		t.Error("up to a time:", err, n.Now())
	}
	if err := n.Drive(start+3, false, never); err != ErrTime || n.Now() != start+5 {
		t.Error("up to a time gone by:", err, n.Now())
	}
	if err := n.Drive(backend.Forever, false, func() bool { return true }); err != nil {
		t.Error("done at once:", err)
	}
	turns := 0
	waiter(n, func(b *Backend) backend.Time { turns++; return b.Now().Add(time.Hour) })
	if err := n.Drive(backend.Forever, true, never); err != ErrIdle || n.Now() != start+5 || turns != 1 {
		t.Error("before a loop's deadline:", err, n.Now(), turns)
	}
	if err := n.Drive(n.Now().Add(3*time.Hour), false, never); err != ErrTime || turns != 4 {
		t.Error("beyond a loop's deadline:", err, turns)
	}
}

func TestSpin(t *testing.T) {
	for name, next := range map[string]func(*Backend) backend.Time{
		"in an instant": (*Backend).Now,
		"by timers":     period(time.Second),
	} {
		n := NewNetwork(Options{})
		n.maxTurns = 1000
		waiter(n, next)
		if err := n.Drive(backend.Forever, false, never); !errors.Is(err, ErrSpin) {
			t.Error(name, err)
		}
		n.Close()
	}
	// When Drive has a time to stop at, timers may fire any number of times.
	n := NewNetwork(Options{})
	defer n.Close()
	n.maxTurns = 1000
	waiter(n, period(time.Second))
	if err := n.Drive(n.Now().Add(time.Hour), false, never); err != ErrTime {
		t.Error("up to a time:", err)
	}
}

// TestAwaitTime: Await runs a function that waits, and lets time pass for it.
func TestAwaitTime(t *testing.T) {
	n := NewNetwork(Options{Seed: 1})
	s := serve(t, n, 2, ":0")
	passed := make(chan bool)
	n.At(n.Now().Add(time.Hour), func() { close(passed) })
	began := n.Now()
	await(t, n, func() { <-passed })
	if d := n.Now() - began; d != backend.Time(time.Hour) {
		t.Errorf("Await took %v, want an hour", time.Duration(d))
	}
	s.stop(n)
}

// TestBlockedTurn: if a loop in its turn waits for another turn, Drive returns an error
// and does not hang.
func TestBlockedTurn(t *testing.T) {
	n := NewNetwork(Options{})
	never := make(chan struct{})
	n.Open()
	b := n.Open()
	go func() {
		b.Wait(b.Now())
		<-never
	}()
	err := n.Drive(backend.Forever, false, func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "loop 2 is blocked") || !strings.Contains(err.Error(), "TestBlockedTurn") {
		t.Error("Drive:", err)
	}
}

// TestAwaitGoexit: if the function ends its goroutine, so does Await.
func TestAwaitGoexit(t *testing.T) {
	n := NewNetwork(Options{})
	defer n.Close()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		n.Await(runtime.Goexit)
		t.Error("Await returned")
	}()
	<-ended
}

// TestUnattended: a call that waits for a loop works without Await too.
func TestUnattended(t *testing.T) {
	n := NewNetwork(Options{Seed: 1})
	s := serve(t, n, 2, ":0")
	for _, l := range s.loops {
		done := make(chan bool)
		l.post(func() { close(done) })
		<-done
	}
	s.stop(n)
}

// TestLostTurn: a loop whose goroutine ends in its turn gives an error, not a hang.
func TestLostTurn(t *testing.T) {
	n := NewNetwork(Options{})
	b := n.Open()
	go func() {
		b.Wait(0)
		runtime.Goexit()
	}()
	for range 2 {
		if err := n.Drive(backend.Forever, false, never); err == nil || !strings.Contains(err.Error(), "loop 1 ended in the middle of a turn") {
			t.Error(err)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// TestDriveOnLoop: a handler must not drive.
func TestDriveOnLoop(t *testing.T) {
	n := NewNetwork(Options{Seed: 1})
	s := serve(t, n, 1, ":0")
	got := ""
	await(t, n, func() {
		done := make(chan bool)
		s.loops[0].post(func() {
			got = breachOf(func() { n.Drive(backend.Forever, false, never) })
			close(done)
		})
		<-done
	})
	if !strings.Contains(got, "handlers must not use the test's side") {
		t.Errorf("panicked with %q", got)
	}
	s.stop(n)
}

// TestCallersShareTime: no caller lets time pass beyond what another one allows.
func TestCallersShareTime(t *testing.T) {
	n := NewNetwork(Options{})
	waiter(n, period(300*time.Microsecond))
	var over bool
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		if err := n.Drive(backend.Forever, false, func() bool { return over }); err != nil {
			t.Error(err)
		}
	}()
	for range 100 {
		until := n.Now().Add(time.Millisecond)
		c := &caller{until: until, asked: math.MaxUint64}
		n.enter(c) // the clock stays here until leave
		if err := n.Drive(until, false, never); err != ErrTime || n.Now() != until {
			t.Fatalf("%v, %v too late", err, time.Duration(n.Now()-until))
		}
		n.leave(c)
	}
	n.Drive(backend.Forever, false, func() bool { over = true; return true })
	done.Wait()
	n.Close()
}

// TestCallersIdle: callers that all wait for nothing all get ErrIdle. While one can go
// on, the others keep waiting.
func TestCallersIdle(t *testing.T) {
	n := NewNetwork(Options{Seed: 1})
	s := serve(t, n, 2, ":0")
	errs := make(chan error, 3)
	await(t, n, func() {
		var all sync.WaitGroup
		for i := range 3 {
			c := dial(t, n, "tcp", s.addr)
			all.Add(1)
			go func() {
				defer all.Done()
				buf := make([]byte, 10)
				err := n.Drive(backend.Forever, false, func() bool { over, _ := c.Connected(); return over })
				for range i {
					c.Write([]byte("x"))
					got := 0
					err = errors.Join(err, n.Drive(backend.Forever, false, func() bool {
						got, _ = c.Read(buf)
						return got > 0
					}))
				}
				if err != nil {
					t.Error(err)
				}
				errs <- n.Drive(backend.Forever, false, func() bool { return c.Buffered() > 0 })
				c.Close()
			}()
		}
		all.Wait()
	})
	for range 3 {
		if err := <-errs; err != ErrIdle {
			t.Error(err)
		}
	}
	s.stop(n)
}

// TestWorkersComeFirst: the network waits for computing goroutines before it lets time
// pass.
func TestWorkersComeFirst(t *testing.T) {
	n := NewNetwork(Options{})
	results := make(chan int, 1)
	var early, late int
	b := n.Open()
	go func() {
		defer b.Close()
		work := make(chan int)
		go func() {
			x := uint64(<-work)
			for range 3_000_000 {
				x = mix(x)
			}
			results <- int(x%7) + 1
			b.Wake()
		}()
		b.Wait(0)
		work <- 1
		for until := b.Now().Add(time.Second); b.Now() < until && early == 0; {
			b.Wait(until)
			select {
			case early = <-results:
			default:
				late++
			}
		}
	}()
	if err := n.Drive(backend.Forever, false, never); err != ErrIdle {
		t.Error(err)
	}
	if early == 0 || late > 0 {
		t.Errorf("the worker's result came after the loop's timeout")
	}
	n.Close()
}

// TestNoGoroutinesLeft: a closed network leaves no goroutines.
func TestNoGoroutinesLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for seed := range uint64(20) {
		n := NewNetwork(Options{Seed: seed})
		s := serve(t, n, 3, ":0")
		c, err := n.Dial("tcp", s.addr, netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		n.Drive(backend.Forever, true, never)
		c.Write([]byte("hello"))
		if seed%2 == 0 {
			s.stop(n)
		} else {
			n.Close() // the loops find out
			s.done.Wait()
		}
		if _, err := c.Write([]byte("x")); err == io.EOF {
			t.Error(err)
		}
	}
	for range 6000 { // a loaded machine takes its time
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left, want %d", runtime.NumGoroutine(), before)
}

// TestCallersAreAsked: a caller whose done was not called since the last change stops
// the clock. Otherwise the scheduler would decide at what time its next action comes.
func TestCallersAreAsked(t *testing.T) {
	n := NewNetwork(Options{})
	waiter(n, period(time.Second))
	c := &caller{until: backend.Forever}
	n.enter(c)
	driven := make(chan error)
	go func() { driven <- n.Drive(start.Add(time.Hour), false, never) }()
	time.Sleep(10 * time.Millisecond)
	if d := n.Now() - start; d != 0 {
		t.Errorf("%v went by before a caller's done was called", time.Duration(d))
	}
	n.leave(c)
	if err := <-driven; err != ErrTime || n.Now() != start.Add(time.Hour) {
		t.Errorf("%v after %v", err, time.Duration(n.Now()-start))
	}
	n.Close()
}
