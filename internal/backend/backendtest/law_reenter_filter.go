package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/rondo-go/rondo"
)

// A talkative filter answers output.
type talkative struct {
	rondo.PassThrough
	rounds int
}

func (f *talkative) Outbound(s *rondo.FilterPort, out []byte) error {
	if f.rounds > 0 {
		f.rounds--
		s.Deliver([]byte("again"))
	}
	s.Send(out)
	return nil
}

// filtersThatAnswer: a filter delivers input while it is given output, and the handler
// writes while it is given that input. Each call waits for the other to return, and no
// byte is lost or overtaken.
func filtersThatAnswer(w World) {
	const blocks, size = 5, 40_000
	open := func(*rondo.Conn) rondo.Handler {
		n := 0
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			_, err := c.Write(bytes.Repeat([]byte{'a' + byte(n)}, size)) // goes to Outbound at once
			if n++; n == blocks {
				c.Close()
			}
			return len(in), err
		})
	}
	talks := func(*rondo.Conn) rondo.Filter { return &talkative{rounds: 100} }
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(open, talks)))
	send(w, p, []byte("x"))
	for n := range blocks {
		expect(w, p, bytes.Repeat([]byte{'a' + byte(n)}, size))
	}
	expectEOF(w, p)
}

// A remover is removed while its connection is receiving. More input is left above it
// than fits in front of new input.
type remover struct {
	rondo.PassThrough
	leave *atomic.Bool
}

func (f remover) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if f.leave.Load() {
		s.Remove()
		return 0, nil
	}
	n := len(in) - len(in)%100
	s.Deliver(in[:n])
	return n, nil
}

func removedInMidReceive(w World) {
	var leave atomic.Bool
	var seen atomic.Int64
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		seen.Store(int64(len(in)))
		if len(in) < 3014 {
			return 0, nil
		}
		return c.Write(in)
	}}
	open := rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return remover{leave: &leave} })
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, open))
	data := pattern(3014)
	send(w, p, data[:3010])
	w.Until("3,000 bytes", func() bool { return seen.Load() == 3000 })
	leave.Store(true)
	h.do(func(c *rondo.Conn) { c.SetHandler(h) }) // offers the rest again
	send(w, p, data[3010:])
	expect(w, p, data)
}

// A dismisser removes the filter above it, and passes on what comes behind.
type dismisser struct {
	rondo.PassThrough
	above *dismissed
}

func (f dismisser) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	f.above.stage.Remove()
	f.above.removed = true
	s.Deliver(in)
	return len(in), nil
}

type dismissed struct {
	rondo.PassThrough
	w       World
	stage   *rondo.FilterPort
	removed bool
}

func (f *dismissed) Start(s *rondo.FilterPort) error { f.stage = s; s.Ready(); return nil }

func (f *dismissed) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if f.removed {
		f.w.Errorf("Inbound(%.20q) after Remove", in)
	}
	return f.PassThrough.Inbound(s, in)
}

// A filter that was removed gets no input any more, also before it has left.
func removedGetsNoInput(w World) {
	h := &handler{w: w}
	f := &dismissed{w: w}
	filters := []rondo.FilterOpenFunc{
		func(*rondo.Conn) rondo.Filter { return dismisser{above: f} },
		func(*rondo.Conn) rondo.Filter { return f },
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), filters...)))
	for _, msg := range []string{"one", "two"} {
		send(w, p, []byte(msg))
		expect(w, p, []byte(msg))
	}
}

// An answerer is a filter that answers all output at once.
type answerer struct{ rondo.PassThrough }

func (answerer) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Send(out)
	s.Deliver([]byte("answer"))
	return nil
}

// A lonely filter detects whether its methods that get input are called inside one
// another.
type lonely struct {
	rondo.PassThrough
	w      World
	within string
	start  []byte // to send at the start
	end    []byte // and at the end
}

