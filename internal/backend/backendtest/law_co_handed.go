package backendtest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/bridge"
)

// Coroutines are told that their connection is closed when it has another Handler. By
// returning that error they do not close it: it is somebody else's.
func coStaysHandedOver(w World) {
	ways := map[string]func(s *script, co *coro.Co, c net.Conn) error{
		"a child that waits": func(s *script, co *coro.Co, c net.Conn) error {
			var never coro.Cond
			co.Go(func(co *coro.Co) (err error) {
				defer s.counts()(&err)
				return never.Wait(co)
			})
			co.Sleep(0)
			co.Conn().SetHandler(&handler{w: w})
			return nil
		},
		"a Read": func(_ *script, co *coro.Co, c net.Conn) error {
			co.Loop().Post(func() { co.Conn().SetHandler(&handler{w: w}) })
			return second(c.Read(make([]byte, 1)))
		},
	}
	for name, hand := range ways {
		s := &script{w: w}
		p := s.serve(func(co *coro.Co, c net.Conn) error { return hand(s, co, c) })
		w.Until(name+": the coroutines' end", func() bool { return s.hasBegun(1) && s.running() == 0 })
		send(w, p, []byte("still there?"))
		expect(w, p, []byte("still there?"))
		p.Close()
	}
}

// Nor do they close it when it is leaving its loop and takes no more output.
func coLeavesThoughAChildWrites(w World) {
	const size = 8 << 20 // more than the system takes
	s := &script{w: w}
	addr := w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: 2 * size}, s.opener(func(co *coro.Co, c net.Conn) error {
		co.Go(func(co *coro.Co) (err error) {
			defer s.counts()(&err)
			for err == nil {
				co.Sleep(time.Millisecond)
				_, err = c.Write(nil)
			}
			return err
		})
		co.Conn().Write(pattern(size))
		return co.Conn().Move(co.Loop(), func(*rondo.Conn) rondo.Handler { return &handler{w: w} })
	}))
	p := w.Dial(addr)
	if err := s.untilEnded(2); !errors.Is(err, net.ErrClosed) {
		w.Errorf("the child: %v", err)
	}
	expect(w, p, pattern(size))
	send(w, p, []byte("still there?"))
	expect(w, p, []byte("still there?"))
	p.Close()
}

// A coroutine may give its connection to a handler, and the handler back to it: when it has
// ended, the connection is other coroutines', with what came meanwhile.
func coTakesBackItsOwn(w World) {
	s := &script{w: w}
	var first *rondo.Conn
	give := s.opener(func(co *coro.Co, c net.Conn) error {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return err
		}
		co.Conn().SetHandler(&handler{w: w})
		co.Conn().SetHandler(c.(rondo.Handler))
		return second(c.Read(make([]byte, 1)))
	})
	take := s.opener(func(co *coro.Co, _ net.Conn) error {
		c := coro.NetConn(first)
		b := make([]byte, 5)
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		_, err := c.Write(b)
		return err
	})
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		if first == nil {
			first = c
			return give(c)
		}
		return take(c)
	})
	p := w.Dial(addr)
	send(w, p, []byte("xhello"))
	if err := s.untilEnded(1); !errors.Is(err, net.ErrClosed) {
		w.Errorf("a Read of what was handed over: %v", err)
	}
	q := w.Dial(addr)
	expect(w, p, []byte("hello"))
	if err := s.untilEnded(2); err != nil {
		w.Errorf("the second coroutine: %v", err)
	}
	p.Close()
	q.Close()
}

// A coroutine whose Handler does not become the connection's is told so. A type that passes
// calls on to it is an error: it has not all the methods that a coroutine needs.
func coThatIsNotTheHandler(w World) {
	s := &script{w: w}
	serve := s.opener(func(_ *coro.Co, c net.Conn) error { return second(c.Read(make([]byte, 1))) })
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		serve(c)
		return h.one()(c)
	}))
	if err := s.untilEnded(1); !errors.Is(err, net.ErrClosed) {
		w.Errorf("the coroutine of another handler's connection: %v", err)
	}
	send(w, p, []byte("hello"))
	expect(w, p, []byte("hello"))
	p.Close()

	wrapped := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		return struct{ rondo.Handler }{serve(c)}
	}))
	send(w, wrapped, []byte("hello"))
	expectEOF(w, wrapped)
	wrapped.Close()
	s.untilEnded(2)
}

// A shaker is a filter that passes everything on while it is ready, which it is after the
// peer's "ready".
type shaker struct {
	rondo.PassThrough
	stage *rondo.FilterPort
	ready bool
}

func (f *shaker) Start(s *rondo.FilterPort) error {
	f.stage = s
	if f.ready {
		s.Ready()
	}
	return nil
}

func (f *shaker) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	before, said := bytes.CutSuffix(in, []byte("ready"))
	switch {
	case f.ready:
		s.Deliver(in)
	case said:
		f.ready = true
		s.Ready()
		s.Deliver(before)
	default:
		return 0, nil
	}
	return len(in), nil
}

// Filters that are not ready get input though no coroutine reads, and a Write may wait for
// them.
func coShakesHandsUnread(w World) {
	all := pattern(16 << 20)
	s := &script{w: w}
	late := s.opener(func(co *coro.Co, c net.Conn) error {
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			return err
		}
		co.Conn().Use(nil, func(*rondo.Conn) rondo.Filter { return &shaker{} })
		_, err := c.Write(all)
		return err
	})
	f := &shaker{ready: true}
	var unready atomic.Bool
	again := rondo.Filtered(s.opener(func(co *coro.Co, c net.Conn) error {
		for !bridge.Of(co.Conn()).IsPaused() {
			if err := co.Sleep(time.Millisecond); err != nil {
				return err
			}
		}
		f.ready = false
		f.stage.Unready()
		unready.Store(true)
		if _, err := c.Write(all); err != nil {
			return err
		}
		b := make([]byte, 2)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "go" {
			w.Errorf("what was delivered before: %q, %v", b, err)
		}
		return nil
	}), func(*rondo.Conn) rondo.Filter { return f })
	for i, open := range []rondo.OpenFunc{late, again} {
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, open))
		if i == 0 {
			send(w, p, []byte("goready"))
		} else {
			send(w, p, []byte("go"))
			w.Until("Unready", unready.Load)
			send(w, p, []byte("ready"))
		}
		expect(w, p, all)
		expectEOF(w, p)
		p.Close()
		if err := s.untilEnded(i + 1); err != nil {
			w.Error(err)
		}
	}
}
