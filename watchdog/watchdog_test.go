package watchdog_test

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/watchdog"
)

// A jam blocks a loop until the test ends it. Its methods do so in different ways, and note
// the line on which they do.
type jam struct {
	over atomic.Bool
	free chan struct{} // closed when over
	mu   sync.Mutex    // locked until then
	conn net.Conn      // its peer is closed then
	line atomic.Int64
}

func newJam(t *testing.T) (j *jam, end func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer := testkit.Dial(t, ln.Addr().String())
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	j = &jam{free: make(chan struct{}), conn: conn}
	j.mu.Lock()
	end = sync.OnceFunc(func() {
		j.over.Store(true)
		close(j.free)
		j.mu.Unlock()
		peer.Close()
	})
	t.Cleanup(func() {
		end()
		conn.Close()
	})
	return j, end
}

// next notes that the caller blocks on its next line.
func (j *jam) next() {
	_, _, line, _ := runtime.Caller(1)
	j.line.Store(int64(line) + 1)
}

//go:noinline
func (j *jam) sleep() {
	for !j.over.Load() {
		j.next()
		time.Sleep(300 * time.Millisecond)
	}
}

//go:noinline
func (j *jam) lock() {
	j.next()
	j.mu.Lock()
	defer j.mu.Unlock()
}

//go:noinline
func (j *jam) compute() {
	j.next()
	for !j.over.Load() {
	}
}

//go:noinline
func (j *jam) receive() {
	j.next()
	<-j.free
}

//go:noinline
func (j *jam) choose() {
	j.next()
	select {
	case <-j.free:
	case <-make(chan bool):
	}
}

//go:noinline
func (j *jam) read() {
	j.next()
	j.conn.Read(make([]byte, 1))
}

// A kind is a way to block a loop, and what a report says about it.
type kind struct {
	name           string
	block          func(*jam)
	state          string
	advice, coTold string // what the advice contains: in a callback, in a coroutine
}

var kinds = []kind{
	{"sleep", (*jam).sleep, "sleep", "Loop.AfterFunc", "co.Sleep"},
	{"lock", (*jam).lock, "sync.Mutex.Lock", "lock", "coro.Await"},
	{"compute", (*jam).compute, "", "workers", "coro.Await"},
	{"receive", (*jam).receive, "chan receive", "Ref", "coro.Await"},
	{"choose", (*jam).choose, "select", "Ref", "coro.Await"},
	{"read", (*jam).read, "IO wait", "Loop.Attach", "co.Dial"},
}

// reports collects reports.
type reports chan watchdog.Report

func (r reports) options() watchdog.Options {
	return watchdog.Options{Slow: 20 * time.Millisecond, Report: func(report watchdog.Report) { r <- report }}
}

// get waits for a report of a jam. On a busy machine others may be slow too.
func (r reports) get(t *testing.T) watchdog.Report {
	t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case got := <-r:
			if bytes.Contains(got.Stack, []byte(".(*jam).")) {
				return got
			}
			t.Logf("also slow: %+v\n%s", got, got.Stack)
		case <-late:
			t.Fatal("there was no report")
		}
	}
}

// watch watches e, which has one loop.
func (r reports) watch(t *testing.T, e *rondo.Engine) {
	t.Helper()
	w, err := watchdog.Watch(e, r.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// expect wants one report while the jam lasts and one when it is over.
func (r reports) expect(t *testing.T, k kind, j *jam, end func()) (first watchdog.Report) {
	t.Helper()
	first = r.get(t)
	if !strings.HasSuffix(first.Func, ".(*jam)."+k.name) || int64(first.Line) != j.line.Load() || !strings.HasSuffix(first.File, "watchdog_test.go") {
		t.Errorf("it is told of %s (%s:%d), want (*jam).%s, line %d\n%s", first.Func, first.File, first.Line, k.name, j.line.Load(), first.Stack)
	}
	if k.state != "" && first.State != k.state {
		t.Errorf("the state is %q, want %q", first.State, k.state)
	}
	told := k.advice
	if first.Coroutine {
		told = k.coTold
	}
	if !strings.Contains(first.Advice, told) {
		t.Errorf("the advice does not say %q: %s", told, first.Advice)
	}
	if first.Over || first.Loop == nil || first.For <= 0 || j.over.Load() {
		t.Errorf("the first report is %+v", first)
	}
	end()
	for {
		last := r.get(t)
		if last.For < first.For || last.Func != first.Func || last.Remote != first.Remote {
			t.Errorf("%+v after %+v", last, first)
		}
		if last.Over {
			return first
		}
	}
}

// everywhere runs f on each backend, for each kind.
func everywhere(t *testing.T, f func(t *testing.T, e *rondo.Engine, k kind)) {
	for _, name := range pick.Available() {
		for _, k := range kinds {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				f(t, &rondo.Engine{NumLoops: 1, Backend: name}, k)
			})
		}
	}
}

