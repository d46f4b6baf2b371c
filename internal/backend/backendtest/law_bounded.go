package backendtest

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// neverReadingIsBounded: a peer that sends and never reads is read until its output has
// passed HighWater, and no further. This is HighWaterStopsReading for peers that cannot
// write again after a write timed out, such as TLS peers.
func neverReadingIsBounded(w World) {
	const high = 128 << 10
	h := &handler{w: w}
	most := h.watchOutput(nil)
	e := &rondo.Engine{NumLoops: 1, HighWater: high, LowWater: high / 4}
	p := w.Dial(w.Listen(e, h.one()))
	fill(w, h, p)
	if m := most.Load(); m > 2*high {
		w.Errorf("%d bytes of output waited, with HighWater at %d", m, high)
	}
	p.Reset()
	h.untilClosed()
}

// expandingFilterIsBounded: a filter that makes a thousand bytes of each input byte
// gets no more input than it has room for, whether the handler or the peer is slow.
func expandingFilterIsBounded(w World) {
	const high, input, times = 128 << 10, 100_000, 1000
	for name, take := range map[string]int{"a slow handler": 77, "a peer that does not read": input} {
		var offered atomic.Int64
		h := &handler{w: w}
		most := h.watchOutput(func(c *rondo.Conn, in []byte) (int, error) {
			offered.Store(max(offered.Load(), int64(len(in))))
			return c.Write(in[:min(len(in), take)])
		})
		e := &rondo.Engine{NumLoops: 1, HighWater: high, LowWater: high / 4, MaxInput: input}
		p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return expander{times: times} })))
		fill(w, h, p)
		if m := most.Load(); m > 2*high {
			w.Errorf("%s: %d bytes of output waited, with HighWater at %d", name, m, high)
		}
		if n := offered.Load(); n >= input+times {
			w.Errorf("%s: Data was offered %d bytes, with MaxInput at %d", name, n, input)
		}
		p.Reset()
		h.untilClosed()
	}
}

// expander is a filter that repeats each input byte.
type expander struct {
	rondo.PassThrough
	times int
}

func (f expander) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	for n, b := range in {
		if s.Room() == 0 {
			return n, nil
		}
		s.Deliver(bytes.Repeat([]byte{b}, f.times))
	}
	return len(in), nil
}

// watchOutput records the most output waiting after data. A nil data echoes.
func (h *handler) watchOutput(data func(c *rondo.Conn, in []byte) (int, error)) *atomic.Int64 {
	most := new(atomic.Int64)
	h.data = func(c *rondo.Conn, in []byte) (n int, err error) {
		if data != nil {
			n, err = data(c, in)
		} else {
			n, err = c.Write(in)
		}
		most.Store(max(most.Load(), int64(c.Buffered())))
		return n, err
	}
	return most
}

// fill writes until the server's system takes no more. It fails if the system takes
// everything. It waits until the connection is open: a peer may be gone, and its address with
// it, before a busy machine has accepted it.
func fill(w World, h *handler, peer Peer) {
	w.Helper()
	h.conn()
	const much = 64 << 20
	block := pattern(64 << 10)
	for n := 0; n < much; n += len(block) {
		if push(w, peer, block, 300*time.Millisecond) < len(block) {
			return
		}
	}
	w.Fatalf("%d bytes were taken from a peer that does not read", much)
}
