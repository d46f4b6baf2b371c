package backendtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// shutdownDrains: Shutdown delivers all output, closes every connection, and returns.
func shutdownDrains(w World) {
	big := pattern(1 << 20)
	e := &rondo.Engine{NumLoops: 2, Linger: time.Minute}
	var handlers []*handler
	var mu sync.Mutex
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler {
		mu.Lock()
		defer mu.Unlock()
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			c.Write(big)
			return len(in), nil
		}}
		handlers = append(handlers, h)
		return h
	}))
	var peers []Peer
	for range 4 {
		p := w.Dial(addr)
		send(w, p, []byte("x"))
		expect(w, p, big[:1])
		peers = append(peers, p)
	}
	done := make(chan error, 1)
	go func() { done <- e.Shutdown(context.Background()) }()
	for _, p := range peers {
		expect(w, p, big[1:])
		expectEOF(w, p)
		p.Close()
	}
	w.Until("Shutdown", func() bool { return len(done) > 0 })
	if err := <-done; err != nil {
		w.Errorf("Shutdown: %v", err)
	}
	for _, h := range handlers {
		if err := h.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
	}
	for l := range e.Loops() {
		if err := l.Post(func() {}); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("Post after Shutdown: %v", err)
		}
	}
}

// A parting is a Handler that closes its connection by itself when the engine shuts
// down.
type parting struct {
	*handler
	shutdown func(c *rondo.Conn)
}

func (p *parting) Shutdown(c *rondo.Conn) { p.shutdown(c) }

// shutdownAsks: Shutdown lets Handlers close their connections by themselves, and waits
// for them. A Handler that fails then ends only its own connection.
func shutdownAsks(w World) {
	for name, last := range map[string]func(c *rondo.Conn){
		"later": func(c *rondo.Conn) {
			c.Loop().AfterFunc(50*time.Millisecond, func() { c.Write([]byte("bye")); c.Close() })
		},
		"now":    func(c *rondo.Conn) { c.Write([]byte("bye")); c.Close() },
		"panic":  func(c *rondo.Conn) { c.Write([]byte("bye")); panic("a goat") },
		"Goexit": func(c *rondo.Conn) { c.Write([]byte("bye")); runtime.Goexit() },
	} {
		e := &rondo.Engine{NumLoops: 1, Linger: time.Minute, Logger: slog.New(slog.DiscardHandler)}
		h := &handler{w: w}
		next := make(chan rondo.Handler, 4)
		addr := w.Listen(e, func(*rondo.Conn) rondo.Handler { return <-next })
		next <- &parting{&handler{w: w}, func(c *rondo.Conn) { c.Write([]byte("bye")); c.Close() }}
		next <- &parting{h, last}
		next <- &handler{w: w}
		next <- &parting{&handler{w: w}, func(c *rondo.Conn) { c.Write([]byte("bye")); c.Close() }}
		var peers []Peer
		for range 4 {
			p := w.Dial(addr)
			send(w, p, []byte("x"))
			expect(w, p, []byte("x"))
			peers = append(peers, p)
		}
		done := make(chan error, 1)
		go func() { done <- e.Shutdown(context.Background()) }()
		for i, p := range peers {
			switch {
			case i == 1 && (name == "panic" || name == "Goexit"):
				expectReset(w, p)
			case i == 2:
				expectEOF(w, p)
			default:
				expect(w, p, []byte("bye"))
				expectEOF(w, p)
			}
			p.Close()
		}
		w.Until("Shutdown", func() bool { return len(done) > 0 })
		if err := <-done; err != nil {
			w.Errorf("%s: Shutdown: %v", name, err)
		}
		if err := h.untilClosed(); (err != nil) != (name == "panic" || name == "Goexit") {
			w.Errorf("%s: Closed got %v", name, err)
		}
	}
	// Shutdown's context limits how long it waits.
	e := &rondo.Engine{NumLoops: 1}
	h := &handler{w: w}
	p := w.Dial(w.Listen(e, func(*rondo.Conn) rondo.Handler { return &parting{h, func(*rondo.Conn) {}} }))
	send(w, p, []byte("x"))
	expect(w, p, []byte("x"))
	w.Call(func() {
		if err := e.Shutdown(w.Timeout(50 * time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("Shutdown with a Handler that does not close: %v", err)
		}
	})
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrClosed) {
		w.Errorf("Closed of one that did not close got %v", err)
	}
}

