package backendtest

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/rondo-go/rondo"
)

// A dialed connection is served like an accepted one, also by its own loop.
func dialedConnIsServed(w World) {
	e := &rondo.Engine{Loops: 2}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	question := pattern(200_000)
	for l := range e.All() {
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
		l.Post(func() {
			l.Dial("tcp", addr.String(), rondo.Socket{}, func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					w.Errorf("dial: %v", err)
					return nil
				}
				if c.Loop() != l || c.RemoteAddr().String() != addr.String() {
					w.Errorf("dialed from another loop, or to %v", c.RemoteAddr())
				}
				c.Write(question)
				return opener(func(*rondo.Conn) *handler { return h })(c)
			})
		})
		w.Until("the echo", func() bool { return h.received() == len(question) })
		h.do((*rondo.Conn).Close)
		if err := h.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
		if mismatch(h.got.Bytes(), question) >= 0 {
			w.Error("the echo is not what was sent")
		}
	}
}

// A dial that fails says so once, as package net does, and costs nothing.
func dialFails(w World) {
	e := &rondo.Engine{Loops: 1}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	var nobody *rondo.Listener
	w.Call(func() {
		var err error
		if nobody, err = e.Listen("tcp", "127.0.0.1:0", rondo.Socket{}, opener(nil)); err != nil {
			w.Errorf("Listen: %v", err)
			return
		}
		nobody.Close()
	})
	var calls atomic.Int32
	for l := range e.All() {
		l.Post(func() {
			returned := false
			l.Dial("tcp", nobody.Addr().String(), rondo.Socket{}, func(c *rondo.Conn, err error) rondo.Handler {
				calls.Add(1)
				var op *net.OpError
				if c != nil || !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Op != "dial" {
					w.Errorf("dial of a port that nobody listens on: %v", err)
				}
				if !returned {
					w.Error("open was called before Dial returned")
				}
				return nil
			})
			returned = true
		})
	}
	w.Until("the failure", func() bool { return calls.Load() > 0 })
	p := w.Dial(addr)
	send(w, p, []byte("still here"))
	expect(w, p, []byte("still here"))
	if n, open := calls.Load(), e.Stats().Open; n != 1 || open != 1 {
		w.Errorf("open was called %d times; %d connections are open", n, open)
	}
}
