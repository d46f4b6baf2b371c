package rondo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// sheet is what a filter of a test writes down, and how it differs from one that
// changes nothing.
type sheet struct {
	name string
	log  *[]string

	start    func(s *rondo.FilterPort) error
	inbound  func(s *rondo.FilterPort, in []byte) (int, error)
	outbound func(s *rondo.FilterPort, out []byte) error
	end      func(s *rondo.FilterPort) error
	eof      func(s *rondo.FilterPort) error

	stage *rondo.FilterPort
}

func (f *sheet) filter(*rondo.Conn) rondo.Filter { return f }

func (f *sheet) note(format string, args ...any) {
	if f.log != nil {
		*f.log = append(*f.log, f.name+" "+fmt.Sprintf(format, args...))
	}
}

func (f *sheet) Start(s *rondo.FilterPort) error {
	f.note("start")
	f.stage = s
	if f.start != nil {
		return f.start(s)
	}
	s.Ready()
	return nil
}

func (f *sheet) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	f.note("in %d", len(in))
	if f.inbound != nil {
		return f.inbound(s, in)
	}
	s.Deliver(in)
	return len(in), nil
}

func (f *sheet) Outbound(s *rondo.FilterPort, out []byte) error {
	f.note("out %d", len(out))
	if f.outbound != nil {
		return f.outbound(s, out)
	}
	s.Send(out)
	return nil
}

func (f *sheet) EOF(s *rondo.FilterPort) error {
	f.note("eof")
	if f.eof != nil {
		return f.eof(s)
	}
	s.EOF()
	return nil
}

func (f *sheet) CloseWrite(s *rondo.FilterPort) error {
	f.note("end")
	if f.end != nil {
		return f.end(s)
	}
	return nil
}

func (f *sheet) Closed(_ *rondo.FilterPort, err error) { f.note("closed %v", err) }

// player is a handler that writes down what it is called with.
type player struct {
	log  *[]string
	data func(c *rondo.Conn, in []byte) (int, error)
	got  []byte
	err  error
	over bool
}

func (h *player) Data(c *rondo.Conn, in []byte) (int, error) {
	n, err := len(in), error(nil)
	if h.data != nil {
		n, err = h.data(c, in)
	}
	h.got = append(h.got, in[:n]...)
	return n, err
}

func (h *player) EOF(c *rondo.Conn) { h.note("eof"); c.Close() }

func (h *player) Closed(_ *rondo.Conn, err error) {
	h.note("closed %v", err)
	h.err, h.over = err, true
}

func (h *player) note(format string, args ...any) {
	if h.log != nil {
		*h.log = append(*h.log, "handler "+fmt.Sprintf(format, args...))
	}
}

func (h *player) open(*rondo.Conn) rondo.Handler { h.note("open"); return h }

// calm is a network without surprises, for what needs exact calls.
var calm = rondotest.Options{Seed: 1, Fragment: -1}

func wantLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("calls:\n%s\nwant:\n%s", g, w)
	}
}

// A connection with two filters, from its beginning to its orderly end.
func TestFilterCalls(t *testing.T) {
	var log []string
	low := &sheet{name: "low", log: &log, end: func(s *rondo.FilterPort) error { s.Send([]byte(" bye")); return nil }}
	high := &sheet{name: "high", log: &log, end: func(s *rondo.FilterPort) error { s.Send([]byte(" end")); return nil }}
	h := &player{log: &log, data: func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }}
	n := rondotest.New(t, calm)
	n.Serve(":7", rondo.Filtered(h.open, low.filter, high.filter))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("hello")
	c.Expect("hello")
	c.CloseWrite()
	c.Expect(" end bye")
	c.ExpectEOF()
	wantLog(t, log,
		"low start", "high start", "handler open",
		"low in 5", "high in 5", "high out 5", "low out 5",
		"low eof", "high eof", "handler eof",
		"high end", "low out 4", "low end",
		"high closed <nil>", "low closed <nil>", "handler closed <nil>")
}

