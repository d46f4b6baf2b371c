package backendtest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// takes consumes all input, and does nothing at its end.
func (h *handler) takes() *handler {
	h.data = func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }
	h.eof = func(*rondo.Conn) {}
	return h
}

// depart brings h's connection to rest, and takes it from its loop.
func (h *handler) depart(before func(c *rondo.Conn)) (d bridge.Departed, err error) {
	h.w.Helper()
	var done atomic.Bool
	gone := h.conn().Do(func(c *rondo.Conn) {
		before(c)
		e := bridge.Of(c).Rest(func(why error) {
			defer done.Store(true)
			if err = why; err != nil {
				return
			}
			gone, why := bridge.LoopOf(c.Loop()).Depart(bridge.Of(c))
			if err = why; err == nil {
				d = gone[0]
			}
		})
		if e != nil {
			err = e
			done.Store(true)
		}
	})
	if gone != nil {
		return d, gone
	}
	h.w.Until("rest", func() bool { return done.Load() || h.isClosed() })
	if !done.Load() {
		return d, rondo.ErrClosed
	}
	return d, err
}

// comeBack attaches a departed connection to a loop, with another handler.
func (h *handler) comeBack(l *rondo.Loop, d bridge.Departed) {
	h.w.Helper()
	nc := d.Conn
	if len(d.Unread) > 0 {
		nc = rondo.PrefixConn(nc, d.Unread)
	}
	var done atomic.Bool
	l.Post(func() {
		defer done.Store(true)
		_, err := l.Attach(nc, opener(func(c *rondo.Conn) *handler {
			if d.Ended {
				bridge.Of(c).OutputEnded()
				if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, rondo.ErrClosed) {
					h.w.Errorf("Write after OutputEnded: %d, %v", n, err)
				}
			} else {
				bridge.Of(c).NoOutputLimit()
				c.WriteOwned(d.Unsent, nil)
			}
			return h
		}))
		if err != nil {
			h.w.Errorf("Attach: %v", err)
		}
	})
	h.w.Until("Attach", done.Load)
	h.conn()
}

// departKeepsEveryByte: a departed connection has every byte, although its peer does not
// read, in each state of its streams.
func departKeepsEveryByte(w World) {
	e, next := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20, Linger: time.Minute}, atomic.Pointer[handler]{}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return next.Load() }))
	for i, size := range []int{0, 100, 20_000, 300_000, 8 << 20} {
		for _, state := range []string{"open", "CloseWrite", "ended", "peer ended", "both"} {
			h := (&handler{w: w}).takes()
			h.data = func(_ *rondo.Conn, in []byte) (int, error) { return min(len(in), 10-h.received()), nil }
			next.Store(h)
			p := w.Dial(addr)
			in, out := pattern(2000*i+20), pattern(size)
			send(w, p, in)
			w.Until("ten bytes", func() bool { return h.received() == 10 })
			if state == "ended" {
				out = nil
				h.do((*rondo.Conn).CloseWrite)
				expectEOF(w, p)
			}
			if state == "peer ended" || state == "both" {
				p.CloseWrite()
			}
			var releases atomic.Int32
			d, err := h.depart(func(c *rondo.Conn) {
				if state != "ended" {
					c.WriteOwned(out[:size/2], func() { releases.Add(1) })
					c.Flush()
					c.Write(out[size/2:])
				}
				if state == "CloseWrite" || state == "both" {
					c.CloseWrite()
				}
			})
			if err != nil {
				w.Fatalf("%d bytes, %s: %v", size, state, err)
			}
			if err := h.untilClosed(); !errors.Is(err, rondo.ErrDetached) {
				w.Errorf("Closed got %v, want ErrDetached", err)
			}
			if n := releases.Load(); state != "ended" && n != 1 {
				w.Errorf("%d bytes, %s: release was called %d times", size, state, n)
			}
			if !bytes.HasSuffix(out, d.Unsent) || d.Ended && len(d.Unsent) > 0 || d.Ended != (state == "ended") && len(out) > 0 {
				w.Errorf("%d bytes, %s: %d are unsent, and wrong; ended: %v", size, state, len(d.Unsent), d.Ended)
			}
			again := (&handler{w: w}).takes()
			again.comeBack(firstLoop(e), d)
			if state == "CloseWrite" || state == "both" {
				again.do((*rondo.Conn).CloseWrite) // who closed it knows
			}
			if state != "peer ended" && state != "both" {
				in = append(in[:len(in):len(in)], "and on"...)
				send(w, p, []byte("and on"))
			}
			expect(w, p, out)
			w.Until("the input", func() bool { return again.received() == len(in)-10 })
			if mismatch(again.got.Bytes(), in[10:]) >= 0 {
				w.Errorf("%d bytes, %s: the input is wrong", size, state)
			}
			if state == "CloseWrite" || state == "both" {
				expectEOF(w, p)
			}
			p.CloseWrite()
			w.Until("EOF", again.hasEOF)
			again.conn().Close() // if it has not closed by itself
			if err := again.untilClosed(); err != nil {
				w.Errorf("%d bytes, %s: Closed got %v", size, state, err)
			}
			p.Close()
		}
	}
}

