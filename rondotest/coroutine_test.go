package rondotest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// A coroutine that sleeps for hours takes no time.
func TestCoroutineSleeps(t *testing.T) {
	n := New(t, Options{})
	n.Serve(":7", coro.Handler(func(co *coro.Co, c net.Conn) error {
		for _, word := range []string{"one", "two", "three"} {
			if err := co.Sleep(time.Hour); err != nil {
				return err
			}
			c.Write([]byte(word))
		}
		c.SetReadDeadline(co.Loop().Now().Add(24 * time.Hour))
		_, err := c.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read with a deadline in a day: %v", err)
		}
		return nil
	}))
	began := n.Now()
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Expect("one")
	c.Expect("two")
	c.Expect("three")
	if d := n.Now().Sub(began); d < 3*time.Hour || d > 3*time.Hour+time.Second {
		t.Errorf("three hours took %v", d)
	}
	c.ExpectEOF()
	if d := n.Now().Sub(began); d < 27*time.Hour || d > 27*time.Hour+time.Second {
		t.Errorf("three hours and a day took %v", d)
	}
}

// A dial gives up at its timeout, on the loop's clock, or with its context.
func TestCoroutineDialGivesUp(t *testing.T) {
	n := New(t, Options{MinLatency: time.Minute, MaxLatency: time.Minute})
	var opened int
	n.Serve(":7", func(*rondo.Conn) rondo.Handler { opened++; return nil })
	n.Serve(":8", coro.Handler(func(co *coro.Co, c net.Conn) error {
		now := co.Loop().Now
		began := now()
		_, err := co.DialTimeout("tcp", "127.0.0.1:7", time.Second)
		if d := now().Sub(began); !errors.Is(err, os.ErrDeadlineExceeded) || d != time.Second {
			t.Errorf("DialTimeout: %v after %v", err, d)
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() || !strings.Contains(err.Error(), "127.0.0.1:7") {
			t.Errorf("DialTimeout: %v", err)
		}
		ctx, cancel := context.WithCancel(co.Context())
		co.Loop().AfterFunc(2*time.Second, cancel)
		began = now()
		_, err = co.DialContext(ctx, "tcp", "127.0.0.1:7")
		if d := now().Sub(began); !errors.Is(err, context.Canceled) || d < 2*time.Second || d > 3*time.Second {
			t.Errorf("DialContext: %v after %v", err, d)
		}
		d, err := co.DialTimeout("tcp", "127.0.0.1:7", time.Hour)
		if err != nil {
			t.Errorf("DialTimeout of an hour: %v", err)
			return err
		}
		return d.Close()
	}))
	c := n.Dial("tcp", "127.0.0.1:8")
	c.ExpectEOF()
	n.Run()
	if opened != 1 {
		t.Errorf("%d connections were opened, want the one that was not given up", opened)
	}
}

// coro.Await waits in real time for a function, while the simulated clock stands still.
func TestCoroutineAwaits(t *testing.T) {
	n := New(t, Options{})
	n.Serve(":7", coro.Handler(func(co *coro.Co, c net.Conn) error {
		for i := range 20 {
			began := co.Loop().Now()
			got, err := coro.Await(co, func() (int, error) { return i * i, nil })
			if got != i*i || err != nil || co.Loop().Now() != began {
				t.Errorf("Await: %d, %v, at %v", got, err, co.Loop().Now().Sub(began))
			}
		}
		_, err := c.Write([]byte("done"))
		return err
	}))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Expect("done")
	c.ExpectEOF()
}

// The network waits for a goroutine even if a coroutine ended when the goroutine began,
// which leaves their number unchanged.
func TestGoroutineOutlivesCoroutine(t *testing.T) {
	n := New(t, Options{})
	var began, ended int
	n.Serve(":7", coro.Handler(func(co *coro.Co, c net.Conn) error {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		began++
		go func() {
			for range 100 {
				runtime.Gosched()
			}
			co.Loop().Post(func() { ended++ })
		}()
		return nil
	}))
	for range 10 {
		c := n.Dial("tcp", "127.0.0.1:7")
		n.Run()
		c.Send("x")
		n.Run()
		if began == 0 || ended != began {
			t.Fatalf("%d goroutines began, %d posted what they had to", began, ended)
		}
	}
}

// A FailNow in a coroutine ends the coroutine, and the test fails.
func TestFailNowInCoroutine(t *testing.T) {
	tb := &fakeTB{TB: t}
	log := tb.run(func() {
		n := New(tb, Options{})
		n.Serve(":7", coro.Handler(func(*coro.Co, net.Conn) error {
			tb.Fatal("not like that")
			return nil
		}))
		c := n.Dial("tcp", "127.0.0.1:7")
		if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("the peer got %v", err)
		}
	})
	if !tb.failed || !strings.Contains(log, "not like that") {
		t.Errorf("failed: %v, logged:\n%s", tb.failed, log)
	}
}

// A dancer is a coroutine that does random things.
type dancer struct {
	t      *testing.T
	random *rand.Rand
	cond   *coro.Cond
	alive  *int
	awaits *bool
	depth  int
}

func (d *dancer) serve(co *coro.Co, c net.Conn) (err error) {
	*d.alive++
	defer func() {
		*d.alive--
		if d.random.IntN(2) == 0 {
			c.Write([]byte("goodbye"))
			c.Close()
		}
	}()
	b := make([]byte, 3000)
	for err == nil {
		err = d.step(co, c, b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.SetDeadline(time.Time{})
			err = nil
		}
	}
	return err
}

