package workers_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/workers"
)

// canceled notes how a context ends.
type canceled struct {
	causes  chan error
	started chan bool
}

func newCanceled() *canceled {
	return &canceled{make(chan error, 100), make(chan bool, 100)}
}

// reply waits for the end of its context.
func (c *canceled) reply(ctx context.Context, line string) ([]byte, error) {
	c.started <- true
	<-ctx.Done()
	c.causes <- context.Cause(ctx)
	return []byte("too late\n"), nil
}

// TestConnEnds: however a connection ends, its work is dropped: what runs is canceled,
// and what waits does not begin.
func TestConnEnds(t *testing.T) {
	errTest := errors.New("for a test")
	for name, test := range map[string]struct {
		end  func(w *world, c *rondotest.Conn, at *rondo.Conn)
		want error
	}{
		"peer resets": {func(_ *world, c *rondotest.Conn, _ *rondo.Conn) { c.Reset() }, nil},
		"Abort":       {func(w *world, _ *rondotest.Conn, at *rondo.Conn) { w.do(func() { at.Abort(errTest) }) }, errTest},
		"CloseWith":   {func(w *world, _ *rondotest.Conn, at *rondo.Conn) { w.do(func() { at.CloseWith(errTest) }) }, errTest},
		"Close":       {func(w *world, _ *rondotest.Conn, at *rondo.Conn) { w.do(at.Close) }, workers.ErrClosed},
		"Engine": {func(w *world, _ *rondotest.Conn, _ *rondo.Conn) {
			w.net.Await(func() { w.engine.Close() })
		}, workers.ErrClosed},
		"Detach": {func(w *world, _ *rondotest.Conn, at *rondo.Conn) {
			w.do(func() {
				at.Detach(func(nc net.Conn, err error) {
					if err != nil {
						t.Error(err)
						return
					}
					nc.Close()
				})
			})
		}, rondo.ErrDetached},
	} {
		bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
			p, work := &workers.Pool{MaxWorkers: 2}, newCanceled()
			var at *rondo.Conn
			closed := 0
			w := newWorld(t, o, p, nil, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
				at = c
				return &session{q: q, reply: work.reply, closed: func(error) {
					closed++
					if q.Submit(answer1) || q.Do(nil, nil) || !q.Full() || q.Pending() != 0 {
						t.Error("work was taken in Closed")
					}
					if _, err := q.Write([]byte("x")); err != workers.ErrClosed {
						t.Errorf("Write in Closed: %v", err)
					}
				}}
			}))
			c := w.dial()
			c.Send("1\n2\n3\n4\n")
			w.expect(2, 2, 0)
			test.end(w, c, at)
			if name != "Engine" {
				w.net.Advance(time.Minute)
				w.expect(0, 0, 0)
			}
			p.Wait()
			for range 2 {
				cause := <-work.causes
				if test.want != nil && cause != test.want || cause == nil || cause == context.Canceled {
					t.Errorf("%s: the work's context was canceled with %v, want %v", name, cause, test.want)
				}
			}
			if len(work.started) != 2 || closed != 1 {
				t.Errorf("%s: %d functions began, Closed was called %d times", name, len(work.started), closed)
			}
			w.net.Close()
		})
	}
}

// TestCloseDropsAtOnce: what a connection's Close drops is dropped though the peer does not
// close, and an answer that comes then is not given.
func TestCloseDropsAtOnce(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p, work, g := &workers.Pool{MaxWorkers: 2}, newCanceled(), newGate()
		var at *rondo.Conn
		var q *workers.Queue
		closed := false
		w := newWorld(t, o, p, nil, p.Open(func(c *rondo.Conn, queue *workers.Queue) rondo.Handler {
			at, q = c, queue
			q.Do(func(context.Context) { g.pass("first") }, func(*rondo.Conn) error {
				t.Error("an answer was given after Close")
				return nil
			})
			return &session{q: q, reply: work.reply, closed: func(error) { closed = true }}
		}))
		c := w.dial()
		c.Send("1\n2\n3\n")
		w.expect(2, 2, 0)
		w.do(func() {
			at.Close()
			if q.Submit(answer1) || q.Do(nil, nil) {
				t.Error("work was taken after Close")
			}
		})
		w.expect(1, 0, 0)
		if cause := <-work.causes; cause != workers.ErrClosed {
			t.Errorf("the cause is %v", cause)
		}
		g.letAll()
		p.Wait()
		w.net.Run()
		if len(work.started) != 1 || closed {
			t.Errorf("%d functions began; the connection is gone: %v", len(work.started), closed)
		}
		w.net.Close()
	})
}