// closeAborts: Close ends everything at once. It may be called again.
func closeAborts(w World) {
	e := &rondo.Engine{NumLoops: 2}
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(pattern(12 << 20))
		return len(in), nil
	}}
	p := w.Dial(w.Listen(e, h.one()))
	send(w, p, []byte("x"))
	expect(w, p, pattern(1))
	w.Call(func() { e.Close() })
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrClosed) {
		w.Errorf("Closed got %v", err)
	}
	expectReset(w, p)
	w.Call(func() {
		e.Close()
		if err := e.Shutdown(context.Background()); err != nil {
			w.Errorf("Shutdown after Close: %v", err)
		}
	})
	if err := e.Start(); !errors.Is(err, rondo.ErrClosed) {
		w.Errorf("Start after Close: %v", err)
	}
}

// listenerCloseKeepsConns: a listener's Close stops accepting; connections continue.
func listenerCloseKeepsConns(w World) {
	e := &rondo.Engine{NumLoops: 2}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	var second *rondo.Listener
	w.Call(func() {
		var err error
		second, err = e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
		if err != nil {
			w.Errorf("Listen: %v", err)
		}
	})
	p := w.Dial(second.Addr())
	send(w, p, []byte("x"))
	expect(w, p, []byte("x"))
	w.Call(func() { second.Close(); second.Close() })
	send(w, p, []byte("y"))
	expect(w, p, []byte("y"))
	first := w.Dial(addr)
	send(w, first, []byte("z"))
	expect(w, first, []byte("z"))
}

// timersFireInOrder: timers fire in the order of their times, not early, and not after
// Stop.
func timersFireInOrder(w World) {
	h := &handler{w: w}
	w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	var mu sync.Mutex
	var order []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	begin := w.Now()
	var early atomic.Bool
	h.do(func(c *rondo.Conn) {
		l := c.Loop()
		after := func(ms int, name string) *rondo.Timer {
			at := l.Now().Add(time.Duration(ms) * time.Millisecond)
			return l.AfterFunc(time.Duration(ms)*time.Millisecond, func() {
				if l.Now().Before(at) {
					early.Store(true)
				}
				note(name)
			})
		}
		after(60, "c")
		after(20, "a")
		after(40, "b")
		stopped := after(30, "stopped")
		moved := after(10, "d")
		moved.Reset(80 * time.Millisecond)
		if !stopped.Stop() || stopped.Stop() {
			w.Error("Stop does not report whether the timer was pending")
		}
		n := 0
		var tick *rondo.Timer
		tick = l.Every(100*time.Millisecond, func() {
			note("e")
			if n++; n == 3 {
				tick.Stop()
			}
		})
	})
	w.Until("the timers", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(order) >= 7
	})
	w.Sleep(150 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(order); got != "[a b c d e e e]" {
		w.Errorf("order of timers: %s", got)
	}
	if d := w.Now().Sub(begin); d < 300*time.Millisecond || early.Load() {
		w.Errorf("timers fired early (all within %v)", d)
	}
}

// postsKeepOrder: posts of one goroutine run in order, on the loop.
func postsKeepOrder(w World) {
	e := &rondo.Engine{NumLoops: 3}
	w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	const posts = 2000
	var ran atomic.Int64
	for l := range e.Loops() {
		next := 0
		for i := range posts {
			if err := l.Post(func() {
				if i != next {
					w.Errorf("post %d ran when %d was due", i, next)
				}
				next++
				ran.Add(1)
			}); err != nil {
				w.Fatalf("Post: %v", err)
			}
		}
	}
	w.Until("all posts", func() bool { return ran.Load() == 3*posts })
}

// localIsEachLoopsOwn: each loop creates a LoopLocal's value once and keeps its own.
func localIsEachLoopsOwn(w World) {
	e := &rondo.Engine{NumLoops: 3}
	w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	var made atomic.Int64
	local := rondo.LoopLocal[*int]{New: func(l *rondo.Loop) *int {
		made.Add(1)
		id := l.ID()
		return &id
	}}
	var zero rondo.LoopLocal[int]
	var ran atomic.Int64
	for l := range e.Loops() {
		for range 5 {
			l.Post(func() {
				if p := local.Get(l); *p != l.ID() || local.Get(l) != p || zero.Get(l) != 0 {
					w.Error("a loop got another's value, or a new one")
				}
				ran.Add(1)
			})
		}
	}
	w.Until("the posts", func() bool { return ran.Load() == 15 })
	if made.Load() != 3 {
		w.Errorf("%d values were made for 3 loops", made.Load())
	}
}

