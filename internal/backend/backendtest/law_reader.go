package backendtest

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// Laws of callbacks that change a connection's reader: they add filters, remove filters, set a
// Handler, or resume the connection.

// A shouter delivers "start " as it starts, and its input in capitals.
type shouter struct{ rondo.PassThrough }

func (shouter) Start(s *rondo.FilterPort) error {
	s.Ready()
	s.Deliver([]byte("start "))
	return nil
}

func (shouter) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	s.Deliver(bytes.ToUpper(in))
	return len(in), nil
}

// A talker delivers a word of its own for each piece of output.
type talker struct{ rondo.PassThrough }

func (talker) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Deliver(append([]byte("after-"), out...))
	s.Send(out)
	return nil
}

func talks(*rondo.Conn) rondo.Filter { return talker{} }

// A visitor is a shouter that removes itself: as it starts, or when its port's Remove is called.
type visitor struct {
	shouter
	port   *rondo.FilterPort
	stays  bool
	closed atomic.Bool
}

func (l *visitor) Start(s *rondo.FilterPort) error {
	l.port = s
	if !l.stays {
		defer s.Remove()
	}
	return l.shouter.Start(s)
}

func (l *visitor) Closed(*rondo.FilterPort, error) { l.closed.Store(true) }

func say(c *rondo.Conn, s string) {
	c.Write([]byte(s))
	c.Flush()
}

// changesInData: Data consumes "use " of "use rest ", and calls change. From then on it gets want.
// With talking, a talker is below.
func changesInData(w World, want string, talking bool, change func(*rondo.Conn)) {
	w.Helper()
	const said = "use rest "
	var filters []rondo.FilterOpenFunc
	if talking {
		filters = append(filters, talks)
	}
	var got []byte
	var n atomic.Int64
	inside, changed := false, false
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if inside {
			w.Error("Data is called within itself")
		}
		inside = true
		defer func() { inside = false }()
		switch {
		case changed:
			got = append(got, in...)
			n.Store(int64(len(got)))
			return len(in), nil
		case len(in) < len(said):
			return 0, nil
		}
		changed = true
		change(c)
		if string(in) != said {
			w.Errorf("Data's bytes have changed while it runs: %q", in)
		}
		return len("use "), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), filters...)))
	send(w, p, []byte(said))
	w.Until("the input", func() bool { return n.Load() >= int64(len(want)) })
	h.do(func(*rondo.Conn) {
		if string(got) != want {
			w.Errorf("talking %v: got %q, want %q", talking, got, want)
		}
	})
	p.Close()
	h.untilClosed()
}

// deliveredInData: a filter that Data adds gets what Data leaves, and what came meanwhile, in
// order, but nothing that it has delivered itself. Data is not called within itself.
func deliveredInData(w World) {
	use := func(c *rondo.Conn) {
		say(c, "a ")
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return shouter{} })
		say(c, "b ")
	}
	changesInData(w, "start REST ", false, use)
	changesInData(w, "start REST AFTER-A AFTER-B ", true, use)
}

// removedInData: the same for a filter that is also removed while Data runs.
func removedInData(w World) {
	for _, stays := range []bool{false, true} {
		use := func(c *rondo.Conn) {
			l := &visitor{stays: stays}
			say(c, "a ")
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return l })
			say(c, "b ")
			l.port.Remove()
			say(c, "c ")
		}
		changesInData(w, "start rest ", false, use)
		changesInData(w, "start rest after-a after-b after-c ", true, use)
	}
}

// removedWhilePaused: a filter leaves a connection that is paused, by its user or another filter.
func removedWhilePaused(w World) {
	for _, byFilter := range []bool{false, true} {
		l, other := &visitor{stays: true}, &visitor{stays: true}
		h := &handler{w: w}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
		h.do(func(c *rondo.Conn) {
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return l })
			if byFilter {
				c.Use(nil, func(*rondo.Conn) rondo.Filter { return other })
				other.port.Pause()
			} else {
				c.Pause()
			}
		})
		h.do(func(*rondo.Conn) { l.port.Remove() })
		w.Until("the filter's Closed", l.closed.Load)
		h.do(func(c *rondo.Conn) {
			if byFilter {
				other.port.Resume()
			} else {
				c.Resume()
			}
		})
		if byFilter {
			expect(w, p, []byte("start start "))
		} else {
			expect(w, p, []byte("start "))
		}
		p.Close()
		h.untilClosed()
	}
}

// A caller sends a word and removes itself, as SendProxy of package filter does.
type caller struct{ rondo.PassThrough }