func answer1(context.Context) ([]byte, error) { return []byte("1\n"), nil }

// TestDropsNobodyElse: when a connection ends its places in the pool are the others'.
func TestDropsNobodyElse(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p, g := &workers.Pool{MaxWorkers: 1, MaxQueue: 2, MaxPerConn: 2}, newGate()
		w := newWorld(t, o, p, nil, reply(g.reply).open(p))
		first := w.dial()
		first.Send("first\n")
		w.expect(1, 0, 0)
		var conns []*rondotest.Conn
		for i := range 6 {
			c := w.dial()
			c.Send(fmt.Sprintf("%d\n", i))
			w.net.Run()
			conns = append(conns, c)
		}
		w.expect(1, 2, 4)
		for i, c := range conns {
			if i != 4 {
				c.Reset()
				w.net.Run()
			}
		}
		w.expect(1, 1, 0)
		g.letAll()
		first.Expect("re: first\n")
		conns[4].Expect("re: 4\n")
		w.expect(0, 0, 0)
		w.net.Close()
	})
}

// TestLinger: a peer that takes no answers cannot keep a connection that is to close, nor
// Engine.Shutdown, for longer than Linger after the work is done.
func TestLinger(t *testing.T) {
	for _, end := range []string{"half-close", "Close", "Shutdown", "EOF"} {
		bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
			p, g := &workers.Pool{}, newGate()
			e := &rondo.Engine{HighWater: 1 << 10, LowWater: 1}
			var told error
			closed := 0
			var q *workers.Queue
			w := newWorld(t, o, p, e, p.Open(func(_ *rondo.Conn, queue *workers.Queue) rondo.Handler {
				q = queue
				s := session{q: q, closed: func(err error) { told = err; closed++ }}
				s.reply = func(_ context.Context, line string) ([]byte, error) {
					g.pass(line)
					return make([]byte, 100<<10), nil
				}
				if end == "EOF" {
					return &ends{s, func(*rondo.Conn) { t.Error("EOF was called before all is answered") }}
				}
				return &s
			}))
			c := w.dial()
			c.Send("1\n2\n3\n4\n")
			w.expect(4, 0, 0)
			over := make(chan error, 1)
			switch end {
			case "half-close", "EOF":
				c.CloseWrite()
			case "Close":
				w.do(q.Close)
			case "Shutdown":
				go func() { over <- e.Shutdown(context.Background()) }()
			}
			w.net.Advance(time.Minute)
			if closed > 0 {
				t.Errorf("%s: the connection closed while work was under way, with %v", end, told)
			}
			g.letAll()
			p.Wait()
			w.net.Run()
			w.net.Advance(4 * time.Second)
			if closed > 0 {
				t.Errorf("%s: the connection closed at once, with %v", end, told)
			}
			w.net.Advance(10 * time.Second)
			want := 1
			if end == "EOF" {
				want = 0 // the Handler decides
			}
			if closed != want || want == 1 && told != rondo.ErrLinger {
				t.Errorf("%s: Closed was called %d times, with %v", end, closed, told)
			}
			if end == "Shutdown" {
				w.net.Until(func() bool { return len(over) > 0 })
			}
			w.net.Close()
		})
	}
}

