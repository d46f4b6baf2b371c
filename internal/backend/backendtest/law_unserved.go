package backendtest

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// Laws of connections that have no Handler: those that are refused, and those that are not
// open yet.

func refuseNow(*rondo.Conn) rondo.Handler { return nil }

// otherLoop returns another loop of the connection's engine.
func otherLoop(c *rondo.Conn) *rondo.Loop {
	for l := range c.Loop().Engine().Loops() {
		if l != c.Loop() {
			return l
		}
	}
	return nil
}

// A sated connection has written until the system took no more at once, 20 kB at least and
// 200 kB at most, which is more than a peer's system has room for while the peer reads nothing.
type sated struct {
	w     World
	wrote atomic.Int64 // 0: nothing yet
}

func (s *sated) fill(c *rondo.Conn) {
	const piece = 20_000
	n := 0
	for n == 0 || n < 200_000 && c.Buffered() == 0 { // TLS may have output of its own
		if _, err := c.Write(pattern(n + piece)[n:]); err != nil {
			s.w.Errorf("Write: %v", err)
		}
		c.Flush()
		n += piece
	}
	s.wrote.Store(int64(n))
}

// expect dials a connection that fills itself and is refused. The peer, which goes on sending,
// gets every byte.
func (s *sated) expect(addr net.Addr) {
	s.w.Helper()
	p := s.w.Dial(addr)
	send(s.w, p, []byte("x"))
	s.w.Until("the output", func() bool { return s.wrote.Load() > 0 })
	send(s.w, p, pattern(1000))
	expect(s.w, p, pattern(int(s.wrote.Swap(0))))
	expectEOF(s.w, p)
	p.Close()
}

// refusedOutputArrives: a refused connection loses none of its output, even if all of it is
// with the system already, and the peer still sends.
func refusedOutputArrives(w World) {
	s := &sated{w: w}
	e := &rondo.Engine{NumLoops: 1}
	s.expect(w.Listen(e, func(c *rondo.Conn) rondo.Handler { s.fill(c); return nil }))
	for _, use := range []func(c *rondo.Conn){
		func(c *rondo.Conn) { c.Use(refuseNow) },
		func(c *rondo.Conn) { c.Use(nil, func(*rondo.Conn) rondo.Filter { return nil }) },
	} {
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			s.fill(c)
			use(c)
			return len(in), nil
		}}
		s.expect(w.Listen(e, h.one()))
		h.untilClosed()
	}
	w.Until("the end of the connections", func() bool { return e.Stats().Open == 0 })
}

// A countedFilter counts the calls of its methods.
type countedFilter struct {
	rondo.PassThrough
	started, closed *atomic.Int32
}

func (f countedFilter) Start(s *rondo.FilterPort) error {
	f.started.Add(1)
	return f.PassThrough.Start(s)
}

func (f countedFilter) Closed(*rondo.FilterPort, error) { f.closed.Add(1) }

// leavesWhileItGetsFilters: a FilterOpenFunc may call Detach or Move. Then the connection gets
// no filters, but leaves as it was told.
func leavesWhileItGetsFilters(w World) {
	e := &rondo.Engine{NumLoops: 2}
	moved, s := &handler{w: w}, &sated{w: w}
	var started, closed atomic.Int32
	detached := make(chan net.Conn, 1)
	move := func(c *rondo.Conn, open rondo.OpenFunc) {
		if err := c.Move(otherLoop(c), open); err != nil {
			w.Errorf("Move: %v", err)
		}
	}
	detach := func(c *rondo.Conn) {
		err := c.Detach(func(nc net.Conn, err error) {
			if err != nil {
				w.Errorf("a detached connection: %v", err)
			}
			detached <- nc
		})
		if err != nil {
			w.Errorf("Detach: %v", err)
		}
	}
	// using returns a Handler that gets two filters. As the second is made, it leaves.
	using := func(leave func(*rondo.Conn)) *handler {
		filter := func(*rondo.Conn) rondo.Filter { return countedFilter{started: &started, closed: &closed} }
		return &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			c.Use(nil, filter, func(c *rondo.Conn) rondo.Filter { leave(c); return filter(c) })
			return len(in), nil
		}}
	}

	h := using(func(c *rondo.Conn) { move(c, moved.one()) })
	p := w.Dial(w.Listen(e, h.one()))
	send(w, p, []byte("x"))
	h.untilClosed()
	send(w, p, []byte("echo"))
	expect(w, p, []byte("echo"))
	p.Close()
	moved.untilClosed()

	h = using(detach)
	p = w.Dial(w.Listen(e, h.one()))
	send(w, p, []byte("x"))
	h.untilClosed()
	w.Until("Detach's function", func() bool { return len(detached) == 1 })
	if nc := <-detached; nc != nil {
		nc.Close()
	}
	expectEOF(w, p)
	p.Close()

	h = using(func(c *rondo.Conn) { s.fill(c); move(c, refuseNow) })
	s.expect(w.Listen(e, h.one()))
	h.untilClosed()

	w.Until("the filters' Closed", func() bool { return closed.Load() == 6 })
	if n := started.Load(); n > 0 {
		w.Errorf("%d filters of leaving connections have started", n)
	}
}

