package workers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/workers"
)

// world is a simulated network with a server on it.
type world struct {
	*testing.T
	net    *rondotest.Network
	engine *rondo.Engine
	pool   *workers.Pool
}

func newWorld(t *testing.T, o rondotest.Options, p *workers.Pool, e *rondo.Engine, open rondo.OpenFunc) *world {
	noWorkers(t) // of an earlier world: their end would confuse this one's network
	w := &world{T: t, net: rondotest.New(t, o), engine: e, pool: p}
	if e == nil {
		w.engine = &rondo.Engine{}
	}
	w.net.Engine(w.engine)
	w.net.Listen(w.engine, "tcp", ":7", open)
	return w
}

func (w *world) dial() *rondotest.Conn { return w.net.Dial("tcp", "127.0.0.1:7") }

// expect compares what the pool does.
func (w *world) expect(running, queued, blocked int) {
	w.Helper()
	var s workers.Stats
	for range 10_000 { // the network may not notice a goroutine that has just begun
		w.net.Run()
		s = w.pool.Stats()
		if s.Running == running && s.Queued == queued && s.Blocked == blocked {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
	w.Fatalf("%+v; want %d running, %d queued, %d blocked", s, running, queued, blocked)
}

func bySeed(t *testing.T, seeds uint64, f func(t *testing.T, seed uint64, o rondotest.Options)) {
	for seed := range seeds {
		f(t, seed+1, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
		if t.Failed() {
			t.Fatalf("seed %d", seed+1)
		}
	}
}

// TestOrder: whatever ends first, answers go back in the order of the questions, and none
// later than it could.
func TestOrder(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		const n = 8
		p, g := &workers.Pool{MaxPerConn: n, MaxWorkers: n}, newGate()
		w := newWorld(t, o, p, nil, reply(g.reply).open(p))
		c := w.dial()
		asked := numbers(0, n)
		c.Send(strings.Join(asked, "\n") + "\n")
		w.expect(n, 0, 0)
		random := rand.New(rand.NewPCG(seed, 0))
		done := map[int]bool{}
		told := 0
		for _, i := range random.Perm(n) {
			g.let(fmt.Sprint(i))
			done[i] = true
			for ; done[told]; told++ {
				c.Expect(fmt.Sprintf("re: %d\n", told))
			}
			w.net.Run()
			if c.Buffered() > 0 {
				t.Fatalf("an answer came before that to question %d", told)
			}
		}
		w.expect(0, 0, 0)
		w.net.Close()
	})
}

// TestHalfClose: a peer that ends its stream after its questions gets all the answers,
// also those to questions that were not yet read.
func TestHalfClose(t *testing.T) {
	bySeed(t, 40, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxPerConn: 1 + int(seed%4), MaxWorkers: 1 + int(seed%3), MaxQueue: int(seed%5) - 1}
		w := newWorld(t, o, p, nil, reply(answer).open(p))
		asked := numbers(0, 50)
		var conns []*rondotest.Conn
		for range 3 {
			c := w.dial()
			c.Send(strings.Join(asked, "\n") + "\n")
			c.CloseWrite()
			conns = append(conns, c)
		}
		for _, c := range conns {
			c.Expect(answers(asked))
			c.ExpectEOF()
			c.Close()
		}
		w.net.Run()
		if n := w.engine.Stats().Open; n != 0 {
			t.Errorf("%d connections are open", n)
		}
		w.net.Close()
	})
}

// ends is a session that hears of the end of the stream.
type ends struct {
	session
	eof func(c *rondo.Conn)
}

func (e *ends) EOF(c *rondo.Conn) { e.eof(c) }

// TestEOF: a Handler hears of the end of the stream when all is answered, and may answer
// more.
func TestEOF(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxPerConn: 2}
		calls := 0
		w := newWorld(t, o, p, nil, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			return &ends{session{q: q, reply: answer}, func(c *rondo.Conn) {
				if calls++; q.Pending() != 0 {
					t.Errorf("%d answers were due", q.Pending())
				}
				io.WriteString(c, "bye ")
				q.Submit(func(context.Context) ([]byte, error) { return []byte("bye\n"), nil })
				q.Close()
			}}
		}))
		c := w.dial()
		c.Send("1\n2\n3\n4\n5\n")
		c.CloseWrite()
		c.Expect(answers(numbers(1, 6)) + "bye bye\n")
		c.ExpectEOF()
		c.Close()
		w.net.Close()
		if calls != 1 {
			t.Errorf("EOF was called %d times", calls)
		}
	})
}

