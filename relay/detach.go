package relay

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A Detached is a pair that has left its loop, in the middle of its streams. It is all that
// another loop, or another process, needs to go on without the loss of a byte. The
// connections belong to the program, which sends them to that process (see package fdpass)
// along with the rest, and calls Join there.
type Detached struct{ A, B Half }

// A Half is one of the connections of a Detached.
type Half struct {
	Conn   net.Conn // the connection alone: reading it returns the bytes behind Unread
	Unread []byte   // received from the peer, and not passed on
	Unsent []byte   // for the peer; the system has not taken it
	Ended  bool     // the peer has been told the end of the stream, behind all bytes
	Passed int64    // bytes that came from the peer and were passed on, as in End
}

// leaving is the state of a pair that is being detached.
type leaving struct {
	tell  func(*Detached, error)
	rests int // connections at rest
}

// Detach takes both connections from their loop and gives them to f, without waiting for
// peers that do not read. f is called once, on the loop, some turns later. From then on
// nobody serves the peers until the pair is joined again; they notice only that it takes a
// while. Options.Done is not called.
//
// Either both connections leave or none. Detach returns an error, will not call f, and the
// pair goes on, if one of them cannot leave: it has Filters, or it is closing. If a connection
// fails or is closed before they have left, f gets the error, and the pair goes on, or ends as
// it would have without Detach.
//
// The program should not write to the connections of the pair meanwhile, nor close them.
func (p *Pair) Detach(f func(*Detached, error)) error {
	p.clock.Check()
	if f == nil {
		panic("relay: Pair.Detach: the function is nil")
	}
	if p.over || p.leaving != nil {
		return errEnding
	}
	for _, s := range p.sides() {
		if s.closed || s.cut || s.doomed {
			return errEnding
		}
	}
	l := &leaving{tell: f}
	rested := func(err error) { p.rested(l, err) }
	if err := bridge.Of(p.a.conn).Rest(rested); err != nil {
		return err
	}
	if err := bridge.Of(p.b.conn).Rest(rested); err != nil {
		bridge.Of(p.a.conn).Stay()
		return err
	}
	p.leaving = l
	return nil
}

var errEnding = fmt.Errorf("relay: the pair is ending, or leaving already: %w", rondo.ErrClosed)

// rested is called for each connection that has come to rest, or cannot.
func (p *Pair) rested(l *leaving, err error) {
	if p.leaving != l {
		return
	}
	if err != nil {
		p.staysFor(err)
		return
	}
	if l.rests++; l.rests < 2 {
		return
	}
	halves, err := p.clock.Depart(bridge.Of(p.a.conn), bridge.Of(p.b.conn))
	if err != nil {
		p.staysFor(err)
		return
	}
	p.leaving = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	for _, s := range p.sides() {
		s.closed = true
	}
	l.tell(&Detached{p.a.half(halves[0]), p.b.half(halves[1])}, nil)
}

func (s *side) half(d bridge.Departed) Half {
	return Half{Conn: d.Conn, Unread: d.Unread, Unsent: d.Unsent, Ended: d.Ended, Passed: s.passed}
}

// staysFor ends Detach because of an error. The pair goes on, or is about to end.
func (p *Pair) staysFor(err error) {
	l := p.leaving
	if l == nil {
		return
	}
	p.leaving = nil
	for _, s := range p.sides() {
		if w := bridge.Of(s.conn); !s.closed {
			w.Stay()
			if s.piped {
				w.Pipe(true)
			}
		}
	}
	p.a.conn.Loop().Defer(func() { l.tell(nil, cmp.Or(err, rondo.ErrClosed)) })
}

// Join makes a pair again, on l. Any goroutine may call it. joined is called once, on l, with
// the new Pair, or with the error if one of the connections cannot be attached: then both are
// reset. The error of Join itself is ErrClosed if l has ended; joined is not called then, and
// both are reset, too.
//
// The connections count on from Passed, and o.Limit begins anew. The process must be their
// only user by now: another one, or a duplicate of the descriptor, may do no more than close it.
// (Streams pass within the kernel, where a socket in blocking mode would stop the loop.) A Half may
// be joined only once: its connection belongs to the loop, also after an error.
func (d *Detached) Join(l *rondo.Loop, o Options, joined func(*Pair, error)) error {
	if joined == nil {
		panic("relay: Detached.Join: the function is nil")
	}
	err := l.Post(func() {
		p, err := d.join(l, o)
		joined(p, err)
	})
	if err != nil {
		d.A.reset()
		d.B.reset()
	}
	return err
}

func (d *Detached) join(l *rondo.Loop, o Options) (*Pair, error) {
	a, err := d.A.attach(l)
	if err != nil {
		d.A.reset()
		d.B.reset()
		return nil, err
	}
	b, err := d.B.attach(l)
	if err != nil {
		a.Abort(err)
		d.B.reset()
		return nil, err
	}
	return join(a, b, o, [2]int64{d.A.Passed, d.B.Passed}), nil
}

// attach makes a connection of l, which is paused.
func (h *Half) attach(l *rondo.Loop) (conn *rondo.Conn, err error) {
	nc := h.Conn
	if nc == nil {
		return nil, errNoConn
	}
	if len(h.Unread) > 0 {
		nc = rondo.PrefixConn(nc, h.Unread)
	}
	err = bridge.LoopOf(l).AttachSole(nc, rondo.OpenFunc(func(c *rondo.Conn) rondo.Handler {
		conn = c
		c.Pause()
		w := bridge.Of(c)
		if h.Ended {
			w.OutputEnded()
		} else {
			w.NoOutputLimit()
			c.WriteOwned(h.Unsent, nil)
		}
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) { return 0, nil })
	}))
	return conn, err
}

var errNoConn = errors.New("relay: a Half of the pair has no Conn")

// reset closes a connection that no loop has, so that its peer sees a reset.
func (h *Half) reset() {
	switch nc := h.Conn.(type) {
	case nil:
		return
	case interface{ SetLinger(int) error }:
		nc.SetLinger(0)
	case interface{ Reset() error }:
		nc.Reset() // of a simulated network
	}
	h.Conn.Close()
}