// A filter starts when those below are ready; output before waits, and the
// OpenFunc comes last.
func TestFilterReady(t *testing.T) {
	var log []string
	greet := func(word string) func(s *rondo.FilterPort, in []byte) (int, error) {
		ready := false
		return func(s *rondo.FilterPort, in []byte) (int, error) {
			n := 0
			if !ready {
				if len(in) < len(word) {
					return 0, nil
				}
				if string(in[:len(word)]) != word {
					return 0, errors.New("rude")
				}
				n, ready = len(word), true
				s.Ready()
			}
			s.Deliver(in[n:])
			return len(in), nil
		}
	}
	wait := func(s *rondo.FilterPort) error { s.Send([]byte("?")); return nil }
	low := func(*rondo.Conn) rondo.Filter {
		return &sheet{name: "low", log: &log, start: wait, inbound: greet("LOW")}
	}
	high := func(*rondo.Conn) rondo.Filter {
		return &sheet{name: "high", log: &log, start: wait, inbound: greet("HIGH")}
	}
	h := &player{log: &log}
	n := rondotest.New(t, calm)
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		c.Use(h.open, low, high)
		c.Write([]byte("early"))
		if got := c.Buffered(); got != 5+1 { // the ? too
			t.Errorf("%d bytes are buffered, want 6", got)
		}
		return &player{}
	})
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Expect("?")
	n.Run()
	wantLog(t, log, "low start")
	c.Send("LO")
	n.Run()
	c.Send("W")
	c.Expect("?")
	c.Send("HIGHest")
	c.Expect("early")
	if string(h.got) != "est" {
		t.Errorf("the handler got %q", h.got)
	}
	wantLog(t, log, "low start", "low in 2", "low in 3", "high start", "low out 1",
		"low in 7", "high in 7", "handler open", "high out 5", "low out 5")

	c.Close()
	n.Run()
	log = nil
	c = n.Dial("tcp", "127.0.0.1:7")
	c.Send("POLITE")
	c.Expect("?")
	c.ExpectEOF()
	c.Close()
	n.Run()
	wantLog(t, log, "low start", "low in 6", "high closed rude", "low closed rude")
}

// What Data leaves goes to the filters that it puts in, and output written before
// does not pass them.
func TestFilterUpgrade(t *testing.T) {
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		for i := range b {
			b[i] ^= 1
		}
		return b
	}
	secret := func(*rondo.Conn) rondo.Filter {
		return &sheet{
			inbound:  func(s *rondo.FilterPort, in []byte) (int, error) { s.Deliver(flip(in)); return len(in), nil },
			outbound: func(s *rondo.FilterPort, out []byte) error { s.Send(flip(out)); return nil },
		}
	}
	inner := func(*rondo.Conn) rondo.Handler {
		return &player{data: func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }}
	}
	plain := func(in []byte) (line []byte, ok bool) {
		end := bytes.IndexByte(in, '\n')
		return in[:end+1], end >= 0
	}
	// Upgrades once, on an unfiltered connection, then again, above that.
	outer := func(next func(c *rondo.Conn)) *player {
		return &player{data: func(c *rondo.Conn, in []byte) (int, error) {
			line, ok := plain(in)
			if !ok {
				return 0, nil
			}
			c.Write([]byte("go " + string(line)))
			next(c)
			c.Write([]byte("gone\n"))
			return len(line), nil
		}}
	}
	for seed := range uint64(50) {
		n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
		n.Serve(":7", func(*rondo.Conn) rondo.Handler {
			return outer(func(c *rondo.Conn) {
				c.Use(func(*rondo.Conn) rondo.Handler {
					return outer(func(c *rondo.Conn) { c.Use(inner, secret) })
				}, secret)
			})
		})
		c := n.Dial("tcp", "127.0.0.1:7")
		c.Send("one\n" + string(flip([]byte("two\n"))) + "three")
		c.Expect("go one\n" + string(flip([]byte("gone\ngo two\n"))) + "gone\n" + "three")
	}
}

