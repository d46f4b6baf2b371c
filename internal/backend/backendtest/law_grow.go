package backendtest

import (
	"bytes"
	"errors"
	"time"

	"github.com/rondo-go/rondo"
)

// Laws of filters that have less Room than they need, and get more later.

// A blocker delivers whole blocks, when there is room for one.
type blocker struct {
	rondo.PassThrough
	size int
	once bool // asks for Room before the first block alone
}

func (f blocker) Inbound(s *rondo.FilterPort, in []byte) (n int, err error) {
	room := s.Room()
	for len(in)-n >= f.size && room >= f.size {
		s.Deliver(in[n : n+f.size])
		n += f.size
		room -= f.size
		if !f.once {
			room = s.Room()
		}
	}
	return n, nil
}

// roomGrows: a filter that has left a rest for want of Room gets it again once the Handler has made
// room, though nothing arrives: in the same call of Inbound, or when the Handler gets its own rest
// again.
func roomGrows(w World) {
	const (
		most, size = 100, 60
		short      = 20 * size
		long       = 1200 * size // more than may wait for a filter
	)
	trickles := func(*rondo.Conn) rondo.Filter { return trickler{} }
	blocks := func(*rondo.Conn) rondo.Filter { return blocker{size: size} }
	blocksOnce := func(*rondo.Conn) rondo.Filter { return blocker{size: size, once: true} }
	for _, test := range []struct {
		total   int
		filters []rondo.FilterOpenFunc
	}{
		{short, []rondo.FilterOpenFunc{trickles}},
		{short, []rondo.FilterOpenFunc{trickles, trickles}},
		{long, []rondo.FilterOpenFunc{blocks}},
		{short, []rondo.FilterOpenFunc{blocksOnce}},
		{short, []rondo.FilterOpenFunc{blocks, trickles}},
		{long, []rondo.FilterOpenFunc{trickles, blocks}},
	} {
		for _, step := range []int{50, 1000} {
			h := slowHandler(w, step)
			e := &rondo.Engine{NumLoops: 1, MaxInput: most, Linger: time.Millisecond}
			p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), test.filters...)))
			send(w, p, pattern(test.total))
			w.Until("the input", func() bool { return h.received() > test.total-most || h.isClosed() })
			if h.isClosed() {
				w.Errorf("%d filters, %d bytes at a time: %v", len(test.filters), step, h.untilClosed())
			}
			p.Close()
			h.untilClosed()
		}
	}
}

// limitsOfParts: a Handler that lowers MaxInput for a header and raises it for the body, in each
// Data, is not called without new input, and hears of the end.
func limitsOfParts(w World) {
	const body, most = 100_000, 50
	passes := func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
	for _, filters := range [][]rondo.FilterOpenFunc{nil, {passes}, {passes, passes}} {
		calls := 0
		h := &handler{w: w}
		h.data = func(c *rondo.Conn, in []byte) (int, error) {
			calls++
			set := func(n int) {
				l := c.Limits()
				l.MaxInput = n
				c.SetLimits(l)
			}
			set(20)
			i := bytes.IndexByte(in, '\n')
			if i < 0 {
				return 0, nil
			}
			set(body + i + 1)
			if len(in) < body+i+1 {
				return 0, nil
			}
			return body + i + 1, nil
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), filters...)))
		send(w, p, []byte("header\na part of the body"))
		w.Sleep(100 * time.Millisecond)
		h.do(func(*rondo.Conn) {
			if calls > most {
				w.Errorf("%d filters: %d calls of Data, though nothing happens", len(filters), calls)
			}
		})
		p.CloseWrite()
		w.Until("EOF", h.hasEOF)
		p.Close()
		h.untilClosed()
	}
}

// A gauge passes what there is room for, and knows its longest input. If it shuts, it is not ready
// from its first input on.
type gauge struct {
	rondo.PassThrough
	shuts bool
	most  int
}

func (f *gauge) Inbound(s *rondo.FilterPort, in []byte) (n int, err error) {
	f.most = max(f.most, len(in))
	for n < len(in) && s.Room() > 0 {
		k := min(len(in)-n, s.Room())
		s.Deliver(in[n : n+k])
		n += k
	}
	if f.shuts {
		f.shuts = false
		s.Unready()
	}
	return n, nil
}