func (caller) Start(s *rondo.FilterPort) error {
	s.Send([]byte("hi "))
	s.Remove()
	return nil
}

// detachedInData: Data adds a filter that removes itself at once, and detaches the connection.
func detachedInData(w World) {
	h := &handler{w: w}
	nc := make(chan net.Conn, 1)
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return caller{} })
		err := c.Detach(func(got net.Conn, err error) {
			if err != nil {
				w.Errorf("Detach's function got %v", err)
			}
			nc <- got
		})
		if err != nil {
			w.Errorf("Detach: %v", err)
			nc <- nil
		}
		return 1, nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	send(w, p, []byte("xy"))
	w.Until("the detached connection", func() bool { return len(nc) == 1 })
	expect(w, p, []byte("hi "))
	if c := <-nc; c != nil {
		w.Call(func() {
			if n, err := c.Read(make([]byte, 10)); n != 1 || err != nil {
				w.Errorf("Read: %d, %v", n, err)
			}
		})
		c.Close()
	}
	p.Close()
}

// resumedByOpen: a paused connection gets a Handler whose open resumes it, in a function posted
// and in another connection's Data. The loop reads it.
func resumedByOpen(w World) {
	for _, posted := range []bool{true, false} {
		e := &rondo.Engine{NumLoops: 1}
		first, second := &handler{w: w}, &handler{w: w}
		var conn *rondo.Conn
		use := func() {
			conn.Use(func(c *rondo.Conn) rondo.Handler {
				c.Resume()
				return second.one()(c)
			})
		}
		other := &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) {
			use()
			return len(in), nil
		}}
		p := w.Dial(w.Listen(e, func(c *rondo.Conn) rondo.Handler {
			conn = c
			c.Pause()
			return first.one()(c)
		}))
		first.conn()
		if posted {
			if err := firstLoop(e).Post(use); err != nil {
				w.Fatal(err)
			}
		} else {
			q := w.Dial(w.Listen(e, other.one()))
			send(w, q, []byte("x"))
			q.Close()
		}
		send(w, p, []byte("hello"))
		expect(w, p, []byte("hello"))
		p.Close()
		second.untilClosed()
	}
}

// resumedInShutdown: a connection's Shutdown causes a call of another one's Data, which resumes
// the first. The loop reads it.
func resumedInShutdown(w World) {
	e := &rondo.Engine{NumLoops: 1, Linger: time.Second}
	var first, second *rondo.Conn
	talking := &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) {
		first.Resume()
		return len(in), nil
	}}
	var done atomic.Bool
	paused := &parting{handler: &handler{w: w}, shutdown: func(*rondo.Conn) {
		say(second, "b ")
		done.Store(true)
	}}
	p := w.Dial(w.Listen(e, func(c *rondo.Conn) rondo.Handler {
		first = c
		c.Pause()
		paused.one()(c)
		return paused
	}))
	paused.conn()
	q := w.Dial(w.Listen(e, rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		second = c
		talking.one()(c)
		return &parting{handler: talking, shutdown: func(*rondo.Conn) {}}
	}, talks)))
	talking.conn()
	ended := make(chan error, 1)
	go func() { ended <- e.Shutdown(w.Timeout(20 * time.Second)) }()
	w.Until("Shutdown", done.Load)
	send(w, p, []byte("hello"))
	expect(w, p, []byte("hello"))
	p.Close()
	q.Close()
	w.Until("the end", func() bool { return len(ended) == 1 })
}

// setInOpen: Data is not called while open runs, even of a Handler that open has set and whose
// filter delivers at once, and only the Handler that open returns gets input.
func setInOpen(w World) {
	for _, again := range []bool{true, false} {
		first, second := &handler{w: w}, &handler{w: w}
		opening := false
		data := func(c *rondo.Conn, in []byte) (int, error) {
			if opening {
				w.Error("Data is called within open")
			}
			return c.Write(in)
		}
		first.data, second.data = data, data
		if !again {
			first.data = func(_ *rondo.Conn, in []byte) (int, error) {
				w.Errorf("a Handler that open has not returned got %d bytes", len(in))
				return len(in), nil
			}
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
			opening = true
			defer func() { opening = false }()
			h := first.one()(c)
			c.SetHandler(h)
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return giver{n: 10} })
			if again {
				return h
			}
			return second.one()(c)
		}))
		expect(w, p, pattern(10))
		p.Close()
		if again {
			first.untilClosed()
		} else {
			second.untilClosed()
		}
	}
}