// A filter that goes away leaves its input to the next, and the connection as one
// without filters.
func TestFilterRemove(t *testing.T) {
	var log []string
	skip := func(name string) *sheet {
		return &sheet{name: name, log: &log, start: func(*rondo.FilterPort) error { return nil },
			inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
				if len(in) < 3 {
					return 0, nil
				}
				s.SetAddrs(nil, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7})
				s.Remove()
				return 3, nil
			}}
	}
	once := &sheet{name: "once", log: &log, start: func(s *rondo.FilterPort) error { s.Send([]byte("^")); s.Remove(); return nil }}
	h := &player{log: &log, data: func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }}
	n := rondotest.New(t, calm)
	n.Serve(":7", rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		if got := c.RemoteAddr().String(); got != "192.0.2.7:7" {
			t.Errorf("the remote address is %v", got)
		}
		return h.open(c)
	}, once.filter, skip("low").filter, skip("high").filter))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Expect("^")
	c.Send("lowhigHi")
	c.Expect("Hi")
	c.Send(" there")
	c.Expect(" there")
	c.CloseWrite()
	c.ExpectEOF()
	wantLog(t, log, "once start", "low start", "once closed <nil>",
		"low in 8", "high start", "low closed <nil>", "high in 5", "handler open", "high closed <nil>",
		"handler eof", "handler closed <nil>")
}

// Whoever fails, what was sent before is delivered, and the reason is told.
func TestFilterFails(t *testing.T) {
	alert := func(s *rondo.FilterPort) error { s.Send([]byte("alert")); return errors.New("broken") }
	for name, f := range map[string]*sheet{
		"start":    {start: alert},
		"inbound":  {inbound: func(s *rondo.FilterPort, _ []byte) (int, error) { return 0, alert(s) }},
		"too much": {inbound: func(s *rondo.FilterPort, in []byte) (int, error) { s.Send([]byte("alert")); return len(in) + 1, nil }},
		"outbound": {outbound: func(s *rondo.FilterPort, _ []byte) error { return alert(s) }},
		"eof":      {eof: alert},
		"fail": {inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
			s.Conn().Loop().AfterFunc(time.Second, func() { s.Fail(alert(s)) })
			return len(in), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &player{data: func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }}
			low := &sheet{end: func(s *rondo.FilterPort) error { s.Send([]byte("!")); return nil }}
			var failed error
			n := rondotest.New(t, rondotest.Options{})
			e := n.Engine(&rondo.Engine{Trace: &rondo.Trace{
				FilterFailed: func(_ *rondo.Conn, g rondo.Filter, err error) {
					if g == rondo.Filter(f) {
						failed = err
					}
				}}})
			n.Listen(e, "tcp", ":7", func(c *rondo.Conn) rondo.Handler {
				c.Use(nil, low.filter, f.filter)
				return h
			})
			c := n.Dial("tcp", "127.0.0.1:7")
			c.Send("x")
			if name == "eof" {
				c.Expect("x")
				c.CloseWrite()
			}
			c.Expect("alert!")
			c.ExpectEOF()
			c.Close()
			n.Run()
			if !h.over || h.err == nil || h.err != failed {
				t.Errorf("Closed: %v, %v; traced: %v", h.over, h.err, failed)
			}
			if got := e.Stats().FiltersFailed; got != 1 {
				t.Errorf("%d filters failed by the counts", got)
			}
		})
	}
}