// restBeforeAHandler: a connection that comes to rest before it has a Handler, or while it gets
// Filters, is refused, and gets no Filters. Stay does not open it again.
func restBeforeAHandler(w World) {
	e := &rondo.Engine{NumLoops: 1}
	var started, closed, told atomic.Int32
	rest := func(c *rondo.Conn) {
		err := bridge.Of(c).Rest(func(err error) {
			if err == nil {
				w.Errorf("a refused connection has come to rest")
			}
			bridge.Of(c).Stay()
			told.Add(1)
		})
		if err != nil {
			w.Errorf("Rest: %v", err)
		}
	}
	filter := func(c *rondo.Conn) rondo.Filter {
		rest(c)
		return countedFilter{started: &started, closed: &closed}
	}
	opens := []func(c *rondo.Conn, h *handler) *handler{
		func(c *rondo.Conn, _ *handler) *handler { rest(c); return nil },
		func(c *rondo.Conn, h *handler) *handler { c.Use(nil, filter); return h },
		func(c *rondo.Conn, h *handler) *handler {
			c.Use(func(c *rondo.Conn) rondo.Handler { rest(c); return nil })
			return h
		},
	}
	for i, open := range opens {
		h := &handler{w: w}
		p := w.Dial(w.Listen(e, func(c *rondo.Conn) rondo.Handler {
			if got := open(c, h); got != nil {
				return got
			}
			return nil
		}))
		w.Until("Rest's function", func() bool { return int(told.Load()) == i+1 })
		p.Close()
		if i > 0 {
			h.untilClosed() // it fails if Closed comes again
		}
		w.Until("the end of the connection", func() bool { return e.Stats().Open == 0 })
	}
	w.Until("the filter's Closed", func() bool { return closed.Load() == 1 })
	if started.Load() > 0 {
		w.Errorf("a filter of a refused connection has started")
	}
}

// detached returns the connection of a Peer that e's loop has served and detached.
func detached(w World, e *rondo.Engine) (Peer, net.Conn) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(e, h.one()))
	nc, err := h.detach()
	if err != nil {
		w.Fatal(err)
	}
	return p, nc
}

func readNow(c *rondo.Conn) {
	c.Pause()
	c.Resume()
}

// attachRead attaches nc, and has it read before h is its Handler.
func attachRead(w World, l *rondo.Loop, nc net.Conn, h *handler) {
	err := l.Post(func() {
		if _, err := l.Attach(nc, h.one()); err != nil {
			w.Errorf("Attach: %v", err)
		}
		for c := range l.Conns() {
			readNow(c)
		}
	})
	if err != nil {
		w.Fatal(err)
	}
}

// readBeforeItOpens: a connection that somebody has read before open has made its Handler keeps
// its input, even if that is MaxInput, and the end of its stream.
func readBeforeItOpens(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxInput: 1000}
	p, nc := detached(w, e)
	h := &handler{w: w}
	attachRead(w, firstLoop(e), rondo.PrefixConn(nc, []byte("first ")), h)
	send(w, p, []byte("second"))
	expect(w, p, []byte("first second"))
	p.Close()
	h.untilClosed()

	p, nc = detached(w, e)
	h = &handler{w: w}
	attachRead(w, firstLoop(e), rondo.PrefixConn(nc, pattern(1500)), h)
	expect(w, p, pattern(1500))
	p.Close()
	h.untilClosed()

	p, nc = detached(w, e)
	h = &handler{w: w}
	if err := p.CloseWrite(); err != nil {
		w.Fatal(err)
	}
	w.Sleep(20 * time.Millisecond) // most often enough for the end to arrive
	attachSlowly(w, e, rondo.PrefixConn(nc, []byte("first ")), h, readNow)
	expect(w, p, []byte("first "))
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
}

// movedRefusedAtOnce: a connection that has sent nothing, moves, and is refused there is closed
// at once.
func movedRefusedAtOnce(w World) {
	const linger = time.Hour
	e := &rondo.Engine{NumLoops: 2, Linger: linger}
	addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler {
		if err := c.Move(otherLoop(c), refuseNow); err != nil {
			w.Errorf("Move: %v", err)
		}
		return nil
	})
	start := w.Now()
	p := w.Dial(addr)
	w.Until("the end of the connection", func() bool { s := e.Stats(); return s.Open == 0 && s.Closed > 0 })
	if w.Now().Sub(start) >= linger {
		w.Errorf("it lingered")
	}
	p.Close()
}

