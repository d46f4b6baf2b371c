package randomuser

import (
	"errors"
	"fmt"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A conn is the user's record of a connection: its output, its input, and the calls of
// its handlers.
type conn struct {
	w    *world
	name string
	c    *rondo.Conn
	loop *rondo.Loop

	in, out *stream
	current *handler // the handler that the engine must call
	opened  bool     // it has had a handler
	given   bool     // coroutines serve it, or another handler than ours
	left    bool     // by Detach or Move
	closed  int
	early   bool   // a filter ended the input before its end
	inside  bool   // Data, EOF or Drained runs
	wanted  bool   // Want was called
	rest    *thing // the function of Rest
	booms   int    // panics that the user raised for it
}

// conn makes the user's record of a connection. For one that came from another loop,
// from is its record there.
func (w *world) conn(name string, c *rondo.Conn, from *conn) *conn {
	k := &conn{w: w, name: name, c: c, loop: c.Loop()}
	if from != nil {
		k.in, k.out, k.early = from.in, from.out, from.early
	} else {
		local, remote := w.pair(c)
		k.in, k.out = w.stream(remote, local), w.stream(local, remote)
		if w.slow && w.src.step(name+".written").one(2) {
			k.out.claim(outside)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, k)
	w.byConn[c] = k
	h := w.holder(c)
	h.name = name
	h.most.allow(c.Limits())
	if from != nil {
		h.most.in = max(h.most.in, w.holder(from.c).most.in) // the input comes along
	}
	return k
}

// pair returns the connection's addresses on the wire.
func (w *world) pair(c *rondo.Conn) (local, remote string) {
	w.mu.Lock()
	p, ok := w.pairs[c]
	w.mu.Unlock()
	if !ok {
		p = [2]string{text(c.LocalAddr()), text(c.RemoteAddr())}
		w.mu.Lock()
		w.pairs[c] = p
		w.mu.Unlock()
	}
	return p[0], p[1]
}

// over reports whether no handler will get calls for k any more.
func (k *conn) over() bool { return k.closed > 0 || k.left || k.c.Ref().Closed() }

func text(a net.Addr) string {
	if a == nil {
		return "?"
	}
	return a.String()
}

// serve makes a handler of k, which the engine must call from then on.
func (k *conn) serve(st *step) rondo.Handler {
	h := &handler{k: k}
	k.current, k.opened, k.given = h, true, false
	if st.one(4) {
		return &plain{h}
	}
	return h
}

// A handler is a Handler of the random user.
type handler struct {
	bridge.Ours
	k   *conn
	eof bool // EOF was called
}

// plain is a handler without the optional methods.
type plain struct{ h *handler }

func (p *plain) Data(c *rondo.Conn, in []byte) (int, error) { return p.h.Data(c, in) }
func (p *plain) Closed(c *rondo.Conn, err error)            { p.h.Closed(c, err) }

// called checks that the engine may call a method of h.
func (h *handler) called(kind string, c *rondo.Conn) {
	k := h.k
	switch {
	case c != k.c:
		k.w.failf("%s: %s was called with another connection", k.name, kind)
	case k.closed > 0:
		k.w.failf("%s: %s was called after Closed", k.name, kind)
	case k.current != h && kind != "Handler.Closed":
		k.w.failf("%s: %s of a handler was called after SetHandler", k.name, kind)
	}
}

func (k *conn) site(kind string) site {
	return site{kind: kind, who: k.name, loop: k.loop, conn: k}
}

// within runs f as a method that must not run inside another one.
func (h *handler) within(kind string, c *rondo.Conn, f func()) {
	h.called(kind, c)
	k := h.k
	if k.inside {
		k.w.failf("%s: %s was called inside another method of the handler", k.name, kind)
	}
	k.inside = true
	defer func() { k.inside = false }()
	f()
	k.bounded(kind)
}

func (h *handler) Data(c *rondo.Conn, in []byte) (n int, err error) {
	k := h.k
	h.within("Handler.Data", c, func() {
		if h.eof {
			k.w.failf("%s: Data after EOF", k.name)
		}
		if most := k.w.holder(c).mostInput(); len(in) > most {
			k.w.failf("memory: %s: Data has %d bytes, want %d", k.name, len(in), most)
		}
		k.look(in, 0)
		k.w.act(k.site("Handler.Data"))
		st := k.w.src.step(k.name + ".consumes")
		n = len(in)
		switch st.intn(8) {
		case 6:
			n = st.intn(len(in) + 1)
		case 7:
			n = 0
		}
		if st.one(60) {
			err = errUser
		}
		k.look(in, n)
	})
	return n, err
}

var errUser = errors.New("the user's error")

// look checks Data's input, and records that Data consumed n bytes of it. It checks
// nothing once a filter has ended the input early. Then the engine drops later input of
// that filter, but not input that comes after the filter was removed.
func (k *conn) look(in []byte, n int) {
	if k.early {
		return
	}
	if err := k.in.offered(in, n); err != nil {
		k.w.failf("input: %s: %v", k.name, err)
	}
}

func (h *handler) EOF(c *rondo.Conn) {
	h.within("EOFHandler.EOF", c, func() {
		if h.eof {
			h.k.w.failf("%s: EOF twice", h.k.name)
		}
		h.eof = true
		h.k.w.act(h.k.site("EOFHandler.EOF"))
		if st := h.k.w.src.step(h.k.name + ".ends"); !st.one(4) {
			h.k.endNow(c)
		}
	})
}

// endNow closes the connection, as handlers do at the end of the stream.
func (k *conn) endNow(c *rondo.Conn) { c.Close() }

func (h *handler) Drained(c *rondo.Conn) {
	h.within("DrainHandler.Drained", c, func() { h.k.w.act(h.k.site("DrainHandler.Drained")) })
}

func (h *handler) Paused() {
	h.called("Pauser.Paused", h.k.c)
	h.k.w.act(h.k.site("Pauser.Paused"))
}

// Piped passes nothing on: Data gets all of the bytes.
func (h *handler) Piped(n int) {
	c := h.k.c
	h.within("Piper.Piped", c, func() {
		if most := h.k.w.holder(c).mostInput(); n <= 0 || n > most {
			h.k.w.failf("%s: Piped has %d bytes, want 1 to %d", h.k.name, n, most)
		}
		h.k.w.act(h.k.site("Piper.Piped"))
	})
}

func (h *handler) Ending() {
	h.called("Ender.Ending", h.k.c)
	h.k.w.act(h.k.site("Ender.Ending"))
}

func (h *handler) Shutdown(c *rondo.Conn) {
	h.within("ShutdownHandler.Shutdown", c, func() {
		defer h.k.endNow(c) // Shutdown waits for it
		h.k.w.act(h.k.site("ShutdownHandler.Shutdown"))
	})
}

func (h *handler) Closed(c *rondo.Conn, err error) {
	k := h.k
	h.called("Handler.Closed", c)
	k.gone(err)
	k.w.act(k.site("Handler.Closed"))
}

// gone records that the connection has ended.
func (k *conn) gone(err error) {
	k.closed++
	if k.closed > 1 {
		k.w.failf("%s: Closed was called twice, now with %v", k.name, err)
	}
	var p *rondo.PanicError
	if errors.As(err, &p) {
		k.w.panicCost(k, p)
	}
	switch {
	case errors.Is(err, rondo.ErrDetached):
		k.left = true
	case err == nil:
		k.out.end()
	default:
		k.out.tear(fmt.Sprint(k.name, ": ", err))
	}
}

// bounded checks that no more output waits than allowed.
func (k *conn) bounded(kind string) {
	if n, most := k.c.Buffered(), k.w.holder(k.c).mostOutput(); n > most {
		k.w.failf("memory: %s: after %s %d bytes of output wait, want %d", k.name, kind, n, most)
	}
}