// A filter that makes much of little is bounded by Room, and one that does not
// care by MaxInput.
func TestFilterInflates(t *testing.T) {
	const most, times = 10_000, 1000
	var over int
	inflate := func(careful bool) rondo.FilterOpenFunc {
		part := bytes.Repeat([]byte("x"), times)
		return (&sheet{inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
			for n := range in {
				if careful && s.Room() == 0 {
					return n, nil
				}
				s.Deliver(part)
			}
			return len(in), nil
		}}).filter
	}
	n := rondotest.New(t, rondotest.Options{})
	e := n.Engine(&rondo.Engine{MaxInput: most})
	h := &player{}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		over = max(over, len(in))
		if len(h.got) == 0 {
			c.Pause()
			c.Loop().AfterFunc(time.Second, c.Resume)
		}
		return min(len(in), 77), nil
	}
	n.Listen(e, "tcp", ":7", rondo.Filtered(h.open, inflate(true)))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send(strings.Repeat(".", 100))
	n.Advance(2 * time.Second)
	if len(h.got) < 100*times-most || len(h.got) > 100*times || over >= most+times {
		t.Errorf("the handler got %d bytes, at most %d at once", len(h.got), over)
	}

	lazy := &player{data: func(c *rondo.Conn, in []byte) (int, error) { return 1, nil }}
	n.Listen(e, "tcp", ":8", rondo.Filtered(lazy.open, inflate(false)))
	c = n.Dial("tcp", "127.0.0.1:8")
	c.Send(strings.Repeat(".", 100))
	n.Run()
	c.Close()
	n.Run()
	if !errors.Is(lazy.err, rondo.ErrInputFull) {
		t.Errorf("a filter without measure: %v", lazy.err)
	}
}

// A filter that takes nothing of MaxInput bytes loses the connection, unless it
// waits for something.
func TestFilterInputIsBounded(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	e := n.Engine(&rondo.Engine{MaxInput: 1000})
	h := &player{}
	stuck := &sheet{inbound: func(*rondo.FilterPort, []byte) (int, error) { return 0, nil }}
	n.Listen(e, "tcp", ":7", func(c *rondo.Conn) rondo.Handler { c.Use(nil, stuck.filter); return h })
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Write(make([]byte, 100_000))
	n.Run()
	c.Close()
	n.Run()
	if !errors.Is(h.err, rondo.ErrInputFull) {
		t.Errorf("Closed got %v", h.err)
	}

	var waiting *rondo.FilterPort
	h = &player{}
	patient := &sheet{inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
		if waiting == nil {
			waiting = s
			s.Pause()
			s.Conn().Loop().AfterFunc(time.Minute, s.Resume)
			return 0, nil
		}
		s.Deliver(in)
		return len(in), nil
	}}
	n.Listen(e, "tcp", ":8", func(c *rondo.Conn) rondo.Handler { c.Use(nil, patient.filter); return h })
	c = n.Dial("tcp", "127.0.0.1:8")
	const much = 1 << 20
	sent := make(chan error, 1)
	go func() { _, err := c.Write(make([]byte, much)); sent <- err }()
	n.Advance(59 * time.Second)
	if len(h.got) != 0 || h.over {
		t.Errorf("during Pause the handler got %d bytes, closed: %v", len(h.got), h.over)
	}
	n.Until(func() bool { return len(h.got) == much })
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// What was written before a filter is ready is still sent when the handler closes,
// within the linger time.
func TestFilterCloseBeforeReady(t *testing.T) {
	slow := func() *sheet {
		return &sheet{
			start:   func(*rondo.FilterPort) error { return nil },
			inbound: func(s *rondo.FilterPort, in []byte) (int, error) { s.Ready(); return len(in), nil },
			end:     func(s *rondo.FilterPort) error { s.Send([]byte(".")); return nil },
		}
	}
	for _, test := range []struct {
		name string
		then func(c *rondotest.Conn, n *rondotest.Network)
		want error
	}{
		{"ready", func(c *rondotest.Conn, n *rondotest.Network) {
			c.Send("now")
			c.Expect("early.")
			c.ExpectEOF()
			c.Close()
		}, nil},
		{"never", func(c *rondotest.Conn, n *rondotest.Network) { n.Advance(time.Hour) }, rondo.ErrLinger},
		{"gone", func(c *rondotest.Conn, n *rondotest.Network) { c.CloseWrite() }, io.ErrUnexpectedEOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{})
			h := &player{}
			n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
				c.Use(nil, slow().filter)
				c.Write([]byte("early"))
				c.Close()
				return h
			})
			c := n.Dial("tcp", "127.0.0.1:7")
			n.Run()
			test.then(c, n)
			n.Run()
			if !h.over || !errors.Is(h.err, test.want) {
				t.Errorf("Closed: %v, %v; want %v", h.over, h.err, test.want)
			}
		})
	}
	n := rondotest.New(t, rondotest.Options{})
	h := &player{}
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		c.Use(nil, slow().filter)
		c.Close() // with nothing written there is nothing to wait for
		return h
	})
	c := n.Dial("tcp", "127.0.0.1:7")
	c.ExpectEOF()
	c.Close()
	n.Run()
	if !h.over || h.err != nil {
		t.Errorf("Closed: %v, %v", h.over, h.err)
	}
}

