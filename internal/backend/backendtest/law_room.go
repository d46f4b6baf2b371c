package backendtest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// Laws of filters above which too much input waits.

// A shutter delivers its first bytes, more than MaxInput, and is not ready until "ready" comes.
type shutter struct {
	rondo.PassThrough
	first int
	shut  bool
}

const shutterFirst = 300

func (f *shutter) Inbound(s *rondo.FilterPort, in []byte) (n int, err error) {
	if f.first > 0 {
		if len(in) < f.first {
			return 0, nil
		}
		n, f.first, f.shut = f.first, 0, true
		s.Deliver(in[:n])
		s.Unready()
	}
	if f.shut && bytes.HasPrefix(in[n:], []byte("ready")) {
		f.shut = false
		n += len("ready")
		s.Ready()
	}
	if !f.shut {
		m := min(len(in)-n, s.Room())
		s.Deliver(in[n : n+m])
		n += m
	}
	return n, nil
}

// shutterWorld serves h behind a shutter and sends its first bytes, with what is behind them.
func shutterWorld(w World, open rondo.OpenFunc, behind string) Peer {
	w.Helper()
	e := &rondo.Engine{NumLoops: 1, MaxInput: 100, MaxOutput: 50_000, Linger: patience}
	p := w.Dial(w.Listen(e, rondo.Filtered(open, func(*rondo.Conn) rondo.Filter { return &shutter{first: shutterFirst} })))
	send(w, p, append(bytes.Clone(pattern(shutterFirst)), behind...))
	return p
}

// slowHandler returns a handler that consumes at most most bytes at a time.
func slowHandler(w World, most int) *handler {
	return &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) { return min(len(in), most), nil }}
}

// inputForTheUnready: a filter that is not ready gets the input that it needs to be ready although
// MaxInput bytes wait for the Handler, which can take none before.
func inputForTheUnready(w World) {
	for _, half := range []bool{false, true} {
		h := slowHandler(w, 60)
		p := shutterWorld(w, h.one(), "")
		if half {
			h.do(func(c *rondo.Conn) {
				c.Write([]byte("goodbye"))
				c.CloseWrite()
			})
		}
		send(w, p, []byte("ready"))
		if half {
			expect(w, p, []byte("goodbye"))
			expectEOF(w, p)
		}
		w.Until("the input", func() bool { return h.received() > shutterFirst-100 })
		p.Close()
		h.untilClosed()
	}
}

// coInputForTheUnready: the same while a coroutine writes, and reads nothing.
func coInputForTheUnready(w World) {
	const total = 100_000 // more than MaxOutput
	for _, at := range []string{"at once", "later"} {
		s := &script{w: w}
		open := s.opener(func(co *coro.Co, c net.Conn) error {
			co.Sleep(50 * time.Millisecond)
			if _, err := c.Write(pattern(total)); err != nil {
				return err
			}
			_, err := io.ReadFull(c, make([]byte, shutterFirst))
			return err
		})
		var p Peer
		if at == "later" {
			p = shutterWorld(w, open, "")
			w.Sleep(100 * time.Millisecond)
			send(w, p, []byte("ready"))
		} else {
			p = shutterWorld(w, open, "ready")
		}
		expect(w, p, pattern(total))
		p.Close()
		if err := s.untilEnded(1); err != nil {
			w.Error(err)
		}
	}
}

// closedWhileItIsNotRead: a connection that is paused, or whose input is full, reads again when it
// closes: a filter needs input to send its output.
func closedWhileItIsNotRead(w World) {
	goodbye := func(c *rondo.Conn) {
		c.Write([]byte("goodbye"))
		c.Close()
	}
	f := &renegotiator{}
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: patience},
		rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return f })))
	h.do(func(c *rondo.Conn) {
		f.stage.Unready()
		c.Pause()
	})
	w.Sleep(20 * time.Millisecond)
	h.do(goodbye)
	send(w, p, []byte("ready"))
	expect(w, p, []byte("goodbye"))
	expectEOF(w, p)
	p.Close()
	h.untilClosed()

	for _, behind := range []string{"", "ready"} {
		h := slowHandler(w, 60)
		p := shutterWorld(w, h.one(), behind)
		w.Until("some input", func() bool { return h.received() > 0 || behind != "" })
		w.Sleep(20 * time.Millisecond)
		h.do(goodbye)
		if behind == "" {
			send(w, p, []byte("ready"))
		}
		expect(w, p, []byte("goodbye"))
		expectEOF(w, p)
		p.Close()
		h.untilClosed()
	}
}