// TestShare: a connection of which MaxPerConn questions are unanswered is not read.
func TestShare(t *testing.T) {
	p, g := &workers.Pool{MaxPerConn: 2}, newGate()
	w := newWorld(t, rondotest.Options{Fragment: -1}, p, nil, reply(g.reply).open(p))
	c := w.dial()
	asked := numbers(10_000, 12_000)
	c.Send(strings.Join(asked[:3], "\n") + "\n")
	w.expect(2, 0, 0)
	read := w.engine.Stats().BytesIn
	for _, line := range asked[3:] {
		c.Send(line + "\n")
	}
	w.expect(2, 0, 0)
	if more := w.engine.Stats().BytesIn - read; more > 100 {
		t.Errorf("%d bytes were read of a connection whose share is full", more)
	}
	g.let(asked[0])
	c.Expect(answers(asked[:1]))
	w.expect(2, 0, 0)
	if most := g.mostInside(); most != 2 {
		t.Errorf("%d functions of a connection ran at once", most)
	}
	g.letAll()
	c.Expect(answers(asked[1:]))
	w.expect(0, 0, 0)
	if order := g.order(); len(order) != len(asked) {
		t.Errorf("%d functions were called", len(order))
	}
}

// TestOneAfterAnother: with a MaxPerConn of 1 work begins when the last answer was given.
func TestOneAfterAnother(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxPerConn: 1, MaxWorkers: 4}
		state := 0 // of the connection: without a lock
		w := newWorld(t, o, p, nil, reply(func(context.Context, string) ([]byte, error) {
			state++
			return fmt.Appendln(nil, state), nil
		}).open(p))
		c := w.dial()
		c.Send(strings.Repeat("next\n", 30))
		c.Expect(strings.Join(numbers(1, 31), "\n") + "\n")
		w.net.Close()
	})
}

// TestQueueBound: the pool takes no more than MaxQueue functions beside those that run,
// whoever asks, and whoever had to wait is served later, first come, first served.
func TestQueueBound(t *testing.T) {
	for _, queue := range []int{-1, 1, 3} {
		p, g := &workers.Pool{MaxWorkers: 1, MaxQueue: queue, MaxPerConn: 3}, newGate()
		w := newWorld(t, rondotest.Options{Seed: 1}, p, nil, reply(g.reply).open(p))
		const conns = 20
		var clients []*rondotest.Conn
		for i := range conns {
			c := w.dial()
			c.Send(fmt.Sprintf("%d.1\n%d.2\n%d.3\n%d.4\n", i, i, i, i))
			w.net.Run()
			clients = append(clients, c)
		}
		g.has(1)
		s := p.Stats()
		if s.Running != 1 || s.Queued != max(0, queue) || s.Blocked < conns-1-queue {
			t.Fatalf("queue of %d: %+v", queue, s)
		}
		g.letAll()
		for i, c := range clients {
			c.Expect(fmt.Sprintf("re: %d.1\nre: %d.2\nre: %d.3\nre: %d.4\n", i, i, i, i))
		}
		w.expect(0, 0, 0)
		if g.mostInside() > 1 {
			t.Errorf("%d functions ran at once", g.most)
		}
		first := slices.DeleteFunc(g.order(), func(s string) bool { return !strings.HasSuffix(s, ".1") })
		for i := range conns {
			if at := slices.Index(first, fmt.Sprintf("%d.1", i)); at < i-2 || at > i+2 {
				t.Errorf("queue of %d: served in the order %v", queue, first)
				break
			}
		}
		w.net.Close()
	}
}

// TestTurns: connections take turns, however much one of them has submitted.
func TestTurns(t *testing.T) {
	p, g := &workers.Pool{MaxWorkers: 1}, newGate()
	w := newWorld(t, rondotest.Options{}, p, nil, reply(g.reply).open(p))
	a, b := w.dial(), w.dial()
	a.Send("a1\na2\na3\na4\n")
	w.expect(1, 3, 0)
	b.Send("b1\nb2\n")
	w.expect(1, 5, 0)
	g.letAll()
	a.Expect(answers([]string{"a1", "a2", "a3", "a4"}))
	b.Expect(answers([]string{"b1", "b2"}))
	if got := fmt.Sprint(g.order()); got != "[a1 a2 b1 a3 b2 a4]" {
		t.Errorf("the order was %s", got)
	}
}