// Output that waits for a filter counts, passes HighWater when the filter is
// ready, and drains.
func TestFilterOutputWaits(t *testing.T) {
	const high, most = 10_000, 100_000
	drained := 0
	h := &drainer{f: func() { drained++ }}
	n := rondotest.New(t, rondotest.Options{})
	e := n.Engine(&rondo.Engine{HighWater: high, LowWater: high / 2, MaxOutput: most})
	slow := &sheet{
		start:   func(*rondo.FilterPort) error { return nil },
		inbound: func(s *rondo.FilterPort, in []byte) (int, error) { s.Ready(); return len(in), nil },
	}
	var conn *rondo.Conn
	block := make([]byte, 1000)
	n.Listen(e, "tcp", ":7", func(c *rondo.Conn) rondo.Handler {
		conn = c
		c.Use(nil, slow.filter)
		for c.Buffered() <= 2*high {
			c.Write(block)
		}
		if _, err := c.Write(make([]byte, most)); !errors.Is(err, rondo.ErrOutputFull) {
			t.Errorf("above MaxOutput: %v", err)
		}
		return h
	})
	c := n.Dial("tcp", "127.0.0.1:7")
	n.Run()
	if drained != 0 || conn.Buffered() != 2*high+1000 {
		t.Errorf("before: drained %d times, %d bytes wait", drained, conn.Buffered())
	}
	c.Send("go")
	c.Expect(string(make([]byte, 2*high+1000)))
	n.Run()
	if drained != 1 || conn.Buffered() != 0 {
		t.Errorf("afterwards: drained %d times, %d bytes wait", drained, conn.Buffered())
	}
}

type drainer struct {
	player
	f func()
}

func (d *drainer) Drained(*rondo.Conn) { d.f() }

// Small writes come to a filter in one piece, large ones in full pieces; what is
// written in AvailableBuffer or owned comes as well.
func TestFilterGathers(t *testing.T) {
	var log []string
	f := &sheet{name: "f", log: &log}
	released := 0
	n := rondotest.New(t, calm)
	n.Serve(":7", rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		return &player{data: func(c *rondo.Conn, in []byte) (int, error) {
			log = nil
			switch string(in) {
			case "small":
				for range 100 {
					c.Write(append(c.AvailableBuffer(), "0123456789"...))
				}
			case "large":
				c.Write(make([]byte, 10))
				c.Write(make([]byte, 40<<10))
			case "owned":
				c.WriteOwned(make([]byte, 5), func() { released++ })
			case "flush":
				c.Write([]byte("1"))
				c.Flush()
				c.Write([]byte("2"))
			}
			return len(in), nil
		}}
	}, f.filter))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("small")
	c.Expect(strings.Repeat("0123456789", 100))
	wantLog(t, log, "f out 1000")
	c.Send("large")
	c.Expect(string(make([]byte, 10+40<<10)))
	wantLog(t, log, "f out 16384", "f out 16384", "f out 8202")
	c.Send("owned")
	c.Expect(string(make([]byte, 5)))
	wantLog(t, log, "f out 5")
	if released != 1 {
		t.Errorf("owned bytes were released %d times", released)
	}
	c.Send("flush")
	c.Expect("12")
	wantLog(t, log, "f out 1", "f out 1")
}