// changedOnFullInput: Data consumes none of a full input, and gives it to a filter or another
// Handler.
func changedOnFullInput(w World) {
	const full = 1000
	for _, filter := range []bool{true, false} {
		changed := false
		var echo *handler
		data := func(c *rondo.Conn, in []byte) (int, error) {
			switch {
			case changed:
				return c.Write(in)
			case len(in) < full:
				return 0, nil
			}
			changed = true
			if filter {
				c.Use(nil, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
			} else {
				c.SetHandler(echo)
			}
			return 0, nil
		}
		echo = &handler{w: w, data: data}
		h := &handler{w: w, data: data}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: full}, h.one()))
		send(w, p, pattern(full))
		expect(w, p, pattern(full))
		p.Close()
	}
}

// usedByCoroutine: a coroutine reads a part of the input, and adds a filter. Its next Read gets the
// rest from the filter: plain bytes behind STARTTLS must not pass for decrypted ones.
func usedByCoroutine(w World) {
	pass := func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
	for _, filters := range [][]rondo.FilterOpenFunc{nil, {pass}} {
		e := &rondo.Engine{NumLoops: 1}
		open := coro.Handler(func(co *coro.Co, c net.Conn) error {
			b := make([]byte, 100)
			if _, err := io.ReadFull(c, b[:4]); err != nil {
				return err
			}
			co.Conn().Use(nil, func(*rondo.Conn) rondo.Filter { return shouter{} })
			for {
				n, err := c.Read(b)
				if err != nil {
					return err
				}
				c.Write(b[:n])
			}
		})
		p := w.Dial(w.Listen(e, rondo.Filtered(open, filters...)))
		send(w, p, []byte("use rest"))
		expect(w, p, []byte("start REST"))
		send(w, p, []byte(" more"))
		expect(w, p, []byte(" MORE"))
		p.Close()
		w.Until("the end", func() bool { return e.Stats().Open == 0 })
	}
}

// deliveredInHook: a Handler that waits for filters to be replaced gets no input, even if the hook
// FilterReady causes some.
func deliveredInHook(w World) {
	second := &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
	first := &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) {
		w.Errorf("the old Handler got %q", in)
		return len(in), nil
	}}
	hooked := false
	e := &rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{FilterReady: func(c *rondo.Conn, f rondo.Filter) {
		if _, ok := f.(talker); ok && !hooked {
			hooked = true
			say(c, "a ")
		}
	}}}
	p := w.Dial(w.Listen(e, first.one()))
	first.do(func(c *rondo.Conn) { c.Use(second.one(), talks) })
	expect(w, p, []byte("a "))
	p.Close()
	second.untilClosed()
	if got := second.got.String(); got != "after-a " {
		w.Errorf("the new Handler got %q", got)
	}
}

// A portioner delivers its input in portions, when there is room. It is not ready from its first
// input until open is called.
type portioner struct {
	rondo.PassThrough
	port  *rondo.FilterPort
	shut  bool
	ended bool
}

func (f *portioner) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	n := 0
	switch {
	case f.port == nil:
		f.port, f.shut = s, true
		s.Unready()
		n = min(len(in), 50)
	case s.Room() > 0:
		n = min(len(in), 300) // one Deliver may exceed Room
	}
	s.Deliver(in[:n])
	return n, nil
}

func (f *portioner) EOF(s *rondo.FilterPort) error {
	if f.ended = true; !f.shut {
		s.EOF()
	}
	return nil
}

func (f *portioner) open() {
	f.shut = false
	f.port.Ready()
	if f.ended {
		f.port.EOF()
	}
}

// eofAfterTheRest: a filter hears of the end of its input when it has consumed what it had no room
// for: because it was not ready, or because the Handler is slow.
func eofAfterTheRest(w World) {
	const total, most = 1000, 100
	for _, slow := range []bool{false, true} {
		f := &portioner{}
		h := &handler{w: w, data: func(_ *rondo.Conn, in []byte) (int, error) {
			if slow {
				return min(len(in), 10), nil
			}
			return len(in), nil
		}}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: most},
			rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return f })))
		send(w, p, pattern(total))
		p.CloseWrite()
		for turns := 0; turns < 10; { // after the first input, for the end to come
			w.Sleep(time.Millisecond)
			h.do(func(*rondo.Conn) {
				if f.port != nil {
					turns++
				}
			})
		}
		h.do(func(*rondo.Conn) { f.open() })
		w.Until("EOF", h.hasEOF)
		if got := h.received(); got != total && !(slow && got > total-most) { // less than most is not offered again
			w.Errorf("slow %v: the Handler got %d bytes, of %d", slow, got, total)
		}
		p.Close()
		h.untilClosed()
	}
}