func addrPort(a net.Addr) netip.AddrPort { return a.(*net.TCPAddr).AddrPort() }

// TestHandlers: a handler that blocks its loop is named, with its line and its connection,
// while it does.
func TestHandlers(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		got := make(reports, 100)
		got.watch(t, e)
		j, end := newJam(t)
		c := testkit.ConnTo(t, e, func(*rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				k.block(j)
				return c.Write(in)
			})
		})
		io.WriteString(c, "x")
		r := got.expect(t, k, j, end)
		if r.Remote != addrPort(c.LocalAddr()) || r.Coroutine {
			t.Errorf("it is told of %v, a coroutine: %t; want %v", r.Remote, r.Coroutine, c.LocalAddr())
		}
	})
}

// TestCoroutines: likewise for a coroutine, beside one that waits as it should.
func TestCoroutines(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		got := make(reports, 100)
		got.watch(t, e)
		j, end := newJam(t)
		address := testkit.Listen(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			if _, err := c.Read(make([]byte, 1)); err != nil {
				return err
			}
			co.Sleep(time.Millisecond)
			k.block(j)
			return nil
		}))
		testkit.Dial(t, address)
		c := testkit.Dial(t, address)
		io.WriteString(c, "x")
		r := got.expect(t, k, j, end)
		if r.Remote != addrPort(c.LocalAddr()) || !r.Coroutine {
			t.Errorf("it is told of %v, a coroutine: %t; want %v", r.Remote, r.Coroutine, c.LocalAddr())
		}
	})
}

// TestManyGoroutines: likewise from a goroutine profile, while one loop alone is blocked.
func TestManyGoroutines(t *testing.T) {
	for _, name := range pick.Available() {
		for what, open := range map[string]func(j *jam) rondo.OpenFunc{
			"callback": func(j *jam) rondo.OpenFunc {
				return func(*rondo.Conn) rondo.Handler { j.receive(); return nil }
			},
			"coroutine": func(j *jam) rondo.OpenFunc {
				return coro.Handler(func(*coro.Co, net.Conn) error { j.receive(); return nil })
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				e := &rondo.Engine{NumLoops: 2, Backend: name}
				got := make(reports, 100)
				watchdog.WatchMany(t, e, got.options())
				j, end := newJam(t)
				waits := testkit.Listen(t, e, coro.Handler(func(_ *coro.Co, c net.Conn) error {
					_, err := io.Copy(c, c)
					return err
				}))
				for range 4 {
					testkit.RoundTrip(t, "tcp", waits, "hello")
				}
				testkit.ConnTo(t, e, open(j))
				k := kind{name: "receive", advice: "workers", coTold: "coro.Await"}
				if r := got.expect(t, k, j, end); r.Coroutine != (what == "coroutine") {
					t.Errorf("a coroutine: %t", r.Coroutine)
				}
			})
		}
	}
}

// deep calls f at a depth of so many calls.
//
//go:noinline
func deep(calls int, f func()) {
	if calls == 0 {
		f()
	} else {
		deep(calls-1, f)
	}
}

// TestDeepStacks: a goroutine profile lacks the outermost calls of a deep stack, so that it does
// not look like a loop's.
func TestDeepStacks(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			e := &rondo.Engine{NumLoops: 2, Backend: name}
			got := make(reports, 100)
			watchdog.WatchMany(t, e, got.options())
			j, end := newJam(t)
			testkit.ConnTo(t, e, func(*rondo.Conn) rondo.Handler { deep(200, j.receive); return nil })
			got.expect(t, kind{name: "receive", advice: "workers"}, j, end)
		})
	}
}

// TestPlaces: each kind of callback is watched.
func TestPlaces(t *testing.T) {
	for _, name := range pick.Available() {
		for what, begin := range places {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				e := &rondo.Engine{NumLoops: 1, Backend: name}
				got := make(reports, 100)
				j, end := newJam(t)
				once := sync.OnceFunc(j.receive)
				if what == "Trace.Turn" {
					var turns int
					e.Trace = &rondo.Trace{Turn: func(*rondo.Loop) {
						if turns++; turns > 5 {
							once()
						}
					}}
				}
				if what == "Trace.AfterWrite" {
					e.Trace = &rondo.Trace{AfterWrite: func(*rondo.Conn, int) { once() }}
				}
				got.watch(t, e)
				t.Cleanup(func() { e.Close() })
				begin(t, e, once)
				got.expect(t, kind{name: "receive", state: "chan receive", advice: "Ref"}, j, end)
			})
		}
	}
}