// What is written to connections outside their own events waits for the turn's end in buffers of
// its size: thousands of them would take a full piece each otherwise.
func TestFilterGathersLittle(t *testing.T) {
	var sizes []int
	f := &sheet{outbound: func(s *rondo.FilterPort, out []byte) error {
		sizes = append(sizes, cap(out))
		s.Send(out)
		return nil
	}}
	n := rondotest.New(t, calm)
	n.Serve(":7", rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		return &player{data: func(c *rondo.Conn, in []byte) (int, error) {
			how := string(in)
			c.Loop().AfterFunc(time.Millisecond, func() {
				if how == "write" {
					c.Write(make([]byte, 100))
					return
				}
				for range 300 {
					c.Write(append(c.AvailableBuffer(), "0123456789"...))
				}
			})
			return len(in), nil
		}}
	}, f.filter))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("write")
	c.Expect(string(make([]byte, 100)))
	c.Send("append")
	c.Expect(strings.Repeat("0123456789", 300))
	if want := []int{512, 4096}; !slices.Equal(sizes, want) {
		t.Errorf("the filter got buffers of %d bytes, want %d", sizes, want)
	}
}

// Nothing of a filter that ends the input early is read to the handler, nor its
// end told twice.
func TestFilterEndsInput(t *testing.T) {
	var log []string
	f := &sheet{name: "f", inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
		if i := bytes.IndexByte(in, '.'); i >= 0 {
			s.Deliver(in[:i])
			s.EOF()
		}
		return len(in), nil
	}, eof: func(*rondo.FilterPort) error { return nil }}
	h := &halfCloser{player{log: &log}}
	n := rondotest.New(t, calm)
	n.Serve(":7", rondo.Filtered(func(*rondo.Conn) rondo.Handler { return h }, f.filter))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("in.")
	c.Expect("still here")
	c.Send("ignored")
	c.CloseWrite()
	n.Run()
	h.conn(n, (*rondo.Conn).Close)
	c.ExpectEOF()
	n.Run()
	wantLog(t, log, "handler eof", "handler closed <nil>")
	if string(h.got) != "in" {
		t.Errorf("the handler got %q", h.got)
	}
}

var theConn *rondo.Conn

type halfCloser struct{ player }

func (h *halfCloser) EOF(c *rondo.Conn) {
	h.note("eof")
	theConn = c
	c.Write([]byte("still here"))
}

func (h *halfCloser) conn(n *rondotest.Network, f func(*rondo.Conn)) {
	theConn.Ref().Do(f)
	n.Run()
}

// A dialed connection is handed over when its filters are ready, and only once.
func TestFilteredDial(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":7", func(*rondo.Conn) rondo.Handler { return &player{} })
	e := n.Engine(&rondo.Engine{})
	n.Await(func() { e.Start() })
	never := &sheet{start: func(*rondo.FilterPort) error { return nil }}
	h := &player{}
	dial := func(address string, filters ...rondo.FilterOpenFunc) (conns int, errs []error) {
		for l := range e.Loops() {
			l.Post(func() {
				l.Dial("tcp", address, rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
					if err != nil {
						errs = append(errs, err)
						return nil
					}
					conns++
					return h
				}, filters...))
			})
		}
		n.Run()
		return
	}
	if conns, errs := dial("127.0.0.1:7", (&sheet{}).filter); conns != 1 || errs != nil {
		t.Errorf("%d connections, %v", conns, errs)
	}
	if conns, errs := dial("127.0.0.1:9", (&sheet{}).filter); conns != 0 || len(errs) != 1 {
		t.Errorf("to nobody: %d connections, %v", conns, errs)
	}
	late := &sheet{start: func(s *rondo.FilterPort) error { s.Fail(os.ErrDeadlineExceeded); return nil }}
	if conns, errs := dial("127.0.0.1:7", late.filter); conns != 0 || len(errs) != 1 || !errors.Is(errs[0], os.ErrDeadlineExceeded) {
		t.Errorf("with a filter that fails: %d connections, %v", conns, errs)
	}
	if conns, errs := dial("127.0.0.1:7", never.filter); conns != 0 || errs != nil {
		t.Errorf("with a filter that is never ready: %d connections, %v", conns, errs)
	}
	if conns, errs := dial("127.0.0.1:7", func(*rondo.Conn) rondo.Filter { return nil }); conns != 0 || len(errs) != 1 {
		t.Errorf("refused: %d connections, %v", conns, errs)
	}
}