// TestErrors: answers that were due go out before an error closes the connection, be it
// Data's or that of a function.
func TestErrors(t *testing.T) {
	errTest := errors.New("for a test")
	for _, from := range []string{"work", "Data", "answer", "Close"} {
		bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
			p, g := &workers.Pool{}, newGate()
			var told error
			closed := 0
			w := newWorld(t, o, p, nil, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
				s := &session{q: q, closed: func(err error) { told = err; closed++ }}
				s.reply = func(ctx context.Context, line string) ([]byte, error) {
					if line == "bad" {
						return []byte("sorry\n"), errTest
					}
					return g.reply(ctx, line)
				}
				return &fails{session: s, from: from, err: errTest}
			}))
			c := w.dial()
			c.Send("1\n2\nbad\n3\n")
			w.net.Run()
			g.letAll()
			c.Expect(answers(numbers(1, 3)))
			if from == "work" {
				c.Expect("sorry\n")
			}
			c.ExpectEOF()
			c.Close()
			w.net.Run()
			want := errTest
			if from == "Close" {
				want = nil
			}
			if told != want || closed != 1 {
				t.Errorf("%s: Closed was called %d times, with %v", from, closed, told)
			}
			w.net.Close()
		})
	}
}

// fails is a session that fails at a line, in one of several ways.
type fails struct {
	*session
	from string
	err  error
}

func (f *fails) Data(c *rondo.Conn, in []byte) (int, error) {
	good, _, bad := bytes.Cut(in, []byte("bad\n"))
	if f.from == "work" || !bad {
		return f.session.Data(c, in)
	}
	n, _ := f.session.Data(c, good)
	switch {
	case n < len(good):
		return n, nil
	case f.from == "Data":
		return n, f.err
	case f.from == "Close":
		f.q.Close()
		f.q.Close()
		if f.q.Submit(answer1) {
			f.q.Conn().Write([]byte("taken after Close"))
		}
	default:
		f.q.Do(nil, func(*rondo.Conn) error { return f.err })
	}
	return len(in), nil
}

// mixed answers some lines at once, and others by work.
type mixed struct{ session }

func (m *mixed) Data(c *rondo.Conn, in []byte) (n int, err error) {
	for line := range bytes.Lines(in) {
		if line[len(line)-1] != '\n' || m.q.Full() {
			return n, nil
		}
		switch {
		case bytes.HasPrefix(line, []byte("quick")):
			fmt.Fprintf(m.q, "re: %s", line)
		case bytes.HasPrefix(line, []byte("do")):
			m.q.Do(nil, func(c *rondo.Conn) error { _, err := fmt.Fprintf(c, "re: do\n"); return err })
		default:
			if _, err := m.session.Data(c, line); err != nil {
				return n, err
			}
		}
		n += len(line)
	}
	return n, nil
}

// TestWrite: answers without work keep their places.
func TestWrite(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxPerConn: 1 + int(seed%5)}
		w := newWorld(t, o, p, nil, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			return &mixed{session{q: q, reply: answer}}
		}))
		random := rand.New(rand.NewPCG(seed, 1))
		var asked []string
		for i := range 60 {
			asked = append(asked, []string{"quick", "do", fmt.Sprint("slow", i)}[random.IntN(3)])
		}
		c := w.dial()
		c.Send(strings.Join(asked, "\n") + "\n")
		c.CloseWrite()
		c.Expect(answers(asked))
		c.ExpectEOF()
		c.Close()
		w.net.Close()
	})
}

// TestWriteIsBounded: what waits for answers before it is bounded by MaxOutput, and by
// HighWater stops the reading.
func TestWriteIsBounded(t *testing.T) {
	p, g := &workers.Pool{}, newGate()
	var q *workers.Queue
	e := &rondo.Engine{MaxOutput: 100, HighWater: 50, LowWater: 10}
	w := newWorld(t, rondotest.Options{}, p, e, p.Open(func(_ *rondo.Conn, queue *workers.Queue) rondo.Handler {
		q = queue
		return &session{q: q, reply: g.reply}
	}))
	c := w.dial()
	c.Send("1\n")
	w.expect(1, 0, 0)
	w.do(func() {
		for i := range 10 {
			n, err := q.Write([]byte("ten bytes\n"))
			if n != 10 || err != nil || q.Full() != (i >= 5) || q.Pending() != 2 {
				t.Errorf("write %d: %d, %v; full %v, %d pending", i, n, err, q.Full(), q.Pending())
			}
		}
		if n, err := q.Write([]byte("x")); n != 0 || err != rondo.ErrOutputFull {
			t.Errorf("too much: %d, %v", n, err)
		}
	})
	g.letAll()
	c.Expect("re: 1\n" + strings.Repeat("ten bytes\n", 10))
	w.do(func() {
		if q.Full() || q.Pending() != 0 {
			t.Errorf("full %v, %d pending", q.Full(), q.Pending())
		}
	})
}