// movedInVainArrives: a connection whose output is with the system, and which has unread input,
// moves. It loses nothing if the other loop does not serve it: because a limit forbids that, or
// it shuts down, or it has ended.
func movedInVainArrives(w World) {
	full := func(refuse func(*rondo.Conn, string)) *rondo.Loop {
		e := &rondo.Engine{NumLoops: 1, MaxConns: 1, Refuse: refuse, Logger: slog.New(slog.DiscardHandler)}
		h := &handler{w: w}
		p := w.Dial(w.Listen(e, h.one()))
		h.conn()
		w.Cleanup(func() { p.Close() })
		return firstLoop(e)
	}
	draining, release := shuttingDown(w)
	ended := &rondo.Engine{NumLoops: 1}
	w.Listen(ended, opener(nil))
	gone := firstLoop(ended)
	w.Call(func() { ended.Close() })
	movesInVain(w, "refused in words", full(func(*rondo.Conn, string) {}))
	movesInVain(w, "refused", full(nil))
	movesInVain(w, "shutting down", draining)
	movesInVain(w, "ended", gone)
	release()
}

// movedInVainAreFew: of connections that wait for their peers like that, a loop has only a few.
func movedInVainAreFew(w World) {
	full := &rondo.Engine{NumLoops: 1, MaxConns: 1, Linger: time.Hour, Logger: slog.New(slog.DiscardHandler)}
	h := &handler{w: w}
	p := w.Dial(w.Listen(full, h.one()))
	defer p.Close()
	h.conn()
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, opener(func(c *rondo.Conn) *handler {
		return &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			c.Write(in)
			if err := c.Move(firstLoop(full), refuseNow); err != nil {
				w.Errorf("Move: %v", err)
			}
			return len(in), nil
		}}
	}))
	const many, most = 40, 1 + 16
	for range many {
		p := w.Dial(addr)
		defer p.Close()
		send(w, p, []byte("x"))
		expect(w, p, []byte("x"))
	}
	w.Until("all connections", func() bool { s := full.Stats(); return s.Refused == many && s.Open <= most })
}

// movesInVain has a connection move to a loop that does not serve it.
func movesInVain(w World, why string, to *rondo.Loop) {
	s := &sated{w: w}
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Pause()
		s.fill(c)
		return len(in), nil
	}}
	e := &rondo.Engine{NumLoops: 1}
	p := w.Dial(w.Listen(e, h.one()))
	send(w, p, []byte("x"))
	w.Until("the output", func() bool { return s.wrote.Load() > 0 })
	send(w, p, pattern(1000)) // which nobody reads
	h.do(func(c *rondo.Conn) {
		if err := c.Move(to, refuseNow); err != nil {
			w.Errorf("%s: Move: %v", why, err)
		}
	})
	expect(w, p, pattern(int(s.wrote.Load())))
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
	w.Until("the end of the connection", func() bool { return e.Stats().Open == 0 })
}

// shuttingDown returns a loop whose engine waits in Shutdown for a connection, until release.
func shuttingDown(w World) (l *rondo.Loop, release func()) {
	e := &rondo.Engine{NumLoops: 1}
	h := &handler{w: w}
	var asked atomic.Bool
	p := w.Dial(w.Listen(e, func(c *rondo.Conn) rondo.Handler {
		h.one()(c)
		return &parting{handler: h, shutdown: func(*rondo.Conn) { asked.Store(true) }}
	}))
	done := make(chan error, 1)
	l = firstLoop(e)
	h.conn()
	go func() { done <- e.Shutdown(context.Background()) }()
	w.Until("Shutdown", asked.Load)
	return l, func() {
		p.Close()
		w.Until("the end of Shutdown", func() bool { return len(done) > 0 })
	}
}

// refusedFiltersFlush: a refused connection delivers what its filters hold.
func refusedFiltersFlush(w World) {
	e := &rondo.Engine{NumLoops: 1}
	filtered := rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		c.Write([]byte("go away"))
		c.Flush()
		return nil
	}, func(*rondo.Conn) rondo.Filter { return &retainer{} })
	p := w.Dial(w.Listen(e, filtered))
	expect(w, p, []byte("go away"))
	expectEOF(w, p)
	p.Close()
}

// A retainer sends nothing before the output ends, as a filter that compresses may.
type retainer struct {
	rondo.PassThrough
	held []byte
}

func (r *retainer) Outbound(_ *rondo.FilterPort, out []byte) error {
	r.held = append(r.held, out...)
	return nil
}

func (r *retainer) CloseWrite(s *rondo.FilterPort) error {
	s.Send(r.held)
	return nil
}

// refusedDirectArrives: a refused connection loses nothing of what was sent by Direct. Where
// there is no Direct it sends by Write.
func refusedDirectArrives(w World) {
	e := &rondo.Engine{NumLoops: 1}
	var wrote atomic.Int64
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (n int, err error) {
		c.Pause()
		if d := bridge.Of(c).Direct(); d != nil {
			n, err = d.Send(pattern(200_000))
		} else {
			n, err = c.Write(pattern(20_000))
		}
		if err != nil {
			w.Errorf("sending: %v", err)
		}
		wrote.Store(int64(n))
		return len(in), nil
	}}
	p := w.Dial(w.Listen(e, h.one()))
	send(w, p, []byte("x"))
	w.Until("the output", func() bool { return wrote.Load() > 0 })
	send(w, p, pattern(1000)) // which nobody reads
	h.do(func(c *rondo.Conn) { c.Use(refuseNow) })
	expect(w, p, pattern(int(wrote.Load())))
	expectEOF(w, p)
	p.Close()
}