// TestTakenAwayCancels: when a connection was taken away and is gone, work that still runs
// is canceled as soon as other work of the connection has ended.
func TestTakenAwayCancels(t *testing.T) {
	p, g, work := &workers.Pool{}, newGate(), newCanceled()
	var q *workers.Queue
	w := newWorld(t, rondotest.Options{}, p, nil, p.Open(func(_ *rondo.Conn, queue *workers.Queue) rondo.Handler {
		q = queue
		return &session{q: q, reply: func(ctx context.Context, line string) ([]byte, error) {
			if line == "first" {
				return g.reply(ctx, line)
			}
			return work.reply(ctx, line)
		}}
	}))
	c := w.dial()
	c.Send("first\nsecond\n")
	w.expect(2, 0, 0)
	w.do(func() {
		q.Conn().SetHandler(rondo.HandlerFunc((*rondo.Conn).Write))
		q.Conn().Abort(nil)
	})
	w.net.Run()
	g.letAll()
	if cause := <-work.causes; cause != workers.ErrClosed {
		t.Errorf("the cause is %v", cause)
	}
	p.Wait()
}

// TestTakenAway: another Handler takes the connection away from its Queue. Answers under
// way are given all the same, and nothing is lost when it closes.
func TestTakenAway(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		p, g := &workers.Pool{MaxPerConn: 3, MaxWorkers: 2, MaxQueue: 1}, newGate()
		var loop *rondo.Loop
		w := newWorld(t, o, p, nil, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
			loop = c.Loop()
			return &session{q: q, reply: g.reply}
		}))
		c, other := w.dial(), w.dial()
		other.Send("other\n")
		w.expect(1, 0, 0)
		c.Send("1\n2\nrest\n")
		w.expect(2, 1, 1)
		w.do(func() {
			for conn := range loop.Conns() {
				if conn.RemoteAddr().String() == c.LocalAddr().String() {
					conn.SetHandler(rondo.HandlerFunc((*rondo.Conn).Write))
				}
			}
		})
		g.let("1")
		c.Expect("re: 1\nrest\n") // which is echoed when there is room again
		if seed%2 == 0 {
			c.Reset()
		}
		g.let("2")
		if seed%2 == 1 {
			c.Expect("re: 2\n")
		}
		w.net.Run()
		g.letAll()
		other.Expect("re: other\n")
		w.expect(0, 0, 0)
		other.Send("again\nand again\n")
		other.Expect("re: again\nre: and again\n")
		w.net.Close()
		p.Wait()
	})
}

// TestTakenAwayWhenFull: answers that wait for a peer who does not read go out when
// another Handler takes the connection away; the end of the peer's stream is that one's.
func TestTakenAwayWhenFull(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		const size = 100 << 10
		p, g := &workers.Pool{}, newGate()
		var q *workers.Queue
		o.Buffer = 1 << 10
		w := newWorld(t, o, p, &rondo.Engine{HighWater: 1 << 10, LowWater: 1}, p.Open(func(_ *rondo.Conn, queue *workers.Queue) rondo.Handler {
			q = queue
			return &session{q: q, reply: func(_ context.Context, line string) ([]byte, error) {
				g.pass(line)
				return make([]byte, size), nil
			}}
		}))
		c := w.dial()
		c.Send("1\n2\n3\n")
		c.CloseWrite()
		w.expect(3, 0, 0)
		if seed%2 == 0 {
			g.letAll()
			p.Wait()
			w.net.Run()
		}
		ended, closed := 0, 0
		w.do(func() {
			q.Conn().SetHandler(&ends{session{closed: func(error) { closed++ }}, func(*rondo.Conn) { ended++ }})
		})
		g.letAll()
		p.Wait()
		w.net.Run()
		c.Expect(string(make([]byte, 3*size)))
		w.net.Advance(time.Minute)
		if ended != 1 || closed != 0 {
			t.Errorf("EOF was called %d times, Closed %d times", ended, closed)
		}
		w.net.Close()
	})
}

