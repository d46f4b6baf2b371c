package backendtest

import (
	"net"

	"github.com/rondo-go/rondo"
)

// Laws of connections that others change before they have a Handler.

// attachSlowly attaches nc for h, and calls f with the Conn, which opens not before the next
// turn: a broadcast keeps the loop busy.
func attachSlowly(w World, e *rondo.Engine, nc net.Conn, h *handler, f func(*rondo.Conn)) {
	w.Helper()
	crowd := &handler{w: w}
	p := w.Dial(w.Listen(e, crowd.one()))
	crowd.conn()
	l := firstLoop(e)
	err := l.Post(func() {
		many := func(yield func(rondo.Ref) bool) {
			for range 5000 {
				if !yield(crowd.ref) {
					return
				}
			}
		}
		rondo.Broadcast(many, []byte("x"), nil)
		ref, err := l.Attach(nc, h.one())
		if err != nil {
			w.Errorf("Attach: %v", err)
		}
		for c := range l.Conns() {
			if c.Ref() == ref {
				f(c)
			}
		}
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { p.Close() })
}

// A doorman is not ready before the peer has sent a byte.
type doorman struct{ rondo.PassThrough }

func (doorman) Start(*rondo.FilterPort) error { return nil }

func (doorman) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	s.Ready()
	s.Deliver(in[1:])
	return len(in), nil
}

// closedBeforeItOpens: a connection that is closed before it has a Handler sends its output,
// though a filter needs input for that.
func closedBeforeItOpens(w World) {
	e := &rondo.Engine{NumLoops: 1}
	p, nc := detached(w, e)
	h := &handler{w: w}
	attachSlowly(w, e, nc, h, func(c *rondo.Conn) {
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return doorman{} })
		c.Write([]byte("hello"))
		c.Close()
	})
	send(w, p, []byte("x"))
	expect(w, p, []byte("hello"))
	expectEOF(w, p)
	p.Close()
	if h.isOpened() {
		w.Error("a closed connection has opened")
	}
}

// A giver delivers n bytes as soon as it starts.
type giver struct {
	rondo.PassThrough
	n int
}

func (g giver) Start(s *rondo.FilterPort) error {
	s.Ready()
	s.Deliver(pattern(g.n))
	return nil
}

// deliveredBeforeItOpens: a Handler gets what filters have delivered before it was there, even
// if that is MaxInput.
func deliveredBeforeItOpens(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxInput: 1000}
	for _, n := range []int{10, 1000, 3000} {
		p, nc := detached(w, e)
		h := &handler{w: w}
		attachSlowly(w, e, nc, h, func(c *rondo.Conn) {
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return giver{n: n} })
		})
		expect(w, p, pattern(n))
		p.Close()
		h.untilClosed()
	}
}

// deliveredWhileItOpens: a Handler gets what filters that open has added have delivered at once.
func deliveredWhileItOpens(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxInput: 1000}
	for _, n := range []int{10, 1000, 3000} {
		h := &handler{w: w}
		p := w.Dial(w.Listen(e, func(c *rondo.Conn) rondo.Handler {
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return giver{n: n} })
			return h.one()(c)
		}))
		expect(w, p, pattern(n))
		p.Close()
		h.untilClosed()
	}
}