func (d *dancer) step(co *coro.Co, c net.Conn, b []byte) error {
	now := co.Loop().Now()
	some := time.Duration(d.random.IntN(3000)) * time.Microsecond
	switch d.random.IntN(14) {
	case 0, 1, 2:
		n, err := c.Read(b[:d.random.IntN(len(b))])
		d.cond.Signal()
		if err == nil {
			_, err = c.Write(b[:n])
		}
		return err
	case 3:
		_, err := c.Write(b)
		return err
	case 4:
		return co.Sleep(some)
	case 5:
		c.SetReadDeadline(now.Add(some))
	case 6:
		c.SetDeadline(now.Add(some - time.Millisecond))
	case 7:
		if d.depth < 3 {
			child := *d
			child.depth++
			co.Go(func(co *coro.Co) error { return child.serve(co, c) })
		}
	case 8:
		if *d.awaits { // the seed does not decide which goroutine is quicker
			return nil
		}
		*d.awaits = true
		defer func() { *d.awaits = false }()
		n, err := coro.Await(co, func() (int, error) { return 42, nil })
		if err == nil && n != 42 {
			d.t.Errorf("Await brought %d", n)
		}
		return err
	case 9:
		if d.random.IntN(4) == 0 {
			return d.cond.Wait(co)
		}
		d.cond.Broadcast()
	case 10:
		up, err := co.DialTimeout("tcp", "127.0.0.1:8", some)
		if err != nil {
			return ignoreUnlessClosed(err)
		}
		defer up.Close()
		up.SetDeadline(now.Add(some))
		if _, err = up.Write(b); err == nil {
			_, err = io.CopyN(c, up, 1000)
		}
		return ignoreUnlessClosed(err)
	case 11:
		_, err := io.CopyN(c, c, int64(d.random.IntN(2000)))
		return err
	case 12:
		return d.end(co, c)
	case 13:
		co.Loop().AfterFunc(some, d.cond.Signal)
	}
	return nil
}

// end sometimes ends the coroutine or a connection.
func (d *dancer) end(co *coro.Co, c net.Conn) error {
	switch d.random.IntN(12) {
	case 0:
		return errors.New("enough")
	case 1:
		panic("enough")
	case 2:
		runtime.Goexit()
	case 3:
		co.Conn().Abort(nil)
	case 4:
		return c.Close()
	case 5:
		return c.(interface{ CloseWrite() error }).CloseWrite()
	case 6:
		return co.Wait()
	}
	return nil
}

// ignoreUnlessClosed ignores the end of another connection.
func ignoreUnlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// dance runs dancers with clients that come and go on a bad network, closes the network
// in the middle, and returns its digest.
func dance(t *testing.T, seed uint64) uint64 {
	faults := Harmless(0.1)
	faults.Reset, faults.NoFiles = 0.01, 0.05
	n := New(t, Options{Seed: seed, Faults: faults, Buffer: 2000})
	e := n.Engine(&rondo.Engine{NumLoops: 1, HighWater: 4000, LowWater: 1000, MaxInput: 2500, Linger: time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	random := rand.New(rand.NewPCG(n.Seed(), 2))
	var cond coro.Cond
	alive, awaits := 0, false
	n.Listen(e, "tcp", ":7", coro.Handler(func(co *coro.Co, c net.Conn) error {
		d := &dancer{t: t, random: random, cond: &cond, alive: &alive, awaits: &awaits}
		return d.serve(co, c)
	}))
	n.Listen(e, "tcp", ":8", coro.Handler(func(_ *coro.Co, c net.Conn) error {
		alive++
		defer func() { alive-- }()
		_, err := io.Copy(c, c)
		return err
	}))
	clients := rand.New(rand.NewPCG(n.Seed(), 3))
	var conns []*Conn
	b := make([]byte, 5000)
	for range 40 {
		if len(conns) < 4 {
			c, err := n.DialContext(context.Background(), "tcp", "127.0.0.1:7")
			if err != nil {
				continue // a fault
			}
			conns = append(conns, c.(*Conn))
		}
		i := clients.IntN(len(conns))
		c := conns[i]
		c.SetDeadline(n.Now().Add(time.Millisecond))
		switch clients.IntN(8) {
		case 0, 1, 2:
			c.Write(b[:clients.IntN(len(b))])
		case 3, 4, 5:
			c.Read(b)
		case 6:
			n.Advance(time.Millisecond)
		case 7:
			[]func() error{c.Close, c.Reset, c.CloseWrite}[clients.IntN(3)]()
			conns = append(conns[:i], conns[i+1:]...)
		}
	}
	n.Await(func() {
		if seed%2 == 0 {
			e.Close()
		} else {
			e.Shutdown(n.Timeout(time.Minute))
		}
	})
	if alive != 0 {
		t.Errorf("seed %d: %d coroutines were left when the engine was closed", seed, alive)
	}
	n.Close()
	return n.sim.Trace()
}

// Coroutines end with their connections, whatever happens and whenever. The same seed
// gives the same run.
func TestCoroutinesAtRandom(t *testing.T) {
	t.Setenv("RONDO_SEED", "")
	for seed := uint64(1); seed <= seeds(60); seed++ {
		trace := dance(t, seed)
		if seed%4 == 0 && dance(t, seed) != trace {
			t.Errorf("seed %d: two runs differ", seed)
		}
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}