// closedUnderAFlood: a connection that closes while input waits that the Handler did not take, and
// output that a filter has not sent, keeps no more input than before.
func closedUnderAFlood(w World) {
	const (
		flood = 2 << 20
		file  = 12 << 20 // more than sockets hold
		most  = 256 << 10
	)
	for _, shuts := range []bool{false, true} {
		f := &gauge{shuts: shuts}
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			c.Pause()
			return 0, nil
		}}
		e := &rondo.Engine{NumLoops: 1, MaxInput: 100, Linger: time.Second}
		p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return f })))
		send(w, p, pattern(1000))
		w.Sleep(20 * time.Millisecond)
		h.do(func(c *rondo.Conn) {
			limit(c, func(l *rondo.Limits) { l.ReadWhenFull = true })
			if err := c.SendFile(tempFile(w, pattern(file)), 0, file, nil); err != nil {
				w.Error(err)
			}
			c.Close()
		})
		p.SetWriteDeadline(w.Now().Add(500 * time.Millisecond))
		p.Write(pattern(flood)) // as much as is taken, until the connection lingers no longer
		h.untilClosed()
		if f.most > most {
			w.Errorf("shuts %v: %d bytes waited for the filter", shuts, f.most)
		}
		p.Close()
	}
}

// A saver keeps its input, and delivers what there is room for when it is told to.
type saver struct {
	rondo.PassThrough
	port  *rondo.FilterPort
	queue []byte
}

func (f *saver) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	f.port = s
	f.queue = append(f.queue, in...)
	return len(in), nil
}

func (f *saver) deliver() {
	n := min(len(f.queue), f.port.Room())
	f.port.Deliver(f.queue[:n])
	f.queue = f.queue[n:]
}

// limitsLowered: input that waits for more is full once MaxInput is lowered: the Handler gets it
// again, though nothing comes.
func limitsLowered(w World) {
	const total, most, low = 90, 100, 50
	f, h := &saver{}, slowHandler(w, 1)
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: most}, rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return f })))
	send(w, p, pattern(total))
	for h.received() == 0 {
		h.do(func(*rondo.Conn) {
			if len(f.queue) == total {
				f.deliver()
			}
		})
		w.Sleep(time.Millisecond)
	}
	h.do(func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.MaxInput = low }) })
	w.Until("the input", func() bool { return h.received() > total-low })
	p.Close()
	h.untilClosed()
}

// limitsBelowAPart: a part of a unit that is longer than a lowered MaxInput ends the connection when
// more comes, also if another filter is below.
func limitsBelowAPart(w World) {
	for _, below := range []bool{false, true} {
		f := &liner{}
		h := slowHandler(w, 1000)
		filters := []rondo.FilterOpenFunc{func(*rondo.Conn) rondo.Filter { return f }}
		if below {
			filters = append([]rondo.FilterOpenFunc{func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }}, filters...)
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: 1 << 20, Linger: time.Millisecond}, rondo.Filtered(h.one(), filters...)))
		send(w, p, bytes.Repeat([]byte{'x'}, 100_000))
		for longest := 0; longest < 100_000; w.Sleep(time.Millisecond) {
			h.do(func(*rondo.Conn) { longest = f.longest })
		}
		h.do(func(c *rondo.Conn) { limit(c, func(l *rondo.Limits) { l.MaxInput = 1000 }) })
		p.SetWriteDeadline(w.Now().Add(time.Second))
		p.Write([]byte("more"))
		w.Until("the end", h.isClosed)
		if err := h.untilClosed(); !errors.Is(err, rondo.ErrInputFull) {
			w.Error(err)
		}
		p.Close()
	}
}

// wantedTooMuch: a connection whose Handler Wants more than MaxInput closes, and takes no turns while
// its output waits for the peer.
func wantedTooMuch(w World) {
	const file, most = 12 << 20, 2000 // more than sockets hold; turns
	h := slowHandler(w, 1)
	e := &rondo.Engine{NumLoops: 1, MaxInput: 100, Linger: time.Second}
	p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })))
	h.do(func(c *rondo.Conn) {
		limit(c, func(l *rondo.Limits) { l.ReadWhenFull = true })
		if err := c.SendFile(tempFile(w, pattern(file)), 0, file, nil); err != nil {
			w.Error(err)
		}
		c.Want(300)
	})
	w.Sleep(50 * time.Millisecond)
	send(w, p, pattern(150))
	w.Sleep(50 * time.Millisecond)
	before := e.Stats().Turns
	w.Sleep(100 * time.Millisecond)
	if n := e.Stats().Turns - before; n > most {
		w.Errorf("%d turns, though nothing happens", n)
	}
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrInputFull) {
		w.Error(err)
	}
	p.Close()
}
