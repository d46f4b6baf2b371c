package backendtest

import (
	"bytes"
	"errors"
	"time"

	"github.com/rondo-go/rondo"
)

// Laws of connections on which a filter and the Handler hold parts of their messages, and of
// filters that fail above others.

// A liner delivers whole lines, and counts its calls. It asks for no Room unless asks.
type liner struct {
	rondo.PassThrough
	asks    bool
	calls   int
	longest int // input
}

func (f *liner) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	f.calls++
	f.longest = max(f.longest, len(in))
	n := bytes.LastIndexByte(in, '\n') + 1
	if f.asks {
		n = min(n, s.Room())
	}
	s.Deliver(in[:n])
	return n, nil
}

// lined serves, behind a liner, a Handler that consumes four bytes at a time, and sends it a line of
// which it leaves a part.
func lined(w World, e *rondo.Engine, f *liner) (*handler, Peer) {
	w.Helper()
	h := &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) { return len(in) / 4 * 4, nil }}
	e.NumLoops = 1
	p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return f })))
	send(w, p, []byte("123456\n"))
	w.Until("a part", func() bool { return h.received() == 4 })
	return h, p
}

// eofBehindParts: the end comes though a filter and the Handler hold parts, of a line and of a
// message.
func eofBehindParts(w World) {
	for _, asks := range []bool{false, true} {
		h, p := lined(w, &rondo.Engine{}, &liner{asks: asks})
		send(w, p, []byte("a part of a line"))
		w.Sleep(20 * time.Millisecond)
		p.CloseWrite()
		w.Until("EOF", h.hasEOF)
		p.Close()
		h.untilClosed()
	}
}

// fullBehindAPart: a line that is too long ends the connection, though the Handler holds a part of a
// message.
func fullBehindAPart(w World) {
	for _, asks := range []bool{false, true} {
		h, p := lined(w, &rondo.Engine{MaxInput: 100_000, Linger: time.Millisecond}, &liner{asks: asks})
		p.SetWriteDeadline(w.Now().Add(time.Second))
		p.Write(bytes.Repeat([]byte{'x'}, 150_000)) // or until the connection is closed
		w.Until("its end", h.isClosed)
		if err := h.untilClosed(); !errors.Is(err, rondo.ErrInputFull) {
			w.Errorf("asks %v: %v", asks, err)
		}
		p.Close()
	}
}

// useBehindAPart: what the Handler leaves to a filter that it adds is not its own part: the filter
// gets it once, and hears of the end.
func useBehindAPart(w World) {
	for _, asks := range []bool{false, true} {
		f := &liner{asks: asks}
		h := &handler{w: w}
		used := false
		h.data = func(c *rondo.Conn, in []byte) (int, error) {
			if n := bytes.IndexByte(in, '\n') + 1; !used && n > 0 {
				used = true
				c.Use(nil, func(*rondo.Conn) rondo.Filter { return f })
				return n, nil
			}
			return len(in), nil
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })))
		send(w, p, []byte("COMPRESS\na part of a line"))
		w.Sleep(100 * time.Millisecond)
		h.do(func(*rondo.Conn) {
			if f.calls > 50 {
				w.Errorf("asks %v: %d calls of Inbound, though nothing happens", asks, f.calls)
			}
		})
		p.CloseWrite()
		w.Until("EOF", h.hasEOF)
		p.Close()
		h.untilClosed()
	}
}

// A creditor sends only with credit, which the peer gives by '+': without, it is not ready.
type creditor struct{ renegotiator }

func (f *creditor) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	s.Deliver(in)
	if bytes.IndexByte(in, '+') >= 0 {
		s.Ready()
	}
	return len(in), nil
}

// A failer fails at '!'.
type failer struct{ rondo.PassThrough }

func (failer) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if bytes.IndexByte(in, '!') >= 0 {
		return 0, errors.New("bad input")
	}
	s.Deliver(in)
	return len(in), nil
}

// failedAbove: a filter that has failed takes no input, and keeps none from one below, which needs
// it to send what the Handler has written.
func failedAbove(w World) {
	f := &creditor{}
	h := &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: patience}, rondo.Filtered(h.one(),
		func(*rondo.Conn) rondo.Filter { return f }, func(*rondo.Conn) rondo.Filter { return failer{} })))
	h.do(func(c *rondo.Conn) {
		f.stage.Unready()
		c.Write([]byte("hello"))
		c.Flush()
	})
	w.Sleep(10 * time.Millisecond)
	send(w, p, []byte("!"))
	w.Sleep(10 * time.Millisecond)
	send(w, p, append(bytes.Repeat([]byte("x"), 2_000_000), '+'))
	expect(w, p, []byte("hello"))
	p.Close()
	h.untilClosed()
}