// bulky is a session that answers the line "bulk" at once, at length.
type bulky struct{ session }

func (b *bulky) Data(c *rondo.Conn, in []byte) (n int, err error) {
	for line := range bytes.Lines(in) {
		taken := len(line)
		if string(line) != "bulk\n" {
			taken, err = b.session.Data(c, line)
		} else if _, err = b.q.Write(bulk); err == rondo.ErrOutputFull {
			return n, nil
		}
		if err != nil || taken == 0 {
			return n, err
		}
		n += taken
	}
	return n, nil
}

var bulk = bytes.Repeat([]byte("bulk "), 18)

// TestWriteThatIsRefused: a Handler whose Queue.Write had no room is called again, with what
// it has left.
func TestWriteThatIsRefused(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p, g := &workers.Pool{}, newGate()
		e := &rondo.Engine{MaxOutput: 100, HighWater: 100, LowWater: 10}
		w := newWorld(t, o, p, e, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			return &bulky{session{q: q, reply: g.reply}}
		}))
		c := w.dial()
		c.Send("1\nbulk\nbulk\n2\nbulk\n")
		w.expect(1, 0, 0)
		g.letAll()
		c.Expect("re: 1\n" + string(bulk) + string(bulk) + "re: 2\n" + string(bulk))
		w.net.Close()
	})
}

// do runs f on the engine's first loop.
func (w *world) do(f func()) {
	w.Helper()
	for l := range w.engine.Loops() {
		done := false
		if err := l.Post(func() { defer func() { done = true }(); f() }); err != nil {
			w.Fatal(err)
		}
		w.net.Until(func() bool { return done })
		return
	}
}

// producer submits by itself, as much as it can, and hears of room.
type producer struct {
	q     *workers.Queue
	left  int
	bound func() // is called at work
}

func (*producer) Data(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }
func (*producer) Closed(*rondo.Conn, error)                  {}
func (p *producer) Room(*rondo.Conn)                         { p.produce() }

func (p *producer) produce() {
	for p.left > 0 && p.q.Submit(func(context.Context) ([]byte, error) { p.bound(); return []byte("x"), nil }) {
		if p.left--; p.left == 0 {
			p.q.Close()
		}
	}
}

// TestRoom: whoever was stopped by a full queue outside of Data is called again, be it
// full of its own work, of others', or its output.
func TestRoom(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxWorkers: 2, MaxQueue: 1, MaxPerConn: 2 + int(seed%3)}
		e := &rondo.Engine{}
		if seed%2 == 0 {
			e.MaxOutput, e.HighWater, e.LowWater = 10, 3, 1
		}
		w := newWorld(t, o, p, e, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
			h := &producer{q: q, left: 200, bound: func() {
				if s := p.Stats(); s.Running > 2 || s.Running+s.Queued > 3 {
					t.Errorf("%+v", s)
				}
			}}
			c.Loop().AfterFunc(time.Millisecond, h.produce)
			return h
		}))
		var conns []*rondotest.Conn
		for range 5 {
			conns = append(conns, w.dial())
		}
		for _, c := range conns {
			c.Expect(strings.Repeat("x", 200))
			c.ExpectEOF()
			c.Close()
		}
		w.expect(0, 0, 0)
		w.net.Close()
	})
}