// A filter that is not ready any more holds up what is written and what is read
// until it is again, and a connection that closes meanwhile waits for it.
func TestFilterUnready(t *testing.T) {
	var stage *rondo.FilterPort
	f := &sheet{inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
		stage = s
		for n, b := range in {
			switch b {
			case '(':
				s.Unready()
			case ')':
				s.Ready()
			default:
				s.Deliver(in[n : n+1])
			}
		}
		return len(in), nil
	}}
	h := &player{data: func(c *rondo.Conn, in []byte) (int, error) {
		if in[len(in)-1] == '.' {
			c.Close()
		}
		return c.Write(in)
	}}
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":7", rondo.Filtered(h.open, f.filter))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("a(bc")
	c.Expect("a")
	n.Run()
	stage.Conn().Ref().Write([]byte("posted"))
	n.Run()
	if got := c.Buffered(); string(h.got) != "a" || got != 0 {
		t.Errorf("the handler got %q, the client %d bytes", h.got, got)
	}
	c.Send(")d")
	c.Expect("postedbcd")
	c.Send("(")
	n.Run()
	stage.Conn().Ref().Do(func(c *rondo.Conn) {
		c.Write([]byte("last"))
		c.Close()
	})
	n.Run()
	c.Send(")")
	c.Expect("last")
	c.ExpectEOF()
}

// Filters lists them from the handler's side.
func TestFiltersRange(t *testing.T) {
	low, high := &sheet{}, &sheet{}
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		for range c.Filters() {
			t.Error("a filter of a connection that has none")
		}
		c.Use(nil, low.filter, high.filter)
		var got []rondo.Filter
		for f := range c.Filters() {
			got = append(got, f)
		}
		if len(got) != 2 || got[0] != rondo.Filter(high) || got[1] != rondo.Filter(low) {
			t.Errorf("%v", got)
		}
		return nil
	})
	n.Dial("tcp", "127.0.0.1:7").ExpectEOF()
}

// A filter goes away while the handler is being called, with input that it leaves: that
// comes behind what the handler has, and through a filter that the handler puts in.
func TestFilterRemovedBesideData(t *testing.T) {
	for _, upgrade := range []bool{false, true} {
		n := rondotest.New(t, calm)
		var conn *rondo.Conn
		again := false // Data is called for the second time
		low := &sheet{outbound: func(s *rondo.FilterPort, out []byte) error {
			s.Send(out)
			s.Deliver([]byte("two"))
			return nil
		}}
		high := &sheet{inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
			if again {
				s.Remove()
				return 0, nil
			}
			s.Deliver(in)
			return len(in), nil
		}}
		loud := &sheet{inbound: func(s *rondo.FilterPort, in []byte) (int, error) {
			s.Deliver(bytes.ToUpper(in))
			return len(in), nil
		}}
		h := &player{}
		calls := 0
		h.data = func(c *rondo.Conn, in []byte) (int, error) {
			conn = c
			switch calls++; {
			case calls == 1:
				return 0, nil
			case calls > 2:
				return len(in), nil
			}
			again = true
			c.Write([]byte("w"))
			c.Flush()
			if upgrade {
				c.Use(nil, loud.filter)
				return 0, nil
			}
			return len(in), nil
		}
		n.Serve(":7", rondo.Filtered(h.open, low.filter, high.filter))
		c := n.Dial("tcp", "127.0.0.1:7")
		c.Send("one")
		n.Run()
		conn.Loop().Post(func() { conn.SetHandler(h) }) // has it offered again
		c.Expect("w")
		n.Run()
		want := "onetwo"
		if upgrade {
			want = "ONETWO"
		}
		if string(h.got) != want {
			t.Errorf("the handler got %q, want %q", h.got, want)
		}
	}
}
