package backendtest

import (
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A breaker is a Handler and a Filter that fails once, in one of its methods.
type breaker struct {
	rondo.PassThrough
	where string
	fail  func()
	calls atomic.Int32 // of the method that fails
}

func (b *breaker) at(place string) {
	if place == b.where && b.calls.Add(1) == 1 {
		b.fail()
	}
}

// breakerPlaces are the callbacks of a connection that echoes, is half-closed by its
// peer and then closed by its handler.
var breakerPlaces = []string{
	"OpenFunc", "Data", "EOF", "Ending", "Closed", "release", "Ref.Do",
	"FilterOpenFunc", "Filter.Start", "Filter.Inbound", "Filter.Outbound", "Filter.EOF", "Filter.CloseWrite", "Filter.Closed",
}

func (b *breaker) open(c *rondo.Conn) rondo.Handler {
	b.at("OpenFunc")
	return breakerHandler{b: b}
}

func (b *breaker) filter(*rondo.Conn) rondo.Filter {
	b.at("FilterOpenFunc")
	return b
}

func (b *breaker) Start(s *rondo.FilterPort) error { b.at("Filter.Start"); s.Ready(); return nil }

func (b *breaker) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	b.at("Filter.Inbound")
	return b.PassThrough.Inbound(s, in)
}

func (b *breaker) Outbound(s *rondo.FilterPort, out []byte) error {
	b.at("Filter.Outbound")
	return b.PassThrough.Outbound(s, out)
}

func (b *breaker) EOF(s *rondo.FilterPort) error { b.at("Filter.EOF"); s.EOF(); return nil }

func (b *breaker) CloseWrite(*rondo.FilterPort) error { b.at("Filter.CloseWrite"); return nil }

func (b *breaker) Closed(*rondo.FilterPort, error) { b.at("Filter.Closed") }

type breakerHandler struct {
	bridge.Ours
	b *breaker
}

func (h breakerHandler) Data(c *rondo.Conn, in []byte) (int, error) {
	h.b.at("Data")
	if err := c.WriteOwned(append([]byte(nil), in...), func() { h.b.at("release") }); err != nil {
		return 0, err
	}
	return len(in), c.Ref().Do(func(*rondo.Conn) { h.b.at("Ref.Do") })
}

func (h breakerHandler) EOF(c *rondo.Conn)             { h.b.at("EOF"); c.Close() }
func (h breakerHandler) Ending()                       { h.b.at("Ending") }
func (h breakerHandler) Closed(_ *rondo.Conn, _ error) { h.b.at("Closed") }

// panicAnywhere: a panic in any callback of a connection ends only that connection.
// Other output, the turn and the engine's Close are not affected.
func panicAnywhere(w World) { breakEverywhere(w, func() { panic("a goat") }) }

// goexitAnywhere: the same holds for runtime.Goexit, as by a test's FailNow.
func goexitAnywhere(w World) { breakEverywhere(w, runtime.Goexit) }

func breakEverywhere(w World, fail func()) {
	e := &rondo.Engine{NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
	next := make(chan rondo.OpenFunc, 1)
	addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler { return (<-next)(c) })
	bystander := &handler{w: w}
	next <- bystander.one()
	other := w.Dial(addr)
	send(w, other, []byte("first"))
	expect(w, other, []byte("first"))
	for i, place := range breakerPlaces {
		b := &breaker{where: place, fail: fail}
		next <- rondo.Filtered(b.open, b.filter)
		p := w.Dial(addr)
		// The victim's system may reset the connection at any moment.
		if _, err := p.Write([]byte("x")); err == nil {
			p.CloseWrite()
			p.SetReadDeadline(w.Now().Add(patience))
			io.ReadAll(p)
		}
		p.Close()
		w.Until("the end of the connection that fails in "+place, func() bool {
			return e.Stats().Panics == uint64(i+1) && e.Stats().Open == 1
		})
		if n := b.calls.Load(); n != 1 {
			w.Errorf("%s was called %d times", place, n)
		}
		send(w, other, []byte(place))
		expect(w, other, []byte(place))
	}
	w.Call(func() { e.Close() })
	if bystander.untilClosed() == nil {
		w.Error("Closed of the bystander got nil, after Engine.Close")
	}
}

// failuresOfNobody: a panic in a post, a timer, a deferred function or a hook is only
// logged. runtime.Goexit there ends nothing either.
func failuresOfNobody(w World) {
	for _, fail := range []func(){func() { panic("a goat") }, runtime.Goexit} {
		e := &rondo.Engine{NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
		var turns atomic.Int32
		e.Trace = &rondo.Trace{Turn: func(*rondo.Loop) {
			if turns.Add(1) == 10 {
				fail()
			}
		}}
		h := &handler{w: w}
		p := w.Dial(w.Listen(e, h.one()))
		h.do(func(c *rondo.Conn) {
			l := c.Loop()
			l.Post(fail)
			l.AfterFunc(0, fail)
			l.Defer(fail)
			l.Every(1, fail) // ends
			l.Dial("tcp", "not an address", rondo.SocketOptions{}, func(*rondo.Conn, error) rondo.Handler { fail(); return nil })
			c.Write([]byte("written before"))
		})
		expect(w, p, []byte("written before"))
		for i := 0; turns.Load() < 20 || e.Stats().Panics < 6; i++ {
			send(w, p, []byte("x"))
			expect(w, p, []byte("x"))
		}
		if n := e.Stats().Panics; n != 6 {
			w.Errorf("%d of 6 failures were counted", n)
		}
		w.Call(func() { e.Close() })
	}
}

// A last is a Filter that counts the calls of its Closed.
type last struct {
	rondo.PassThrough
	closed *atomic.Int32
}

func (f last) Closed(*rondo.FilterPort, error) { f.closed.Add(1) }

// madeFiltersAreClosed: a filter gets Closed even if the next filter's FilterOpenFunc
// fails.
func madeFiltersAreClosed(w World) {
	for _, fail := range []func(){func() { panic("a goat") }, runtime.Goexit} {
		var closed atomic.Int32
		e := &rondo.Engine{NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
		made := func(*rondo.Conn) rondo.Filter { return last{closed: &closed} }
		fails := func(*rondo.Conn) rondo.Filter { fail(); return nil }
		h := &handler{w: w}
		p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), made, fails)))
		if _, err := p.Write([]byte("x")); err == nil {
			p.SetReadDeadline(w.Now().Add(patience))
			io.ReadAll(p)
		}
		p.Close()
		w.Until("the filter's Closed", func() bool { return closed.Load() > 0 })
		w.Call(func() { e.Close() })
		if n := closed.Load(); n != 1 {
			w.Errorf("Closed was called %d times", n)
		}
	}
}