// TestUnusedRoom: a connection that was to have room and does not want it now, or is gone,
// does not keep it from the others.
func TestUnusedRoom(t *testing.T) {
	for _, way := range []string{"paused", "gone", "taken away, and gone"} {
		bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
			p, g := &workers.Pool{MaxWorkers: 1, MaxQueue: -1}, newGate()
			queues := map[string]*workers.Queue{} // by the peer's address
			w := newWorld(t, o, p, nil, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
				queues[c.RemoteAddr().String()] = q
				return &session{q: q, reply: g.reply}
			}))
			var clients []*rondotest.Conn
			for i := range 5 {
				c := w.dial()
				c.Send(fmt.Sprintf("%d\n", i))
				w.net.Run()
				clients = append(clients, c)
			}
			w.expect(1, 0, 4)
			for i := 1; i < 4; i++ {
				q := queues[clients[i].LocalAddr().String()]
				w.do(func() {
					switch way {
					case "paused":
						q.Pause()
						return
					case "taken away, and gone":
						q.Conn().SetHandler(rondo.HandlerFunc((*rondo.Conn).Write))
					}
					q.Conn().Abort(nil)
				})
			}
			w.net.Run()
			g.letAll()
			clients[0].Expect("re: 0\n")
			clients[4].Expect("re: 4\n")
			w.expect(0, 0, 0)
			for i := 1; i < 4; i++ {
				w.do(func() {
					q := queues[clients[i].LocalAddr().String()]
					if way == "paused" {
						q.Resume()
					} else if q.Submit(answer1) {
						t.Error("work was taken for a connection that is gone")
					}
				})
				if way == "paused" {
					clients[i].Expect(fmt.Sprintf("re: %d\n", i))
				}
			}
			w.expect(0, 0, 0)
			w.net.Close()
		})
	}
}

// TestPause: Pause holds though there is room, and Resume does not undo that there is
// none. The end of the stream is noticed after Resume.
func TestPause(t *testing.T) {
	p, g := &workers.Pool{MaxPerConn: 1}, newGate()
	var q *workers.Queue
	w := newWorld(t, rondotest.Options{}, p, nil, p.Open(func(_ *rondo.Conn, queue *workers.Queue) rondo.Handler {
		q = queue
		return &session{q: q, reply: g.reply}
	}))
	c := w.dial()
	c.Send("1\n2\n3\n")
	c.CloseWrite()
	w.expect(1, 0, 0)
	w.do(func() { q.Pause() })
	g.let("1")
	c.Expect("re: 1\n")
	w.expect(0, 0, 0)
	w.do(func() { q.Resume() })
	w.expect(1, 0, 0)
	w.do(func() { q.Pause(); q.Resume() })
	w.expect(1, 0, 0)
	if got := len(g.order()); got != 2 {
		t.Errorf("%d functions were called, want 2", got)
	}
	w.do(func() { q.Pause() })
	g.letAll()
	c.Expect("re: 2\n")
	w.net.Advance(time.Minute)
	if n := w.engine.Stats().Open; n != 1 {
		t.Fatalf("%d connections are open", n)
	}
	w.do(func() { q.Resume() })
	c.Expect("re: 3\n")
	c.ExpectEOF()
}

// TestPauseAtTheEnd: the end of the stream, known before Pause, is told after Resume.
func TestPauseAtTheEnd(t *testing.T) {
	p, g := &workers.Pool{}, newGate()
	var q *workers.Queue
	w := newWorld(t, rondotest.Options{}, p, nil, p.Open(func(_ *rondo.Conn, queue *workers.Queue) rondo.Handler {
		q = queue
		return &session{q: q, reply: g.reply}
	}))
	c := w.dial()
	c.Send("1\n")
	c.CloseWrite()
	w.expect(1, 0, 0)
	w.do(func() { q.Pause() })
	g.letAll()
	c.Expect("re: 1\n")
	w.net.Advance(time.Minute)
	if n := w.engine.Stats().Open; n != 1 {
		t.Fatalf("%d connections are open", n)
	}
	w.do(func() { q.Resume() })
	c.ExpectEOF()
}

// TestCloseWrite: when the Handler ends its output the answers are dropped, and nothing
// else.
func TestCloseWrite(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxPerConn: 2}
		s := &session{reply: answer}
		told, closed := errors.New("nothing"), 0
		w := newWorld(t, o, p, nil, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
			s.q = q
			s.closed = func(err error) { told = err; closed++ }
			io.WriteString(c, "not a word more\n")
			c.CloseWrite()
			return s
		}))
		c := w.dial()
		c.Send("1\n2\n3\n")
		c.Expect("not a word more\n")
		c.ExpectEOF()
		c.Send("4\n5\n")
		w.net.Run()
		if s.lines != 5 || closed != 0 {
			t.Errorf("%d lines were taken, %d closed", s.lines, closed)
		}
		c.CloseWrite()
		w.net.Advance(time.Minute)
		if closed != 1 || told != nil {
			t.Errorf("Closed was called %d times, with %v", closed, told)
		}
		w.net.Close()
	})
}

