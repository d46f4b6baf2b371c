package backendtest

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/loopstats"
)

// A hoard is connections whose handlers leave their input: each holds 16 KiB, whatever the
// pieces in which it comes.
type hoard struct {
	w      World
	engine *rondo.Engine
	addr   net.Addr
	held   atomic.Int32 // connections that hold all
	shed   atomic.Int32
	others atomic.Int32 // ended in another way
}

const hoarded = 10_000

func (h *hoard) open(*rondo.Conn) rondo.Handler { return &hoarder{hoard: h} }

// hoarder is the handler of one connection.
type hoarder struct {
	hoard *hoard
	full  bool
}

// Data leaves hoarded bytes, and answers one more.
func (h *hoarder) Data(c *rondo.Conn, in []byte) (int, error) {
	switch {
	case len(in) > hoarded:
		c.Write([]byte("!"))
		return len(in), nil
	case len(in) == hoarded && !h.full:
		h.full = true
		h.hoard.held.Add(1)
	}
	return 0, nil
}

func (h *hoarder) Closed(_ *rondo.Conn, err error) {
	if errors.Is(err, rondo.ErrClosed) && strings.Contains(err.Error(), "MaxBufferBytes") {
		h.hoard.shed.Add(1)
	} else {
		h.hoard.others.Add(1)
	}
}

// serve makes the hoard's engine and serves connections with open.
func (h *hoard) serve(loops, most int, open rondo.OpenFunc) {
	h.engine = &rondo.Engine{NumLoops: loops, MaxBufferBytes: most, MaxInput: 4 << 20, Logger: slog.New(slog.DiscardHandler)}
	h.addr = h.w.Listen(h.engine, open)
}

// buffers returns how many bytes the engine's buffers have.
func (h *hoard) buffers() (n int) {
	for _, l := range loopstats.Of(h.engine) {
		n += l.BufferBytes
	}
	return n
}

// fill opens n connections, one after the other, each of which holds 16 KiB then, unless it is
// cut off or refused before.
func (h *hoard) fill(n int) (peers []Peer) {
	h.w.Helper()
	for range n {
		happened := func() uint64 {
			s := h.engine.Stats()
			return uint64(h.held.Load()) + s.Closed + s.Refused // it may be cut off in a handshake
		}
		before := happened()
		p := h.w.Dial(h.addr)
		p.SetWriteDeadline(h.w.Now().Add(patience))
		p.Write(pattern(hoarded))
		h.w.Until("the input is held", func() bool { return happened() > before })
		peers = append(peers, p)
	}
	return peers
}

// survives reports whether the server answers a peer.
func (h *hoard) survives(p Peer) bool {
	p.SetDeadline(h.w.Now().Add(patience))
	p.Write([]byte("x"))
	n, err := p.Read(make([]byte, 10))
	return n == 1 && err == nil
}

// buffersAreBounded: the buffers of all connections take no more memory than they may. Some are
// cut off, the others are served. What is held and counted is nothing in the end.
func buffersAreBounded(w World) {
	for _, loops := range []int{1, 3} {
		const most, conns = 256 << 10, 50
		h := &hoard{w: w}
		h.serve(loops, most, h.open)
		peers := h.fill(conns)
		w.Until("no more memory", func() bool { return h.buffers() <= most })
		if h.shed.Load() == 0 {
			w.Error("no connection was cut off")
		}
		served := 0
		for _, p := range peers {
			if h.survives(p) {
				served++
			}
			p.Close()
		}
		if served < most/(32<<10)/2 {
			w.Errorf("only %d connections were left", served)
		}
		w.Until("the end of all", func() bool { return h.engine.Stats().Open == 0 && h.buffers() == 0 })
		shed := uint64(0)
		for _, l := range loopstats.Of(h.engine) {
			shed += l.Ended[loopstats.Shed]
		}
		if n := uint64(h.shed.Load()); shed < n {
			w.Errorf("%d connections count as shed, want %d or more", shed, n)
		}
	}
}

// shedsWhatRests: of connections that hold the same, those in which no byte moves are cut off.
func shedsWhatRests(w World) {
	h := &hoard{w: w}
	h.serve(1, 256<<10, h.open)
	old := h.fill(10)
	w.Sleep(time.Second)
	fresh := h.fill(7)
	w.Until("connections are cut off", func() bool { return h.shed.Load() > 0 })
	lost := uint64(0)
	for _, p := range fresh {
		if !h.survives(p) {
			lost++
		}
	}
	if refused := h.engine.Stats().Refused; lost > refused {
		w.Errorf("%d fresh connections were cut off, and %d refused", lost-refused, refused)
	}
	left := 0
	for _, p := range old {
		if h.survives(p) {
			left++
		}
	}
	if left < 3 || left > 8 {
		w.Errorf("of 10 resting connections %d are left", left)
	}
}

// shedsTheLarge: a connection that holds much is cut off before many that hold little, though
// bytes move in it and not in them.
func shedsTheLarge(w World) {
	h := &hoard{w: w}
	large := &handler{w: w, data: func(*rondo.Conn, []byte) (int, error) { return 0, nil }}
	first := true
	h.serve(1, 512<<10, func(c *rondo.Conn) rondo.Handler {
		if first {
			first = false
			return large.one()(c)
		}
		return h.open(c)
	})
	p := w.Dial(h.addr)
	send(w, p, []byte("x"))
	large.conn()
	old := h.fill(10)
	p.SetWriteDeadline(w.Now().Add(patience))
	for all := pattern(100_000); ; {
		if _, err := p.Write(all); err != nil {
			break
		}
		if large.isClosed() {
			break
		}
	}
	large.untilClosed()
	for i, p := range old {
		if !h.survives(p) {
			w.Errorf("small connection %d was cut off", i)
		}
	}
}

// shedsWhoDoesNotRead: output that a peer does not read counts as input does.
func shedsWhoDoesNotRead(w World) {
	h := &hoard{w: w}
	slow := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(pattern(12 << 20))
		return len(in), nil
	}}
	first := true
	h.serve(1, 512<<10, func(c *rondo.Conn) rondo.Handler {
		if first {
			first = false
			return slow.one()(c)
		}
		return h.open(c)
	})
	p := w.Dial(h.addr)
	slow.conn()
	old := h.fill(10)
	send(w, p, []byte("x"))
	if err := slow.untilClosed(); err == nil || !strings.Contains(err.Error(), "MaxBufferBytes") {
		w.Errorf("the connection has ended with %v", err)
	}
	for i, p := range old {
		if !h.survives(p) {
			w.Errorf("small connection %d was cut off", i)
		}
	}
	w.Until("no more memory", func() bool { return h.buffers() <= 512<<10 })
}
