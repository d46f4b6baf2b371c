package backendtest

import (
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// eofIsAfterTheLastData: EOF comes after the last Data. Input that Data left is not
// offered again.
func eofIsAfterTheLastData(w World) {
	h := &handler{w: w, data: func(*rondo.Conn, []byte) (int, error) { return 0, nil }}
	h.eof = func(c *rondo.Conn) {
		c.Pause()
		c.Resume()
		c.Loop().AfterFunc(10*time.Millisecond, c.Close)
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	send(w, p, []byte("half a message"))
	p.CloseWrite()
	expectEOF(w, p)
	h.untilClosed()
	if h.calls != "DEC" {
		w.Errorf("calls %s, want DEC", h.calls)
	}
}

// newHandlerHearsOfEOF: a handler that is set after the end of the stream gets the
// unconsumed input and then EOF.
func newHandlerHearsOfEOF(w World) {
	after := &handler{w: w}
	before := &handler{w: w, data: func(*rondo.Conn, []byte) (int, error) { return 0, nil }}
	before.eof = func(c *rondo.Conn) { c.SetHandler(after) }
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, before.one()))
	send(w, p, []byte("what was left"))
	p.CloseWrite()
	expect(w, p, []byte("what was left"))
	expectEOF(w, p)
	after.untilClosed()
	if before.calls != "DE" || after.calls != "DEC" {
		w.Errorf("calls %s, then %s of the new handler; want DE and DEC", before.calls, after.calls)
	}
}

// A quitter is a Filter that ends the input at the first bytes of it, though the wire's
// goes on, and is removed then, or when it has seen more.
type quitter struct {
	rondo.PassThrough
	late bool
	seen int
}

func (q *quitter) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if q.seen++; q.seen == 1 {
		s.Deliver(in[:1])
		s.EOF()
		s.Deliver(in)
	}
	if !q.late || q.seen > 1 {
		s.Remove()
		return 0, nil
	}
	return len(in), nil
}

// A strict Filter passes everything on, and knows that EOF is the last that comes.
type strict struct {
	rondo.PassThrough
	w     World
	ended bool
}

func (f *strict) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if f.ended {
		f.w.Errorf("Inbound(%.20q) after EOF", in)
	}
	return f.PassThrough.Inbound(s, in)
}

func (f *strict) EOF(s *rondo.FilterPort) error {
	if f.ended {
		f.w.Error("EOF twice")
	}
	f.ended = true
	return f.PassThrough.EOF(s)
}

// Nothing comes behind EOF, whoever has called it, and though he has gone: not to the
// handler, a later one, or the filters above.
func nothingIsBehindEOF(w World) {
	for _, late := range []bool{false, true} {
		for _, above := range [][]rondo.FilterOpenFunc{nil, {func(*rondo.Conn) rondo.Filter { return &strict{w: w} }}} {
			h, after := &handler{w: w}, &handler{w: w}
			h.eof = func(c *rondo.Conn) { c.Write([]byte("!")) }
			e := &rondo.Engine{NumLoops: 1}
			quits := func(*rondo.Conn) rondo.Filter { return &quitter{late: late} }
			p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), append([]rondo.FilterOpenFunc{quits}, above...)...)))
			send(w, p, []byte("one"))
			expect(w, p, []byte("o!"))
			for _, more := range []string{"two", "three"} {
				before := e.Stats().BytesIn
				send(w, p, []byte(more))
				w.Until("the loop has "+more, func() bool { return e.Stats().BytesIn > before })
			}
			h.do(func(c *rondo.Conn) { c.SetHandler(after) })
			expectEOF(w, p)
			p.Close()
			after.untilClosed()
			if h.calls != "DE" || after.calls != "EC" {
				w.Errorf("calls %s, and then %s of the new handler; want DE and EC", h.calls, after.calls)
			}
			w.Call(func() { e.Close() })
		}
	}
}

// ender is a handler that is a bridge.Ender too.
type ender struct {
	bridge.Ours
	handler
	ended int
}

func (e *ender) Ending() { e.ended++ }

// endingIsTheHandlers: the current handler gets Ending.
func endingIsTheHandlers(w World) {
	before, after := &ender{handler: handler{w: w}}, &ender{handler: handler{w: w}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		c.Loop().Post(func() {
			c.Close()
			c.SetHandler(after)
		})
		return before
	}))
	p.Close()
	after.untilClosed()
	if before.ended != 0 || after.ended != 1 {
		w.Errorf("Ending was called %d times of the old handler, %d times of the new one", before.ended, after.ended)
	}
}

// lastWords is a handler that checks in Ending whether its loop still has its
// connection.
type lastWords struct {
	bridge.Ours
	handler
	conn  *rondo.Conn
	there bool
}

func (h *lastWords) Ending() {
	for other := range h.conn.Loop().Conns() {
		h.there = h.there || other == h.conn
	}
}

// endingIsBeforeTheEnd: Ending comes before the connection's descriptor is closed and
// its loop forgets it, also if it ends between two turns.
func endingIsBeforeTheEnd(w World) {
	h := &lastWords{handler: handler{w: w}}
	var abort atomic.Pointer[rondo.Conn]
	e := &rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{Turn: func(*rondo.Loop) {
		if c := abort.Swap(nil); c != nil {
			c.Abort(nil)
		}
	}}}
	p := w.Dial(w.Listen(e, func(c *rondo.Conn) rondo.Handler {
		h.one()(c)
		c.Pause() // no Op must be in flight, because its end would be an earlier event
		abort.Store(c)
		h.conn = c
		return h
	}))
	h.untilClosed()
	if !h.there {
		w.Error("the connection was gone when Ending was called")
	}
	p.Close()
}