// A nibbler takes a byte at a time.
type nibbler struct {
	rondo.PassThrough
	port *rondo.FilterPort
	most atomic.Int64 // the most that waited for it
}

func (f *nibbler) Start(s *rondo.FilterPort) error {
	f.port = s
	s.Ready()
	return nil
}

func (f *nibbler) Inbound(_ *rondo.FilterPort, in []byte) (int, error) {
	f.most.Store(max(f.most.Load(), int64(len(in))))
	return 1, nil
}

// closedBelowAFullFilter: a closing connection whose output has ended is read to its end, even if
// more input waits for a filter than may.
func closedBelowAFullFilter(w World) {
	const most = 100_000
	f := &nibbler{}
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: most, Linger: time.Hour}, rondo.Filtered(h.one(),
		func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }, func(*rondo.Conn) rondo.Filter { return f })))
	h.do(func(c *rondo.Conn) {
		f.port.Unready() // it keeps the output
		c.Write([]byte("goodbye"))
		c.Close()
	})
	send(w, p, pattern(most+most/4))
	w.Until("much input", func() bool { return f.most.Load() > most })
	h.do(func(*rondo.Conn) { f.port.Ready() })
	expect(w, p, []byte("goodbye"))
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
}

// A sceptic is a nibbler until all is set, and checks that nothing is missing in its input.
type sceptic struct {
	nibbler
	all  bool
	at   atomic.Int64 // how many bytes it has taken
	want []byte
}

func (f *sceptic) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	n, _ := f.nibbler.Inbound(s, in)
	if f.all {
		n = len(in)
	}
	at := int(f.at.Add(int64(n)))
	if i := mismatch(in[:n], f.want[at-n:at]); i >= 0 {
		return 0, fmt.Errorf("byte %d of the input is missing", at-n+i)
	}
	return n, nil
}

// A splitter delivers its input in pieces.
type splitter struct{ rondo.PassThrough }

func (splitter) Inbound(s *rondo.FilterPort, in []byte) (n int, err error) {
	for n < len(in) && s.Room() > 0 {
		k := min(len(in)-n, 1000)
		s.Deliver(in[n : n+k])
		n += k
	}
	return n, nil
}

// closedBelowASceptic: a filter without which a closing connection cannot end its output gets all
// input in order, also what waited for a filter below it because there was no room.
func closedBelowASceptic(w World) {
	const most = 70_000
	f := &sceptic{want: pattern(2 * most)}
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: most, Linger: time.Hour}, rondo.Filtered(h.one(),
		func(*rondo.Conn) rondo.Filter { return splitter{} },
		func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} },
		func(*rondo.Conn) rondo.Filter { return f })))
	n := push(w, p, f.want, 300*time.Millisecond)
	w.Until("much input", func() bool { return f.most.Load() >= most })
	h.do(func(c *rondo.Conn) {
		f.port.Unready() // it keeps the output
		c.Write([]byte("goodbye"))
		c.Close()
	})
	h.do(func(c *rondo.Conn) {
		f.all = true
		c.SetLimits(c.Limits()) // so that it is offered its input again
	})
	w.Until("all input", func() bool { return f.at.Load() == int64(n) })
	h.do(func(*rondo.Conn) { f.port.Ready() })
	expect(w, p, []byte("goodbye"))
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
}

// A delayer delivers its input later, as a filter does that decodes on another goroutine.
type delayer struct{ rondo.PassThrough }

func (f delayer) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	in = bytes.Clone(in)
	s.Conn().Loop().AfterFunc(time.Millisecond, func() { f.give(s, in) })
	return len(in), nil
}