// stayGoesOn: Stay ends Rest at any time, and no byte is lost.
func stayGoesOn(w World) {
	const rounds, size = 100, 30_000
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20}, h.takes().one()))
	h.do(func(c *rondo.Conn) {
		l := c.Limits()
		l.ReadWhenFull = true
		c.SetLimits(l)
	})
	in, out := pattern(rounds*1000), pattern(rounds*size)
	read := 0
	for i := range rounds {
		send(w, p, in[i*1000:(i+1)*1000])
		var stayed atomic.Bool
		h.do(func(c *rondo.Conn) {
			c.Write(out[i*size : (i+1)*size])
			rested := func(err error) {
				switch {
				case err != nil:
					w.Errorf("Rest: %v", err)
				case i%3 == 0:
					bridge.Of(c).Stay()
					stayed.Store(true)
				}
			}
			if err := bridge.Of(c).Rest(rested); err != nil {
				w.Errorf("Rest: %v", err)
			}
			if i%3 == 1 {
				bridge.Of(c).Stay()
				stayed.Store(true)
			}
		})
		if i%3 == 2 {
			h.do(func(c *rondo.Conn) {
				if err := h.ref.Write([]byte("x")); !errors.Is(err, rondo.ErrClosed) {
					w.Errorf("Ref.Write at rest: %v", err)
				}
				bridge.Of(c).Stay()
				stayed.Store(true)
			})
		}
		w.Until("Stay", stayed.Load)
		if i%5 == 4 {
			expect(w, p, out[read:read+3*size])
			read += 3 * size
		}
	}
	expect(w, p, out[read:])
	w.Until("the input", func() bool { return h.received() == len(in) })
	if mismatch(h.got.Bytes(), in) >= 0 {
		w.Error("the input is wrong")
	}
	h.do((*rondo.Conn).Close)
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
}

// restMeetsAReset: a reset that comes while the connection leaves is never taken for the end
// of its stream, whoever has the connection then. EOF may be called before the write fails;
// then Closed gets the error.
func restMeetsAReset(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20}
	var next atomic.Pointer[handler]
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return next.Load() }))
	for i := range 30 {
		h := (&handler{w: w}).takes()
		next.Store(h)
		p := w.Dial(addr)
		h.do(func(c *rondo.Conn) { c.Write(pattern(8 << 20)) }) // the peer does not read it
		w.Sleep(time.Duration(i%3) * time.Millisecond)
		if i%2 == 0 {
			expect(w, p, pattern(10_000)) // the send goes on
		}
		if i%5 < 3 {
			p.Reset()
			w.Sleep(time.Duration(i%5) * time.Millisecond)
		}
		d, err := h.depart(func(*rondo.Conn) {})
		if i%5 >= 3 {
			p.Reset()
		}
		over := h
		if err == nil {
			over = (&handler{w: w}).takes()
			over.comeBack(firstLoop(e), d)
		}
		if err := over.untilClosed(); err == nil || errors.Is(err, rondo.ErrDetached) {
			w.Errorf("round %d: the peer reset the connection, and Closed got %v", i, err)
		}
		p.Close()
	}
}