// TestMove: a connection moves to another loop in the answer of its last work, and
// takes what was not read along.
func TestMove(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		e := &rondo.Engine{Backend: backend, NumLoops: 2}
		p := &workers.Pool{}
		var loops []*rondo.Loop
		var open rondo.OpenFunc
		open = p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
			id := c.Loop().ID()
			s := &session{q: q, reply: func(_ context.Context, line string) ([]byte, error) {
				return fmt.Appendf(nil, "loop %d: %s\n", id, line), nil
			}}
			return &moves{session: s, open: open, to: func() *rondo.Loop { return loops[1-c.Loop().ID()] }}
		})
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		for l := range e.Loops() {
			loops = append(loops, l)
		}
		address := serve(t, e, open)
		c := dial(t, address)
		got := strings.Fields(strings.ReplaceAll(ask(t, c, "1", "2", "move", "3", "move", "4", "5"), "loop ", ""))
		if len(got) != 10 {
			t.Fatalf("the answers are %q", got)
		}
		home, other := got[0], map[string]string{"0:": "1:", "1:": "0:"}[got[0]]
		if want := fmt.Sprint([]string{home, "1", home, "2", other, "3", home, "4", home, "5"}); fmt.Sprint(got) != want {
			t.Errorf("the answers are %v, want %v", got, want)
		}
		p.Wait()
	})
}

// moves is a session that goes to another loop when it is told to.
type moves struct {
	*session
	open rondo.OpenFunc
	to   func() *rondo.Loop
}

func (m *moves) Data(c *rondo.Conn, in []byte) (int, error) {
	before, _, move := bytes.Cut(in, []byte("move\n"))
	n, err := m.session.Data(c, before)
	if !move || n < len(before) {
		return n, err
	}
	m.q.Pause()
	m.q.Do(nil, func(c *rondo.Conn) error { return c.Move(m.to(), m.open) })
	return n + len("move\n"), nil
}

// TestPanics: a function that panics, or calls runtime.Goexit, ends its connection, as a
// Handler's panic does, and nothing else.
func TestPanics(t *testing.T) {
	errTest := errors.New("for a test")
	eachBackend(t, func(t *testing.T, backend string) {
		leakless(t)
		log := &testkit.Log{}
		e := &rondo.Engine{Backend: backend, NumLoops: 1, Logger: log.Logger()}
		p, g := &workers.Pool{MaxWorkers: 2}, newGate()
		closed := make(chan error, 100)
		address := serve(t, e, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
			ref := c.Ref()
			s := &session{q: q, closed: func(err error) { closed <- err }}
			s.reply = func(ctx context.Context, line string) ([]byte, error) {
				switch line {
				case "panic":
					panic(errTest)
				case "told":
					panic(&rondo.PanicError{Value: "of another goroutine", Stack: []byte("its stack")})
				case "exit":
					runtime.Goexit()
				case "answer":
					ref.Do(func(*rondo.Conn) { q.Do(nil, func(*rondo.Conn) error { panic(errTest) }) })
				case "hold":
					g.pass(line)
				}
				return answer(ctx, line)
			}
			return s
		}))
		other := dial(t, address)
		io.WriteString(other, "hold\n")
		g.has(1)
		for i, line := range []string{"panic", "exit", "told", "answer", "panic", "exit"} {
			c := dial(t, address)
			io.WriteString(c, line+"\n1\n2\n3\n4\n")
			io.Copy(io.Discard, c)
			err := <-closed
			var p *rondo.PanicError
			if !errors.As(err, &p) {
				t.Errorf("%s: Closed was given %v", line, err)
				continue
			}
			wants := map[string]string{"panic": "for a test", "answer": "for a test", "told": "of another goroutine", "exit": "runtime.Goexit"}
			if !strings.Contains(err.Error(), wants[line]) || line != "told" && !strings.Contains(string(p.Stack), "TestPanics") {
				t.Errorf("%s: Closed was given %v\n%s", line, err, p.Stack)
			}
			if strings.Contains(wants[line], "test") != errors.Is(err, errTest) {
				t.Errorf("%s: the error is %v", line, err)
			}
			until(t, "the engine to count the panic", func() bool { return e.Stats().Panics == uint64(i+1) })
		}
		g.letAll()
		if got := ask(t, other, "1"); got != "re: hold\nre: 1\n" {
			t.Errorf("another connection got %q", got)
		}
		if n := strings.Count(log.String(), "a handler panicked"); n != 6 {
			t.Errorf("%d panics were logged:\n%s", n, log)
		}
		p.Wait()
		if s := p.Stats(); s != (workers.Stats{}) {
			t.Errorf("in the end: %+v", s)
		}
	})
}

