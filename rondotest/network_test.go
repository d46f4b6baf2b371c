package rondotest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// fakeTB stands in for a test that fails.
type fakeTB struct {
	testing.TB
	mu      sync.Mutex // guards the rest: a lost loop may log
	log     strings.Builder
	failed  bool
	cleanup []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Cleanup(g func()) { f.cleanup = append(f.cleanup, g) }

func (f *fakeTB) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *fakeTB) fail(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
	f.log.WriteString(s)
}

func (f *fakeTB) Logf(s string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(&f.log, s+"\n", args...)
}

func (f *fakeTB) Errorf(s string, args ...any) { f.fail(fmt.Sprintf(s, args...)) }

func (f *fakeTB) Fatal(args ...any) {
	f.fail(fmt.Sprint(args...))
	runtime.Goexit()
}

// run runs a test with f, and returns what it logged.
func (f *fakeTB) run(test func()) string {
	done := make(chan bool)
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanup) - 1; i >= 0; i-- {
				f.cleanup[i]()
			}
		}()
		test()
	}()
	<-done
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

func TestFailureTellsSeed(t *testing.T) {
	t.Setenv("RONDO_SEED", "")
	tb := &fakeTB{TB: t}
	log := tb.run(func() {
		n := New(tb, Options{Seed: 12345})
		n.Serve(":7", echo)
		n.Dial("tcp", "127.0.0.1:8")
		t.Error("Dial returned, though nobody listens")
	})
	if !tb.failed || !strings.Contains(log, "connection refused") || !strings.Contains(log, "rondotest: seed 12345; run with RONDO_SEED=12345") {
		t.Errorf("failed: %v, logged:\n%s", tb.failed, log)
	}
	tb = &fakeTB{TB: t}
	log = tb.run(func() { New(tb, Options{Seed: 12345}).Serve(":7", echo) })
	if tb.failed || strings.Contains(log, "seed") {
		t.Errorf("failed: %v, logged:\n%s", tb.failed, log)
	}
}

func TestSeed(t *testing.T) {
	t.Setenv("RONDO_SEED", "")
	if a, b := New(t, Options{}).Seed(), New(t, Options{}).Seed(); a == b {
		t.Errorf("two networks without a seed have the same: %d", a)
	}
	t.Setenv("RONDO_SEED", "77")
	if got := New(t, Options{Seed: 5}).Seed(); got != 77 {
		t.Errorf("seed is %d, RONDO_SEED 77", got)
	}
	t.Setenv("RONDO_SEED", "x")
	tb := &fakeTB{TB: t}
	if log := tb.run(func() { New(tb, Options{}) }); !tb.failed || !strings.Contains(log, "RONDO_SEED") {
		t.Errorf("failed: %v, logged:\n%s", tb.failed, log)
	}
}

func TestTrace(t *testing.T) {
	t.Setenv("RONDO_TRACE", "1")
	tb := &fakeTB{TB: t}
	log := tb.run(func() {
		n := New(tb, Options{})
		n.Serve(":7", echo)
		c := n.Dial("tcp", "127.0.0.1:7")
		c.Send("hello")
		c.Expect("hello")
	})
	for _, want := range []string{"dial", "Accept", "turn", "arrival", "Recv", "read"} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is not in the trace:\n%s", want, log)
		}
	}
}

// The test moves the clock: Run fires no timers, Advance does.
func TestClock(t *testing.T) {
	n := New(t, Options{})
	began := n.Now()
	if want := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); !began.Equal(want) {
		t.Errorf("the clock begins at %v, want %v", began, want)
	}
	fired := 0
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		c.Loop().Every(time.Hour, func() { fired++ })
		return echo(c)
	})
	n.Dial("tcp", "127.0.0.1:7")
	n.Run()
	if d := n.Now().Sub(began); fired != 0 || d > time.Second {
		t.Errorf("after Run: %d timers, %v", fired, d)
	}
	opened := n.Now()
	n.Advance(10*time.Hour + time.Minute)
	if d := n.Now().Sub(opened); fired != 10 || d != 10*time.Hour+time.Minute {
		t.Errorf("after Advance: %d timers, %v", fired, d)
	}
	n.Until(func() bool { return fired == 20 })
	if d := n.Now().Sub(opened); d < 19*time.Hour || d > 21*time.Hour {
		t.Errorf("20 hourly timers took %v", d)
	}
}