// balanceSpreads: every Balance serves all connections, and those that promise to
// spread them do so.
func balanceSpreads(w World) {
	const loops, conns = 3, 30
	for _, b := range []rondo.Balance{rondo.RoundRobin, rondo.LeastConns, rondo.SourceHash, rondo.Random, rondo.ReusePort} {
		e := &rondo.Engine{NumLoops: loops, Balance: b}
		addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
		var peers []Peer
		for range conns {
			p := w.Dial(addr)
			send(w, p, []byte("x"))
			expect(w, p, []byte("x"))
			peers = append(peers, p)
		}
		w.Until("the counts", func() bool { return e.Stats().Open == conns })
		var open []int
		for _, s := range e.Stats().Loops {
			open = append(open, s.Open)
		}
		slices.Sort(open)
		got := fmt.Sprint(open)
		switch {
		case b <= rondo.LeastConns && got != "[10 10 10]",
			b == rondo.SourceHash && got != "[0 0 30]",
			open[0]+open[1]+open[2] != conns:
			w.Errorf("balance %v: connections by loop: %s", b, got)
		}
		for _, p := range peers {
			p.Close()
		}
	}
}

// refusedConnCloses: a connection without a handler is closed.
func refusedConnCloses(w World) {
	e := &rondo.Engine{NumLoops: 1}
	addr := w.Listen(e, func(*rondo.Conn) rondo.Handler { return nil })
	expectEOF(w, w.Dial(addr))
	goodbye := w.Listen(e, func(c *rondo.Conn) rondo.Handler {
		c.Write([]byte("-ERR too many\r\n"))
		return nil
	})
	p := w.Dial(goodbye)
	expect(w, p, []byte("-ERR too many\r\n"))
	expectEOF(w, p)
	p.Close()
	w.Until("no open connection", func() bool { return e.Stats().Open == 0 })
}

// manyConns opens, uses and closes many connections at once, repeatedly.
func manyConns(w World) {
	const conns, rounds = 100, 3
	e := &rondo.Engine{NumLoops: 2}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	for round := range rounds {
		peers := make([]Peer, conns)
		for i := range peers {
			peers[i] = w.Dial(addr)
			send(w, peers[i], []byte(fmt.Sprint("conn ", i, " round ", round)))
		}
		for i, p := range peers {
			expect(w, p, []byte(fmt.Sprint("conn ", i, " round ", round)))
			if i%3 == 0 {
				p.Reset()
			} else {
				p.Close()
			}
		}
		w.Until("all to close", func() bool {
			s := e.Stats() // the counts change at the end of a turn, Open at once
			return s.Open == 0 && s.Closed >= uint64((round+1)*conns)
		})
	}
	if s := e.Stats(); came(s) != conns*rounds || s.Closed != conns*rounds {
		w.Errorf("%d came, %d closed, of %d", came(s), s.Closed, conns*rounds)
	}
}

// came returns how many connections an engine has had, accepted or attached.
func came(s rondo.Stats) uint64 { return s.Accepted + s.Attached }

// traceAndStats: hooks are called and counts are right.
func traceAndStats(w World) {
	var accepted, turns, before, after, asked atomic.Int64
	e := &rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{
		Accepted:    func(*rondo.Conn) { accepted.Add(1) },
		BeforeWrite: func(_ *rondo.Conn, n int) { before.Add(1); asked.Add(int64(n)) },
		AfterWrite:  func(_ *rondo.Conn, n int) { after.Add(int64(n)) },
		Turn:        func(*rondo.Loop) { turns.Add(1) },
	}}
	p := w.Dial(w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} })))
	sent := pattern(100_000) // less than HighWater: the peer does not read while it sends
	for range 3 {
		send(w, p, sent)
		expect(w, p, sent)
	}
	p.Close()
	w.Until("the end", func() bool { return e.Stats().Closed == 1 })
	s, total := e.Stats(), int64(3*len(sent))
	if came(s) != 1 || s.Open != 0 || int64(s.BytesIn) != total || int64(s.BytesOut) != total ||
		s.Receives == 0 || s.Sends == 0 || s.Turns == 0 {
		w.Errorf("stats: %+v", s)
	}
	if uint64(accepted.Load()) != s.Accepted || turns.Load() == 0 || before.Load() == 0 || after.Load() != total || asked.Load() < total {
		w.Errorf("hooks: accepted %d, turns %d, writes %d of %d bytes, %d written",
			accepted.Load(), turns.Load(), before.Load(), asked.Load(), after.Load())
	}
}
