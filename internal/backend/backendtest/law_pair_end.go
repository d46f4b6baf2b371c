package backendtest

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/relay"
)

// pairIsClosed: the program closes or aborts one of the connections, or the pair.
func pairIsClosed(w World) {
	broken := errors.New("broken")
	for _, how := range []string{"Close", "CloseWrite", "Abort", "CloseWith", "Pair.Abort", "Pair.Abort(nil)"} {
		for _, state := range []string{"at rest", "with output", "half closed"} {
			for i := range 2 {
				p := &pair{w: w}
				a, b := p.connect()
				one, two := [2]Peer{a, b}[i], [2]Peer{a, b}[1-i]
				if state == "half closed" {
					two.CloseWrite()
					expectEOF(w, one)
				}
				p.do(func(pair *relay.Pair, a, b *rondo.Conn) {
					c := []*rondo.Conn{a, b}[i]
					if state == "with output" {
						c.Write(pattern(10_000))
					}
					switch how {
					case "Close":
						c.Close()
					case "CloseWrite":
						c.CloseWrite()
					case "Abort":
						c.Abort(broken)
					case "CloseWith":
						c.CloseWith(broken)
					case "Pair.Abort":
						pair.Abort(broken)
						pair.Abort(nil)
					default:
						pair.Abort(nil)
					}
				})
				ended := func(peer Peer) {
					peer.SetReadDeadline(w.Now().Add(patience))
					for buf, err := make([]byte, 1000), error(nil); err == nil; {
						_, err = peer.Read(buf)
						var timeout net.Error
						if errors.As(err, &timeout) && timeout.Timeout() {
							w.Fatalf("%s %s: a peer waits for ever", how, state)
						}
					}
					peer.Close()
				}
				ended(one)
				if how == "CloseWrite" {
					two.Write([]byte("x")) // nothing can be passed to one
				}
				ended(two)
				w.Until("the end", p.hasEnded)
				e := p.ends[0]
				if want := how == "Abort" || how == "CloseWith" || how == "Pair.Abort"; want != errors.Is(e.Err, broken) {
					w.Errorf("%s %s of connection %d: %v", how, state, i, e.Err)
				}
			}
		}
	}
}

// pairIsIdle: a pair ends when nothing has moved for the Idle time, and not before.
func pairIsIdle(w World) { unspoilt(w, endsWhenIdle) }

func endsWhenIdle(w World) bool {
	const idle = 400 * time.Millisecond
	p := &pair{w: w, options: relay.Options{Idle: idle, Limit: time.Hour}}
	last := w.Now()
	a, b := p.connect()
	defer a.Close()
	defer b.Close()
	stood := stalls(w, p.conn(0).Ref().Loop())
	for i := range 20 { // in one direction is enough
		w.Sleep(idle / 8)
		begin := w.Now()
		if !p.passes([]Peer{a, b}[i/10], []Peer{b, a}[i/10]) {
			if d := w.Now().Sub(last); d+stood() < idle {
				w.Fatalf("the pair has ended %v after a byte went; the loop stood still for %v", d, stood())
			}
			return false
		}
		last = begin
	}
	expectReset(w, a)
	expectReset(w, b)
	if d := w.Now().Sub(last); d+stood() < idle {
		w.Errorf("the pair has ended %v after the last byte went; the loop stood still for %v", d, stood())
	}
	if e := p.end(nobody); !errors.Is(e.Err, rondo.ErrIdle) || e.FromA != 10 {
		w.Errorf("the end is %+v", e)
	}
	return true
}

// passes sends a byte, and reports whether it arrived.
func (p *pair) passes(from, to Peer) bool {
	deadline := p.w.Now().Add(patience)
	from.SetWriteDeadline(deadline)
	to.SetReadDeadline(deadline)
	from.Write([]byte("x")) // Read tells of its error too
	_, err := to.Read(make([]byte, 1))
	return err == nil
}