func (f *lonely) enter(method string) (leave func()) {
	if f.within != "" {
		f.w.Errorf("%s was called within %s", method, f.within)
	}
	f.within = method
	return func() { f.within = "" }
}

func (f *lonely) Start(s *rondo.FilterPort) error {
	leave := f.enter("Start")
	s.Send(f.start)
	leave()
	s.Ready()
	return nil
}

func (f *lonely) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	leave := f.enter("Inbound")
	s.Send([]byte("seen"))
	leave()
	s.Deliver(in)
	return len(in), nil
}

func (f *lonely) Outbound(s *rondo.FilterPort, out []byte) error {
	defer f.enter("Outbound")()
	s.Send(out)
	return nil
}

func (f *lonely) CloseWrite(s *rondo.FilterPort) error {
	defer f.enter("CloseWrite")()
	s.Send(f.end)
	return nil
}

// filtersAreNotReentered: a filter whose neighbour answers its output gets the answer
// after its method has returned.
func filtersAreNotReentered(w World) {
	const size = 40_000 // passes through the filters at once
	answers := 0
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		answers += bytes.Count(in, []byte("answer"))
		if bytes.Contains(in, []byte("?")) {
			c.Write(pattern(size))
			c.Close()
		}
		return len(in), nil
	}}
	filters := []rondo.FilterOpenFunc{
		func(*rondo.Conn) rondo.Filter { return answerer{} },
		func(*rondo.Conn) rondo.Filter { return &lonely{w: w, start: pattern(size), end: pattern(size)} },
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), filters...)))
	expect(w, p, pattern(size))
	send(w, p, []byte("?"))
	p.SetReadDeadline(w.Now().Add(patience))
	got, err := io.ReadAll(p)
	if err != nil || !bytes.Contains(got, pattern(size)) || !bytes.HasSuffix(got, pattern(size)) {
		w.Errorf("the peer got %d bytes, %v", len(got), err)
	}
	p.Close()
	h.untilClosed()
	if answers == 0 {
		w.Error("the handler got no answer")
	}
}

// A leaver is a filter that removes itself when it gets output, and then has more to
// send.
type leaver struct{ rondo.PassThrough }

func (leaver) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Remove()
	s.Send(out[:len(out)/2])
	s.Send(out[len(out)/2:])
	return nil
}

// removedInOutbound: output that a filter sends in the call in which it is removed is
// sent.
func removedInOutbound(w World) {
	const size = 64 << 10
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
	filters := []rondo.FilterOpenFunc{
		func(*rondo.Conn) rondo.Filter { return answerer{} },
		func(*rondo.Conn) rondo.Filter { return leaver{} },
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), filters...)))
	h.do(func(c *rondo.Conn) {
		c.Write(pattern(size))
		c.Close()
	})
	expect(w, p, pattern(size))
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
}

// A coverer puts a filter above itself while it is given output, and ends that filter's
// output.
type coverer struct {
	rondo.PassThrough
	covered bool
}

func (f *coverer) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Send(out)
	if c := s.Conn(); !f.covered {
		f.covered = true
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
		c.CloseWrite()
		c.Flush()
		c.CloseWith(errors.New("an orderly end"))
	}
	return nil
}

// filterCoveredInWrite: a filter that was put above another one has ended its output. What
// the lower one was given before still goes to the peer, and Write says so.
func filterCoveredInWrite(w World) {
	const size = 70_000
	wrote := make(chan error, 1)
	open := func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			n, err := c.Write(pattern(size))
			if n != size && err == nil {
				err = fmt.Errorf("Write took %d bytes of %d", n, size)
			}
			wrote <- err
			return len(in), nil
		})
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(open, func(*rondo.Conn) rondo.Filter { return &coverer{} })))
	send(w, p, []byte("x"))
	expect(w, p, pattern(size))
	expectEOF(w, p)
	if err := <-wrote; err != nil {
		w.Errorf("Write: %v", err)
	}
}