// TestRepanic: with Engine.Repanic a panic in a function ends the program, with the
// stack of the function.
func TestRepanic(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", exe, "./testdata/repanic").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for mode, want := range map[string]string{"panic": "main.work(", "go": "main.work(", "exit": "the program goes on"} {
		cmd := exec.Command(exe, mode)
		cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
		out, err := cmd.CombinedOutput()
		if (err == nil) != (mode == "exit") || !strings.Contains(string(out), want) ||
			mode != "exit" && !strings.Contains(string(out), "panic: on purpose") {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}

// TestPoolClose: what was taken before is answered, and who comes later is closed.
func TestPoolClose(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p, g := &workers.Pool{MaxWorkers: 1, MaxQueue: 2, MaxPerConn: 2}, newGate()
		var told []error
		w := newWorld(t, o, p, nil, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			return &session{q: q, reply: g.reply, closed: func(err error) { told = append(told, err) }}
		}))
		a, b, idle := w.dial(), w.dial(), w.dial()
		a.Send("1\n2\n")
		w.expect(1, 1, 0)
		b.Send("3\n4\n") // the pool has room for one
		w.expect(1, 2, 1)
		ran := make(chan bool, 1)
		if err := p.Go(func() { ran <- true }); err != nil {
			t.Fatal(err)
		}
		p.Close()
		p.Close()
		if err := p.Go(func() {}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Go of a closed pool: %v", err)
		}
		w.expect(1, 2, 0)
		g.letAll()
		a.Expect("re: 1\nre: 2\n")
		b.Expect("re: 3\n")
		b.ExpectEOF()
		b.Close()
		w.net.Run()
		p.Wait()
		if len(ran) != 1 {
			t.Error("Go's function was not called")
		}
		a.CloseWrite()
		a.ExpectEOF()
		a.Close()
		w.net.Run()
		idle.Send("5\n")
		idle.ExpectEOF()
		idle.Close()
		w.net.Run()
		if len(told) != 3 || fmt.Sprint(told) != fmt.Sprint([]error{workers.ErrClosed, nil, workers.ErrClosed}) {
			t.Errorf("Closed was given %v", told)
		}
		w.net.Close()
	})
}

// TestGo: functions of goroutines that wait for them wait behind each other.
func TestGo(t *testing.T) {
	leakless(t)
	const n, most = 1000, 3
	p := &workers.Pool{MaxWorkers: most, MaxQueue: -1}
	var running, ran atomic.Int32
	done := make(chan bool, n)
	for i := range n {
		err := p.Go(func() {
			defer func() { done <- true }()
			if r := running.Add(1); r > most {
				t.Errorf("%d functions run at once", r)
			}
			defer running.Add(-1)
			if ran.Add(1); i%100 == 0 {
				runtime.Goexit()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.Wait()
	if len(done) != n || ran.Load() != n {
		t.Errorf("%d functions ran, %d ended", ran.Load(), len(done))
	}
	if s := p.Stats(); s != (workers.Stats{}) {
		t.Errorf("in the end: %+v", s)
	}
}

// TestAwait: a coroutine waits for a function of a pool.
func TestAwait(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		e := &rondo.Engine{Backend: backend, NumLoops: 2}
		p := &workers.Pool{MaxWorkers: 2, MaxQueue: -1}
		address := serve(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			lines := bufio.NewScanner(c)
			for lines.Scan() {
				ctx, line := co.Context(), lines.Text()
				re, err := coro.AwaitOn(co, p.Go, func() ([]byte, error) { return answer(ctx, line) })
				if err != nil {
					return err
				}
				c.Write(re)
			}
			return lines.Err()
		}))
		got := make(chan string)
		const conns = 20
		for range conns {
			c := dial(t, address)
			go func() { got <- ask(t, c, numbers(0, 20)...) }()
		}
		for range conns {
			if s := <-got; s != answers(numbers(0, 20)) {
				t.Errorf("the answers are %q", s)
			}
		}
		p.Wait()
	})
}
