package backendtest

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// hookWritesAreSent: output that a hook writes at the end of a turn is sent even if
// nothing else happens.
func hookWritesAreSent(w World) {
	var conn atomic.Pointer[rondo.Conn]
	e := &rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{Turn: func(*rondo.Loop) {
		if c := conn.Swap(nil); c != nil {
			c.Write([]byte("by a hook"))
		}
	}}}
	h := &handler{w: w}
	p := w.Dial(w.Listen(e, h.one()))
	h.do(func(c *rondo.Conn) { conn.Store(c) })
	expect(w, p, []byte("by a hook"))
}

// releaseWritesToOthers: a release function may write to another connection at the end
// of a turn. When that output is sent, the other connection continues: it is read
// again, and its end is sent.
func releaseWritesToOthers(w World) {
	const high = 100
	for name, end := range map[string]func(c *rondo.Conn){
		"is read again": func(*rondo.Conn) {},
		"has an end":    (*rondo.Conn).CloseWrite,
		"closes":        (*rondo.Conn).Close,
	} {
		e := &rondo.Engine{NumLoops: 1, HighWater: high, LowWater: high, Linger: time.Hour}
		first, second := &handler{w: w}, &handler{w: w}
		next := make(chan *handler, 2)
		addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return <-next }))
		next <- first
		w.Dial(addr)
		first.conn()
		next <- second
		p := w.Dial(addr)
		second.conn()
		to := make(chan *rondo.Conn, 1)
		second.do(func(c *rondo.Conn) { to <- c })
		first.do(func(c *rondo.Conn) {
			other := <-to
			c.WriteOwned([]byte("mine"), func() {
				other.Write(pattern(2 * high))
				end(other)
			})
			other.Write(pattern(2 * high))
		})
		expect(w, p, pattern(2*high))
		expect(w, p, pattern(2*high))
		if name == "is read again" {
			send(w, p, []byte("and on"))
			expect(w, p, []byte("and on"))
		} else {
			expectEOF(w, p)
		}
		w.Call(func() { e.Close() })
	}
}

// releaseWritesToALeaver: a release function may write to a leaving connection at the
// end of a turn. The output is sent before the connection leaves.
func releaseWritesToALeaver(w World) {
	e := &rondo.Engine{NumLoops: 1}
	first, second := &handler{w: w}, &handler{w: w}
	next := make(chan rondo.OpenFunc, 2)
	addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler { return (<-next)(c) })
	next <- first.one()
	w.Dial(addr)
	first.conn()
	to := make(chan *rondo.Conn, 1)
	next <- func(c *rondo.Conn) rondo.Handler {
		c.Pause() // the end of a receive must not help
		to <- c
		return second.one()(c)
	}
	p := w.Dial(addr)
	second.conn()
	var left atomic.Bool
	written := make(chan error, 1)
	first.do(func(c *rondo.Conn) {
		other := <-to
		c.WriteOwned([]byte("mine"), func() {
			_, err := other.Write([]byte("yours"))
			written <- err
		})
		err := other.Move(c.Loop(), func(*rondo.Conn) rondo.Handler {
			left.Store(true)
			return &handler{w: w}
		})
		if err != nil {
			w.Errorf("Move: %v", err)
		}
	})
	w.Until("the release", func() bool { return len(written) == 1 })
	if err := <-written; err == nil { // both may happen in the same turn
		expect(w, p, []byte("yours"))
	}
	w.Until("the connection to leave", left.Load)
	send(w, p, []byte("there"))
	expect(w, p, []byte("there"))
}

// answersAreSent: a handler's answer is sent even if its input came from a filter that
// was just given output, with another filter between them.
func answersAreSent(w World) {
	thanked := false
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		switch {
		case !bytes.Contains(in, []byte("answer")):
			c.Write([]byte("question"))
		case !thanked:
			thanked = true
			c.Write([]byte("thanks"))
		}
		return len(in), nil
	}}
	filters := []rondo.FilterOpenFunc{
		func(*rondo.Conn) rondo.Filter { return answerer{} },
		func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} },
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), filters...)))
	send(w, p, []byte("x"))
	expect(w, p, []byte("questionthanks"))
}

// hooksAreNotReentered: a hook around writes may write and flush, and is not called
// inside itself.
func hooksAreNotReentered(w World) {
	const writes = 1000
	depth, written := 0, 0
	var deepest atomic.Int32
	hook := func(c *rondo.Conn, _ int) {
		depth++
		deepest.Store(max(deepest.Load(), int32(depth)))
		if written < writes {
			written++
			c.Write([]byte("x"))
			c.Flush()
		}
		depth--
	}
	h := &handler{w: w}
	e := &rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{BeforeWrite: hook, AfterWrite: hook}}
	p := w.Dial(w.Listen(e, h.one()))
	send(w, p, []byte("x"))
	expect(w, p, bytes.Repeat([]byte("x"), 1+writes))
	if n := deepest.Load(); n != 1 {
		w.Errorf("a hook was called within %d others", n-1)
	}
}
