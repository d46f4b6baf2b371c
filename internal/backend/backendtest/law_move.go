package backendtest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/rondo-go/rondo"
)

// moveKeepsEveryByte: a connection moves from loop to loop, of one engine or two, with
// its unconsumed input. The old handler gets Closed.
func moveKeepsEveryByte(w World) {
	first := &rondo.Engine{NumLoops: 2}
	second := &rondo.Engine{NumLoops: 1}
	var next atomic.Pointer[handler]
	addr := w.Listen(first, opener(func(*rondo.Conn) *handler { return next.Load() }))
	w.Listen(second, opener(nil))
	var loops []*rondo.Loop
	for l := range first.Loops() {
		loops = append(loops, l)
	}
	loops = append(loops, firstLoop(second))

	for _, size := range []int{0, 10, 5000, 150_000} {
		h := &handler{w: w, data: func(*rondo.Conn, []byte) (int, error) { return 0, nil }}
		next.Store(h)
		p := w.Dial(addr)
		in, out := pattern(size), pattern(50_000)
		if size > 0 {
			send(w, p, in[:size/2])
		}
		for i := range 6 {
			to := loops[(i+1)%len(loops)]
			old := h
			h = &handler{w: w, data: old.data}
			if i == 5 {
				h.data = nil // echo from now on
			}
			moved := h.one()
			old.do(func(c *rondo.Conn) {
				c.Write(out)
				err := c.Move(to, func(c *rondo.Conn) rondo.Handler {
					if c.Loop() != to {
						w.Error("the connection moved to another loop")
					}
					return moved(c)
				})
				if err != nil {
					w.Errorf("Move: %v", err)
				}
			})
			expect(w, p, out)
			if err := old.untilClosed(); !errors.Is(err, rondo.ErrDetached) {
				w.Errorf("Closed got %v", err)
			}
			h.conn()
			if i == 3 && size > 0 {
				send(w, p, in[size/2:])
			}
		}
		expect(w, p, in)
		send(w, p, []byte("and more"))
		expect(w, p, []byte("and more"))
		p.Close()
		if err := h.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
	}
	w.Until("no open connection", func() bool { return first.Stats().Open == 0 && second.Stats().Open == 0 })
	w.Call(func() {
		if err := second.Shutdown(context.Background()); err != nil {
			w.Errorf("Shutdown: %v", err)
		}
	})
}

// moveFromOpener: one engine accepts and gives each connection at once to another
// engine, which serves it.
func moveFromOpener(w World) {
	serve := &rondo.Engine{NumLoops: 2}
	w.Listen(serve, opener(nil))
	accept := &rondo.Engine{NumLoops: 1}
	var on [2]atomic.Int32
	addr := w.Listen(accept, serve.Adopt(opener(func(c *rondo.Conn) *handler {
		if c.Loop().Engine() != serve {
			w.Error("opened on another engine")
		}
		on[c.Loop().ID()].Add(1)
		c.Write([]byte("welcome"))
		return &handler{w: w}
	})))
	for range 6 {
		p := w.Dial(addr)
		send(w, p, []byte("hello"))
		expect(w, p, []byte("welcomehello"))
	}
	if on[0].Load() != 3 || on[1].Load() != 3 {
		w.Errorf("the loops got %d and %d connections of 6", on[0].Load(), on[1].Load())
	}
	// A loop updates its counts at the end of a turn, which may be a moment later.
	w.Until("the counts", func() bool {
		a, s := accept.Stats(), serve.Stats()
		return came(a) == 6 && a.Detached == 6 && a.Open == 0 && s.Attached == 6 && s.Open == 6
	})
}

// moveToAnEndedLoop: a connection moved to a loop that has ended, or is shutting down,
// is closed.
func moveToAnEndedLoop(w World) {
	gone := &rondo.Engine{NumLoops: 1}
	w.Listen(gone, opener(nil))
	to := firstLoop(gone)
	w.Call(func() { gone.Close() })
	e := &rondo.Engine{NumLoops: 1}
	var ended atomic.Int32
	addr := w.Listen(e, opener(func(c *rondo.Conn) *handler {
		c.Write([]byte("bye"))
		if err := c.Move(to, func(*rondo.Conn) rondo.Handler { w.Error("opened"); return nil }); err != nil {
			w.Errorf("Move: %v", err)
		}
		ended.Add(1)
		return &handler{w: w}
	}))
	p := w.Dial(addr)
	expect(w, p, []byte("bye"))
	expectEOF(w, p)
	w.Until("no open connection", func() bool { return e.Stats().Open == 0 })
}

