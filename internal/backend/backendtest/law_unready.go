package backendtest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// unready is a Filter that delivers input and never becomes ready.
type unready struct{ rondo.PassThrough }

func (unready) Start(*rondo.FilterPort) error { return nil }

func (unready) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	n := min(len(in), s.Room())
	s.Deliver(in[:n])
	return n, nil
}

// unreadyCostsNoTurns: a connection whose input is full while nobody can take any costs
// no turns.
func unreadyCostsNoTurns(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxInput: 1000}
	h := &handler{w: w}
	p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return unready{} })))
	push(w, p, pattern(200_000), 20*time.Millisecond)
	w.Sleep(20 * time.Millisecond)
	before := e.Stats().Turns
	w.Sleep(20 * time.Millisecond)
	if n := e.Stats().Turns - before; n > 100 {
		w.Errorf("%d turns though nothing happens", n)
	}
	p.Close()
}

// closeInOutboundKeepsTheWrite: output that a filter took before it closed the
// connection counts as written.
func closeInOutboundKeepsTheWrite(w World) {
	closing := func(c *rondo.Conn) rondo.Filter { return &closer{} }
	released := 0
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if n, err := c.Write(longWrite); n != len(longWrite) || err != nil {
			w.Errorf("Write: %d, %v", n, err)
		}
		if err := c.WriteOwned(longWrite, func() { released++ }); err == nil {
			w.Error("WriteOwned after Close returned nil")
		}
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), closing)))
	send(w, p, []byte("now"))
	expect(w, p, longWrite)
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
	if released != 1 {
		w.Errorf("release was called %d times", released)
	}
}

// stageWithoutAPlace: if a FilterOpenFunc closes the connection, its filter gets no
// place. Every method of the FilterPort then does nothing.
func stageWithoutAPlace(w World) {
	h := &handler{w: w}
	var closed atomic.Bool
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	h.do(func(c *rondo.Conn) {
		c.Use(nil, func(c *rondo.Conn) rondo.Filter {
			c.Close()
			return &meddler{closed: &closed}
		})
	})
	p.Close()
	var panicked *rondo.PanicError
	if err := h.untilClosed(); errors.As(err, &panicked) {
		w.Fatalf("Closed got %v", err)
	}
	w.Until("the filter's Closed", closed.Load)
}

// meddler calls every method of its FilterPort at the end.
type meddler struct {
	rondo.PassThrough
	closed *atomic.Bool
}

func (m *meddler) Closed(s *rondo.FilterPort, err error) {
	for _, call := range []func(){
		s.Ready, s.Unready, s.EOF, s.Pause, s.Resume, s.Remove,
		func() { s.Deliver([]byte("x")) }, func() { s.Send([]byte("x")) },
		func() { s.Fail(io.ErrUnexpectedEOF) }, func() { s.Room() }, func() { s.AvailableBuffer() },
		func() { s.SetAddrs(&net.TCPAddr{}, &net.TCPAddr{}) },
	} {
		call()
	}
	m.closed.Store(true)
}

// longWrite is long enough to reach a filter at once.
var longWrite = pattern(16 << 10)

// closer is a Filter that closes the connection when it gets output.
type closer struct{ rondo.PassThrough }

func (closer) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Conn().Close()
	s.Send(out)
	return nil
}

// A renegotiator is a filter that is not ready until its peer says so.
type renegotiator struct {
	rondo.PassThrough
	stage *rondo.FilterPort
}

func (f *renegotiator) Start(s *rondo.FilterPort) error {
	f.stage = s
	s.Ready()
	return nil
}

func (f *renegotiator) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if !bytes.Contains(in, []byte("ready")) {
		return 0, nil
	}
	s.Ready()
	return len(in), nil
}

// unreadyGetsInput: a filter that is not ready gets input although output is full below
// and above it. It needs input to become ready.
func unreadyGetsInput(w World) {
	const high = 64 << 10
	for _, above := range []int{0, 1} {
		for _, before := range []int{0, 16 << 20} { // the peer does not read them yet
			f := &renegotiator{}
			filters := []rondo.FilterOpenFunc{func(*rondo.Conn) rondo.Filter { return f }}
			for range above {
				filters = append(filters, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
			}
			h := &handler{w: w}
			e := &rondo.Engine{NumLoops: 1, HighWater: high, MaxOutput: 64 << 20}
			p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), filters...)))
			all := pattern(16 << 20)
			h.do(func(c *rondo.Conn) {
				c.Write(all[:before])
				f.stage.Unready()
				c.Write(all[:3*high])
			})
			expect(w, p, all[:before])
			send(w, p, []byte("ready"))
			expect(w, p, all[:3*high])
			p.Close()
			h.untilClosed()
		}
	}
}

// pauseAfterCloseStopsNobody: a closing connection whose filter is still in its
// handshake continues with that although it is paused after Close. Its output is
// delivered.
func pauseAfterCloseStopsNobody(w World) {
	f := &renegotiator{}
	h := &handler{w: w}
	open := func(c *rondo.Conn) rondo.Handler {
		h := h.one()(c)
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return f })
		f.stage.Unready()
		return h
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Minute}, open))
	h.do(func(c *rondo.Conn) {
		c.Write([]byte("goodbye"))
		c.Close()
		c.Pause()
	})
	send(w, p, []byte("ready"))
	expect(w, p, []byte("goodbye"))
	expectEOF(w, p)
	p.Close()
	if err := h.untilClosed(); err != nil {
		w.Error(err)
	}
}