func TestUntilNever(t *testing.T) {
	tb := &fakeTB{TB: t}
	log := tb.run(func() {
		n := New(tb, Options{})
		n.Serve(":7", echo)
		n.Until(func() bool { return false })
		t.Error("Until returned")
	})
	if !tb.failed || !strings.Contains(log, "Until: nothing is under way") {
		t.Errorf("failed: %v, logged:\n%s", tb.failed, log)
	}
}

// Shutdown waits for connections, on the simulated clock.
func TestShutdown(t *testing.T) {
	n := New(t, Options{})
	e := n.Engine(&rondo.Engine{NumLoops: 2, Linger: time.Hour})
	n.Listen(e, "tcp", ":7", func(c *rondo.Conn) rondo.Handler {
		c.Write(make([]byte, 1<<20)) // more than the network holds
		return &keeper{}
	})
	c := n.Dial("tcp", "127.0.0.1:7")
	n.Run()
	began := n.Now()
	var err error
	n.Await(func() { err = e.Shutdown(n.Timeout(time.Minute)) })
	if d := n.Now().Sub(began); !errors.Is(err, context.DeadlineExceeded) || d < time.Minute || d > 2*time.Minute {
		t.Errorf("Shutdown with a timeout of a minute: %v after %v", err, d)
	}
	if _, err := io.ReadAll(c); err == nil {
		t.Error("the connection was not aborted")
	}
}

// FailNow in a handler ends the test and does not hang it.
func TestFailNowInHandler(t *testing.T) {
	tb := &fakeTB{TB: t}
	ran := false
	log := tb.run(func() {
		n := New(tb, Options{})
		n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
			tb.Fatal("not like that")
			return nil
		})
		n.Dial("tcp", "127.0.0.1:7")
		n.Run()
		ran = true
	})
	if !tb.failed || !ran || !strings.Contains(log, "not like that") {
		t.Errorf("failed: %v, the test went on: %v, logged:\n%s", tb.failed, ran, log)
	}
}

// Calls that wait for loops also return without Await, but late.
func TestWithoutAwait(t *testing.T) {
	n := New(t, Options{})
	e := n.Engine(&rondo.Engine{})
	ln, err := e.Listen("tcp", ":0", rondo.SocketOptions{}, echo)
	if err != nil {
		t.Fatal(err)
	}
	c := n.Dial("tcp", ln.Addr().String())
	c.Send("x")
	c.Expect("x")
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A client that starts goroutines, such as net/http's, works too.
func TestHTTPClient(t *testing.T) {
	n := New(t, Options{})
	n.Serve(":80", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(in))))
			if err != nil {
				return 0, nil // not yet all
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
			return len(in), nil
		})
	})
	transport := &http.Transport{DialContext: n.DialContext}
	client := http.Client{Transport: transport}
	n.Await(func() {
		for i := range 10 {
			path := fmt.Sprint("/", i)
			resp, err := client.Get("http://127.0.0.1" + path)
			if err != nil {
				t.Error(err)
				return
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != path || err != nil {
				t.Errorf("got %q, %v", body, err)
			}
		}
		transport.CloseIdleConnections()
	})
}

// A closed network leaves nothing behind.
func TestNoGoroutinesLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		t.Run("", func(t *testing.T) {
			n := New(t, Options{})
			n.Listen(n.Engine(&rondo.Engine{NumLoops: 3}), "tcp", ":7", echo)
			n.Dial("tcp", "127.0.0.1:7").Send("hello")
		})
	}
	for range 6000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
}

// A stream keeps its bytes and their order, whatever the network does.
func TestManySeeds(t *testing.T) {
	text := strings.Repeat("Whatever the network does to a stream, it stays that stream. ", 100)
	for seed := uint64(1); seed <= seeds(300); seed++ {
		f := Harmless(0.2)
		f.NoFiles = 0.2
		n := New(t, Options{Seed: seed, Faults: f, Buffer: 500})
		n.Listen(n.Engine(&rondo.Engine{NumLoops: 2}), "tcp", ":7", echo)
		var conns [4]*Conn
		for i := range conns {
			conns[i] = n.Dial("tcp", "127.0.0.1:7")
		}
		for at := 0; at < 1500; at += 300 {
			for i, c := range conns {
				c.Send(text[at+i : at+i+300])
				n.Advance(time.Duration(i) * 200 * time.Microsecond)
			}
			for i, c := range conns {
				c.Expect(text[at+i : at+i+300])
			}
		}
		for _, c := range conns {
			c.CloseWrite()
			c.ExpectEOF()
		}
		n.Close()
	}
}