// anyLoop returns e's loop.
func anyLoop(e *rondo.Engine) (loop *rondo.Loop) {
	for l := range e.Loops() {
		loop = l
	}
	return loop
}

// A handler calls block in one of its methods.
type handler struct {
	rondo.HandlerFunc
	eof, closed func()
}

func (h handler) EOF(c *rondo.Conn) { h.eof(); c.Close() }

func (h handler) Closed(*rondo.Conn, error) { h.closed() }

func nothing() {}

// places make a loop call block.
var places = map[string]func(t *testing.T, e *rondo.Engine, block func()){
	"Post": func(t *testing.T, e *rondo.Engine, block func()) { anyLoop(e).Post(block) },
	"AfterFunc": func(t *testing.T, e *rondo.Engine, block func()) {
		l := anyLoop(e)
		l.Post(func() { l.AfterFunc(1, block) })
	},
	"Defer": func(t *testing.T, e *rondo.Engine, block func()) { l := anyLoop(e); l.Post(func() { l.Defer(block) }) },
	"OnClose": func(t *testing.T, e *rondo.Engine, block func()) {
		l := anyLoop(e)
		l.Post(func() { l.OnClose(block); e.Close() })
	},
	"OpenFunc": func(t *testing.T, e *rondo.Engine, block func()) {
		testkit.ConnTo(t, e, func(*rondo.Conn) rondo.Handler { block(); return nil })
	},
	"EOF": func(t *testing.T, e *rondo.Engine, block func()) {
		c := testkit.ConnTo(t, e, func(*rondo.Conn) rondo.Handler { return handler{eof: block, closed: nothing} })
		c.(*net.TCPConn).CloseWrite()
	},
	"Closed": func(t *testing.T, e *rondo.Engine, block func()) {
		c := testkit.ConnTo(t, e, func(*rondo.Conn) rondo.Handler { return handler{eof: nothing, closed: block} })
		c.(*net.TCPConn).CloseWrite()
	},
	"Ref.Do": func(t *testing.T, e *rondo.Engine, block func()) {
		testkit.ConnTo(t, e, func(c *rondo.Conn) rondo.Handler {
			c.Ref().Do(func(*rondo.Conn) { block() })
			return rondo.HandlerFunc(nil)
		})
	},
	"Broadcast": func(t *testing.T, e *rondo.Engine, block func()) {
		testkit.ConnTo(t, e, func(c *rondo.Conn) rondo.Handler {
			c.SetLimits(rondo.Limits{MaxInput: 1, MaxOutput: 1, HighWater: 1})
			rondo.Broadcast(func(yield func(rondo.Ref) bool) { yield(c.Ref()) }, []byte("hello"), func(*rondo.Conn) { block() })
			return rondo.HandlerFunc(nil)
		})
	},
	"WriteOwned": func(t *testing.T, e *rondo.Engine, block func()) {
		testkit.ConnTo(t, e, func(c *rondo.Conn) rondo.Handler {
			c.WriteOwned([]byte("hello"), block)
			return rondo.HandlerFunc(nil)
		})
	},
	"Dial": func(t *testing.T, e *rondo.Engine, block func()) {
		address := testkit.Listen(t, e, testkit.Echo)
		l := anyLoop(e)
		l.Post(func() {
			l.Dial("tcp", address, rondo.SocketOptions{}, func(*rondo.Conn, error) rondo.Handler { block(); return nil })
		})
	},
	"Dial, failed": func(t *testing.T, e *rondo.Engine, block func()) {
		l := anyLoop(e)
		l.Post(func() {
			l.Dial("tcp", "127.0.0.1:port", rondo.SocketOptions{}, func(*rondo.Conn, error) rondo.Handler { block(); return nil })
		})
	},
	"Packet": func(t *testing.T, e *rondo.Engine, block func()) {
		s, err := e.ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.PacketHandlerFunc(
			func(*rondo.PacketConn, []byte, netip.AddrPort) { block() }))
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("udp", s.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "hello")
	},
	"Trace.Turn":       func(t *testing.T, e *rondo.Engine, block func()) { keepBusy(t, e) },
	"Trace.AfterWrite": func(t *testing.T, e *rondo.Engine, block func()) { keepBusy(t, e) },
}

// keepBusy has some bytes echoed.
func keepBusy(t *testing.T, e *rondo.Engine) {
	c := testkit.ConnTo(t, e, testkit.Echo)
	go func() {
		for range 20 {
			io.WriteString(c, "x")
			time.Sleep(time.Millisecond)
		}
	}()
}