// TestReentrancy: work is submitted from anywhere on the loop.
func TestReentrancy(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxPerConn: 2}
		const deep = 100
		w := newWorld(t, o, p, nil, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
			var next func(n int) func(*rondo.Conn) error
			next = func(n int) func(*rondo.Conn) error {
				return func(c *rondo.Conn) error {
					fmt.Fprintln(c, n)
					again := func() {
						if !q.Do(func(context.Context) {}, next(n+1)) {
							t.Errorf("%d was refused", n+1)
						}
					}
					switch {
					case n == deep:
						q.Close()
						fmt.Fprintln(c, "the last words")
					case n%4 == 0:
						again()
					case n%4 == 1:
						c.WriteOwned(nil, again)
					case n%4 == 2:
						c.Loop().Defer(again)
					default:
						c.Loop().AfterFunc(time.Millisecond, again)
					}
					return nil
				}
			}
			if !q.Do(func(context.Context) {}, next(0)) { // before there is a Handler
				t.Error("the first was refused")
			}
			return &session{q: q, reply: answer}
		}))
		c := w.dial()
		c.Expect(strings.Join(numbers(0, deep+1), "\n") + "\nthe last words\n")
		c.ExpectEOF()
		c.Close()
		w.net.Close()
	})
}

// TestSetHandler: another Handler gets what the old one left, with the same Queue.
func TestSetHandler(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{MaxPerConn: 3}
		told := 0
		w := newWorld(t, o, p, nil, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			second := &ends{session{q: q, reply: func(_ context.Context, line string) ([]byte, error) {
				return []byte("second: " + line + "\n"), nil
			}}, func(*rondo.Conn) { told++; q.Close() }}
			first := &session{q: q}
			first.reply = func(ctx context.Context, line string) ([]byte, error) { return answer(ctx, line) }
			return &upgrades{first, second}
		}))
		c := w.dial()
		c.Send("1\n2\nupgrade\n3\n4\n5\n6\n7\n")
		c.CloseWrite()
		c.Expect("re: 1\nre: 2\nre: upgrade\n")
		for i := 3; i < 8; i++ {
			c.Expect(fmt.Sprintf("second: %d\n", i))
		}
		c.ExpectEOF()
		c.Close()
		w.net.Close()
		if told != 1 {
			t.Errorf("EOF was called %d times", told)
		}
	})
}

// TestSetHandlerAtTheEnd: a Handler that comes after the end of the stream hears of it too.
func TestSetHandlerAtTheEnd(t *testing.T) {
	bySeed(t, 10, func(t *testing.T, seed uint64, o rondotest.Options) {
		p := &workers.Pool{}
		told := ""
		w := newWorld(t, o, p, nil, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			s := session{q: q, reply: answer}
			second := &ends{s, func(*rondo.Conn) { told += "second "; q.Close() }}
			return &ends{s, func(*rondo.Conn) {
				told += "first "
				q.SetHandler(second)
				q.Submit(answer1)
			}}
		}))
		c := w.dial()
		c.Send("0\n")
		c.CloseWrite()
		c.Expect("re: 0\n1\n")
		c.ExpectEOF()
		if told != "first second " {
			t.Errorf("told were: %s", told)
		}
		w.net.Close()
	})
}

// upgrades is a session that ends with a line.
type upgrades struct {
	*session
	to rondo.Handler
}

func (u *upgrades) Data(c *rondo.Conn, in []byte) (int, error) {
	end := bytes.IndexByte(in, '\n')
	if end < 0 {
		return 0, nil
	}
	n, err := u.session.Data(c, in[:end+1])
	if n > 0 && string(in[:end]) == "upgrade" {
		u.q.SetHandler(u.to)
	} else if n > 0 && n < len(in) {
		more, err := u.Data(c, in[n:])
		return n + more, err
	}
	return n, err
}

// What is missing is told where it should have been given.
func TestNothingGiven(t *testing.T) {
	for want, f := range map[string]func(){
		"workers: Pool.Open was given no function": func() { new(workers.Pool).Open(nil) },
		"workers: Pool.Go was given no function":   func() { new(workers.Pool).Go(nil) },
	} {
		func() {
			defer func() {
				if text := recover(); text != want {
					t.Errorf("panicked with %v, want %s", text, want)
				}
			}()
			f()
		}()
	}
}