// pairReachesItsLimit: a pair ends at its Limit, however busy.
func pairReachesItsLimit(w World) {
	unspoilt(w, endsThoughBusy)
	p := &pair{w: w, options: relay.Options{Limit: 100 * time.Millisecond}}
	a, b := p.connect()
	expectReset(w, a)
	expectReset(w, b)
	if e := p.end(nobody); !errors.Is(e.Err, os.ErrDeadlineExceeded) || errors.Is(e.Err, rondo.ErrIdle) {
		w.Errorf("the end is %+v", e)
	}
}

func endsThoughBusy(w World) bool {
	const idle = 200 * time.Millisecond
	p := &pair{w: w, options: relay.Options{Limit: idle * 3 / 2, Idle: idle}}
	last := w.Now()
	a, b := p.connect()
	defer a.Close()
	defer b.Close()
	stood := stalls(w, p.conn(0).Ref().Loop())
	for one, other := a, b; ; one, other = other, one {
		w.Sleep(idle / 10)
		begin := w.Now()
		if !p.passes(one, other) {
			break
		}
		last = begin
	}
	spoilt := w.Now().Sub(last)+stood() >= idle
	if e := p.end(nobody); errors.Is(e.Err, rondo.ErrIdle) && spoilt {
		return false
	} else if !errors.Is(e.Err, os.ErrDeadlineExceeded) || errors.Is(e.Err, rondo.ErrIdle) {
		w.Errorf("the end is %+v", e)
	}
	return true
}

// pairOfTheClosed: Join of a connection that has closed aborts the other one.
func pairOfTheClosed(w World) {
	for _, which := range []string{"a", "b", "both", "a has failed"} {
		p := &pair{w: w}
		p.before = func(a, b *rondo.Conn) {
			switch which {
			case "a":
				a.Close()
			case "a has failed":
				a.Abort(os.ErrPermission)
			case "b":
				b.Close()
			default:
				a.Close()
				b.Close()
			}
		}
		a, b := p.connect()
		if which != "b" && which != "both" {
			expectReset(w, b)
		}
		if which == "b" {
			expectReset(w, a)
		}
		e := p.end(anybody)
		if e.Err == nil || errors.Is(e.Err, os.ErrPermission) != (which == "a has failed") {
			w.Errorf("%s: the end is %+v", which, e)
		}
		a.Close()
		b.Close()
	}
}

// pairIsLeft: a connection that gets another Handler leaves the pair. The other one ends.
func pairIsLeft(w World) {
	p := &pair{w: w}
	a, b := p.connect()
	h := &handler{w: w}
	p.do(func(_ *relay.Pair, a, _ *rondo.Conn) { a.SetHandler(h) })
	expectReset(w, b)
	if e := p.end(nobody); e.Err == nil {
		w.Error("no error tells that a connection has left the pair")
	}
	send(w, a, []byte("echo"))
	expect(w, a, []byte("echo"))
	a.Close()
	h.untilClosed()
}

// pairShutsDown: after Shutdown a pair goes on until it ends, or for the Drain time. Close
// resets it.
func pairShutsDown(w World) {
	p := &pair{w: w, options: relay.Options{Drain: 200 * time.Millisecond}}
	a, b := p.connect()
	w.Call(func() { p.engine.Shutdown(w.Timeout(time.Hour)) })
	expectReset(w, a)
	expectReset(w, b)
	if e := p.end(nobody); !errors.Is(e.Err, rondo.ErrClosed) {
		w.Errorf("after the Drain time the end is %+v", e)
	}

	p = &pair{w: w}
	a, b = p.connect()
	p.do(func(_ *relay.Pair, c, _ *rondo.Conn) { p.engine.Shutdown(w.Timeout(time.Hour)) })
	send(w, a, []byte("still here"))
	expect(w, b, []byte("still here"))
	a.CloseWrite()
	b.CloseWrite()
	expectEOF(w, a)
	expectEOF(w, b)
	if e := p.end(anybody); e.Err != nil || e.FromA != 10 {
		w.Errorf("after Shutdown the end is %+v", e)
	}

	p = &pair{w: w}
	a, b = p.connect()
	w.Call(func() { p.engine.Close() })
	expectReset(w, a)
	expectReset(w, b)
	if e := p.end(nobody); !errors.Is(e.Err, rondo.ErrClosed) {
		w.Errorf("after Close the end is %+v", e)
	}
}