// departAllOrNone: if a connection cannot leave, the others stay, and notice nothing.
func departAllOrNone(w World) {
	var all [3]*handler
	var peers [3]Peer
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20, Linger: -1}
	var next atomic.Pointer[handler]
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return next.Load() }))
	for i := range all {
		all[i] = &handler{w: w}
		next.Store(all[i])
		peers[i] = w.Dial(addr)
		all[i].conn()
	}
	var rests atomic.Int32
	var conns [3]bridge.Conn
	for i, h := range all {
		h.do(func(c *rondo.Conn) {
			conns[i] = bridge.Of(c)
			if i == 0 {
				c.Write(pattern(1 << 20))
			}
			if err := conns[i].Rest(func(error) { rests.Add(1) }); err != nil {
				w.Error(err)
			}
		})
	}
	w.Until("rest", func() bool { return rests.Load() == 3 })
	all[2].do(func(c *rondo.Conn) { c.Abort(nil) })
	all[2].untilClosed()
	var done atomic.Bool
	firstLoop(e).Post(func() {
		if gone, err := conns[0].Loop().Depart(conns[:]...); err == nil || gone != nil {
			w.Errorf("Depart: %v, %v", gone, err)
		}
		done.Store(true)
	})
	w.Until("Depart", done.Load)
	expect(w, peers[0], pattern(1<<20))
	for i := range 2 {
		send(w, peers[i], []byte("echo"))
		expect(w, peers[i], []byte("echo"))
		peers[i].Close()
		all[i].untilClosed()
	}
	peers[2].Close()
}

// restIsRefused: connections that could not depart do not come to rest, and what ends a
// connection at rest is told.
func restIsRefused(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 64 << 20, Linger: -1}
	var next atomic.Pointer[handler]
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return next.Load() }))
	for name, spoil := range map[string]func(c *rondo.Conn){
		"Close":    func(c *rondo.Conn) { c.Write(pattern(8 << 20)); c.Close() },
		"filtered": func(c *rondo.Conn) { c.Use(nil, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }) },
		"Detach":   func(c *rondo.Conn) { c.Detach(func(net.Conn, error) {}) },
		"Rest":     func(c *rondo.Conn) { bridge.Of(c).Rest(func(error) {}) },
	} {
		h := &handler{w: w}
		next.Store(h)
		p := w.Dial(addr)
		var told atomic.Bool
		h.do(func(c *rondo.Conn) {
			spoil(c)
			if err := bridge.Of(c).Rest(func(error) { told.Store(true) }); err == nil {
				w.Errorf("%s: Rest was not refused", name)
			}
			c.Abort(nil)
		})
		h.untilClosed()
		if told.Load() {
			w.Errorf("%s: Rest was refused, and its function called", name)
		}
		p.Close()
	}
	h := &handler{w: w}
	next.Store(h)
	p := w.Dial(addr)
	var told atomic.Pointer[error]
	h.do(func(c *rondo.Conn) {
		bridge.Of(c).Rest(func(err error) { told.Store(&err) })
		c.Abort(io.ErrNoProgress)
	})
	w.Until("Rest's function", func() bool { return told.Load() != nil })
	if err := h.untilClosed(); err != io.ErrNoProgress || *told.Load() != io.ErrNoProgress {
		w.Errorf("Abort on the way to rest: Closed got %v, and Rest's function %v", err, *told.Load())
	}
	p.Close()
}

// arrivalsCount: an attached connection counts as an accepted one, whatever the limits say.
func arrivalsCount(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxConns: 1, MaxConnsPerAddr: 1}
	other := &rondo.Engine{NumLoops: 1}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	var comes [2]*handler
	var peers [2]Peer
	for i := range comes {
		h := &handler{w: w}
		peers[i] = w.Dial(w.Listen(other, h.one()))
		d, err := h.depart(func(*rondo.Conn) {})
		if err != nil {
			w.Fatal(err)
		}
		comes[i] = &handler{w: w}
		comes[i].comeBack(firstLoop(e), d)
		comes[i].do(func(c *rondo.Conn) {
			bridge.Of(c).CountAccepted()
			bridge.Of(c).CountAccepted()
		})
	}
	refused := w.Dial(addr)
	w.Until("a refused connection", func() bool { return e.Stats().Refused == 1 })
	refused.Close()
	for i := range comes {
		peers[i].Close()
		comes[i].untilClosed()
	}
	p := w.Dial(addr)
	send(w, p, []byte("free"))
	expect(w, p, []byte("free"))
	p.Close()
}