func (f delayer) give(s *rondo.FilterPort, in []byte) {
	for ; len(in) > 0 && s.Room() > 0; in = in[min(len(in), 150):] {
		s.Deliver(in[:min(len(in), 150)])
	}
	if len(in) > 0 {
		s.Conn().Loop().AfterFunc(time.Millisecond, func() { f.give(s, in) })
	}
}

// deliveredLater: a slow Handler gets what a filter delivers when nothing is received, one by one,
// and a filter above that does not ask for Room does not end the connection.
func deliveredLater(w World) {
	const total = 600
	filters := []rondo.FilterOpenFunc{
		func(*rondo.Conn) rondo.Filter { return delayer{} },
		func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} },
	}
	for n := 1; n <= len(filters); n++ {
		h := slowHandler(w, 60)
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: 100}, rondo.Filtered(h.one(), filters[:n]...)))
		send(w, p, pattern(total)[:150])
		w.Sleep(10 * time.Millisecond)
		send(w, p, pattern(total)[150:])
		w.Until("the input", func() bool { return h.received() > total-100 || h.isClosed() })
		if h.isClosed() {
			w.Errorf("with %d filters: %v", n, h.untilClosed())
		}
		p.Close()
		h.untilClosed()
	}
}

// A waiter is ready once "ready" comes, and delivers what is before and behind it, when there is
// room.
type waiter struct {
	rondo.PassThrough
	before int
}

func (f *waiter) Start(*rondo.FilterPort) error { return nil }

func (f *waiter) Inbound(s *rondo.FilterPort, in []byte) (n int, err error) {
	if n = min(f.before, len(in), s.Room()); n > 0 {
		f.before -= n
		s.Deliver(in[:n])
	}
	if f.before == 0 && bytes.HasPrefix(in[n:], []byte("ready")) {
		f.before = -1
		n += len("ready")
		s.Ready()
	}
	if f.before < 0 {
		m := min(len(in)-n, s.Room())
		s.Deliver(in[n : n+m])
		n += m
	}
	return n, nil
}

// limitsRaised: a filter that waits for Room gets its input when MaxInput is raised.
func limitsRaised(w World) {
	const before = 200
	h := slowHandler(w, 1000)
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: 100}, rondo.Filtered(h.one(), func(c *rondo.Conn) rondo.Filter {
		c.Loop().AfterFunc(50*time.Millisecond, func() {
			l := c.Limits()
			l.MaxInput = 10_000
			c.SetLimits(l)
		})
		return &waiter{before: before}
	})))
	send(w, p, append(bytes.Clone(pattern(before)), "ready and more"...))
	w.Until("the input", func() bool { return h.received() == before+len(" and more") })
	p.Close()
	h.untilClosed()
}

// An unpacker makes a block of each blockIn bytes, once there is room for all of it.
type unpacker struct{ rondo.PassThrough }

const (
	blockIn  = 10
	blockOut = 30_000
)

func (unpacker) Inbound(s *rondo.FilterPort, in []byte) (n int, err error) {
	for ; len(in)-n >= blockIn && s.Room() >= blockOut; n += blockIn {
		s.Deliver(pattern(blockOut))
	}
	return n, nil
}

// A trickler delivers what there is room for.
type trickler struct{ rondo.PassThrough }

func (trickler) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	n := min(len(in), s.Room())
	s.Deliver(in[:n])
	return n, nil
}

// eofAfterTheBlocks: a filter that waits for more Room than there is hears of the end of its input
// after its rest, because the filter above it makes that room.
func eofAfterTheBlocks(w World) {
	const blocks, most = 10, 1000
	h := slowHandler(w, most/2)
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: most}, rondo.Filtered(h.one(),
		func(*rondo.Conn) rondo.Filter { return unpacker{} }, func(*rondo.Conn) rondo.Filter { return trickler{} })))
	send(w, p, pattern(blocks*blockIn))
	p.CloseWrite()
	w.Until("EOF", h.hasEOF)
	if got := h.received(); got <= blocks*blockOut-most { // less than most is not offered again
		w.Errorf("the Handler got %d bytes, of %d", got, blocks*blockOut)
	}
	p.Close()
	h.untilClosed()
}