// everybodyLeavesUnderLoad: connections echo while they are repeatedly detached and
// attached, moved between loops and engines, and served outside of any loop. No byte is
// lost or duplicated.
func everybodyLeavesUnderLoad(w World) {
	t := &travel{w: w, engines: []*rondo.Engine{{NumLoops: 2}, {NumLoops: 1}}}
	var addrs []net.Addr
	for i, e := range t.engines {
		addrs = append(addrs, w.Listen(e, t.open(i)))
	}
	type client struct {
		Peer
		sent, got stream
	}
	var clients []*client
	for i := range 4 {
		clients = append(clients, &client{Peer: w.Dial(addrs[i%2])})
	}
	for round := range scale(120) {
		for i, c := range clients {
			send(w, c, c.sent.next(1+(round*7919+i*104729)%20_000))
		}
		for i, c := range clients {
			if round%3 == i%3 {
				continue // leave some unread
			}
			want := c.got
			expect(w, c, want.next(c.sent.at-c.got.at))
			c.got = want
		}
	}
	for _, c := range clients {
		expect(w, c, c.got.next(c.sent.at-c.got.at))
		c.Close()
	}
	w.Until("no open connection", func() bool {
		open := 0
		for _, e := range t.engines {
			open += e.Stats().Open
		}
		return open == 0 && t.outside.Load() == 0
	})
	for how := range t.ways {
		if n := t.ways[how].Load(); n < 5 {
			w.Errorf("connections left in way %d only %d times", how, n)
		}
	}
}

// travel holds the state of everybodyLeavesUnderLoad.
type travel struct {
	w       World
	engines []*rondo.Engine
	ways    [4]atomic.Int32
	count   atomic.Int32
	outside atomic.Int32 // connections on no loop
}

// open serves with an echo on engine i. It consumes some of the input, and sometimes
// sends the connection away.
func (t *travel) open(i int) rondo.OpenFunc {
	return func(*rondo.Conn) rondo.Handler {
		calls := 0
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if calls++; calls%3 == 0 {
				n := len(in) * 2 / 3
				t.send(c, i)
				return c.Write(in[:n])
			}
			return c.Write(in)
		})
	}
}

// send sends c away, by each way in turn.
func (t *travel) send(c *rondo.Conn, i int) {
	way := int(t.count.Add(1)) % len(t.ways)
	t.ways[way].Add(1)
	other := (i + 1) % len(t.engines)
	loop := c.Loop()
	var err error
	switch way {
	case 0:
		err = c.Move(loop, t.open(i))
	case 1:
		err = c.Move(firstLoop(t.engines[other]), t.open(other))
	case 2:
		err = c.Detach(func(nc net.Conn, err error) {
			if err == nil {
				_, err = loop.Attach(nc, t.open(i))
			}
			t.check("Detach and Attach on the loop", err)
		})
	case 3:
		t.outside.Add(1)
		err = c.Detach(func(nc net.Conn, err error) {
			if t.check("Detach", err); err == nil {
				go t.serve(nc, other)
			} else {
				t.outside.Add(-1)
			}
		})
	}
	t.check("leaving", err)
}

// serve echoes once and attaches the connection to engine i.
func (t *travel) serve(nc net.Conn, i int) {
	defer t.outside.Add(-1)
	buf := make([]byte, 3000)
	n, err := nc.Read(buf)
	if err != nil {
		nc.Close() // the client has read everything
		return
	}
	if _, err := nc.Write(buf[:n]); err != nil {
		t.check("writing outside", err)
	}
	_, err = t.engines[i].Attach(nc, t.open(i))
	t.check("Engine.Attach", err)
}

func (t *travel) check(what string, err error) {
	if err != nil {
		t.w.Errorf("%s: %v", what, err)
	}
}
