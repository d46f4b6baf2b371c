package backendtest

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
)

// frames parses messages with a two-byte length, and echoes their bodies.
func frames(want bool) func(c *rondo.Conn, in []byte) (int, error) {
	return func(c *rondo.Conn, in []byte) (n int, err error) {
		for len(in)-n >= 2 {
			size := 2 + int(binary.BigEndian.Uint16(in[n:]))
			if len(in)-n < size {
				if want {
					c.Want(size)
				}
				return n, nil
			}
			if _, err := c.Write(in[n+2 : n+size]); err != nil {
				return n, err
			}
			n += size
		}
		return n, nil
	}
}

// anySplitIsTheSame: the handler sees the same messages however the stream is split.
func anySplitIsTheSame(w World) {
	var stream, bodies []byte
	body := pattern(60_000)
	for _, n := range []int{0, 1, 2, 50, 900, 1022, 1023, 1024, 1025, 5000, 60_000, 3, 0, 20_000, 7} {
		stream = binary.BigEndian.AppendUint16(stream, uint16(n))
		stream = append(stream, body[:n]...)
		bodies = append(bodies, body[:n]...)
	}
	for _, want := range []bool{false, true} {
		addr := w.Listen(&rondo.Engine{NumLoops: 1}, opener(func(*rondo.Conn) *handler {
			return &handler{w: w, data: frames(want)}
		}))
		for _, piece := range []int{1, 2, 3, 1000, 1024, 1025, 9999, len(stream)} {
			p := w.Dial(addr)
			rest := stream
			if piece < 1000 {
				rest = stream[:2000] // small pieces of everything would take long
			}
			for len(rest) > 0 {
				n := min(piece, len(rest))
				send(w, p, rest[:n])
				rest = rest[n:]
			}
			if piece < 1000 {
				send(w, p, stream[2000:])
			}
			expect(w, p, bodies)
			p.Close()
		}
	}
}

// wantWaits: after Want, Data is not called for fewer bytes. At the end of the stream a
// smaller rest is not offered.
func wantWaits(w World) {
	const first, second = 10, 200_000
	var offered []int
	h := &handler{w: w}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		offered = append(offered, len(in))
		switch {
		case len(in) < first:
			c.Want(first)
			return 0, nil
		case len(in) < second:
			c.Want(second)
			return 0, nil
		}
		c.Write(in)
		c.Want(50)
		return len(in), nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	sent := pattern(second)
	from := 0
	for _, to := range []int{1, 2, 9, 10, 5000, 50_000, second - 1, second} {
		send(w, p, sent[from:to])
		w.Sleep(5 * time.Millisecond)
		from = to
	}
	expect(w, p, sent)
	send(w, p, []byte("too short"))
	p.CloseWrite()
	expectEOF(w, p)
	h.untilClosed()
	between := 0 // calls with too little for the second Want, which is called once
	for _, n := range offered[1:] {
		if n < second {
			between++
		}
		if n < first || between > 1 {
			w.Errorf("Data was called with %v bytes", offered)
			break
		}
	}
	if h.calls != "DEC" || h.got.Len() != second {
		w.Errorf("calls %s, %d bytes consumed", h.calls, h.got.Len())
	}
}

// wantingALittleMoreIsLinear: unconsumed input moves to larger memory each time it
// doubles, not each time that Want asks for a little more.
func wantingALittleMoreIsLinear(w World) {
	const size = 2 << 20
	moved := 0
	var at *byte
	h := &handler{w: w}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		if len(in) > 2*backend.LendSize && at != &in[0] {
			moved += len(in)
			at = &in[0]
		}
		if len(in) < size {
			c.Want(len(in) + 1)
			return 0, nil
		}
		c.Write(in[size-3:])
		return len(in), nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: 2 * size}, h.one()))
	send(w, p, pattern(size))
	expect(w, p, pattern(size)[size-3:])
	p.Close()
	h.untilClosed()
	if moved > 4*size {
		w.Errorf("%d bytes were moved to receive %d", moved, size)
	}
}

// pauseStopsReading: Pause stops Data and reading. Resume offers the unconsumed input
// and continues.
func pauseStopsReading(w World) {
	var resumed atomic.Int32
	h := &handler{w: w}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		// Consume one line at a time, and pause after each.
		i := bytes.IndexByte(in, '\n')
		if i < 0 {
			return 0, nil
		}
		c.Write(in[:i+1])
		c.Pause()
		c.Loop().AfterFunc(5*time.Millisecond, func() {
			c.Resume()
			resumed.Add(1)
		})
		return i + 1, nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	lines := []byte("one\ntwo\nthree\nfour\n")
	send(w, p, lines)
	expect(w, p, lines)
	w.Until("the last Resume", func() bool { return resumed.Load() == 4 })

	h.do((*rondo.Conn).Pause)
	consumed := h.received()
	sent := bytes.Repeat([]byte("0123456\n"), 8<<20/8)
	n := 0
	for {
		k := push(w, p, sent[n:], 200*time.Millisecond)
		if n += k; k == 0 || n == len(sent) {
			break
		}
	}
	if h.received() != consumed {
		w.Error("Data was called during a pause")
	}
	h.do(func(c *rondo.Conn) {
		h.data = func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }
		c.Resume()
	})
	send(w, p, sent[n:])
	w.Until("everything after Resume", func() bool { return h.received() == len(lines)+len(sent) })
	p.CloseWrite()
	h.untilClosed()
}

// upgradeKeepsTheRest: the new handler gets the unconsumed input of the old one.
func upgradeKeepsTheRest(w World) {
	after := &handler{w: w}
	before := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		i := bytes.Index(in, []byte("\r\n"))
		if i < 0 {
			return 0, nil
		}
		c.Write([]byte("switching\r\n"))
		c.SetHandler(after)
		return i + 2, nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, before.one()))
	send(w, p, []byte("upgrade\r\nand this is the new protocol"))
	expect(w, p, []byte("switching\r\nand this is the new protocol"))
	p.Close()
	after.untilClosed()
	if before.calls != "D" {
		w.Errorf("calls of the old handler: %s", before.calls)
	}
}

// upgradeOffersALongRest: the new handler also gets a long rest when no more input
// comes, whether the old handler upgrades or a post does while the connection waits for
// input.
func upgradeOffersALongRest(w World) {
	for _, posted := range []bool{false, true} {
		after := &handler{w: w}
		before := &handler{w: w}
		before.data = func(c *rondo.Conn, in []byte) (int, error) {
			if !posted && len(in) == len(longRest) {
				c.SetHandler(after)
			}
			return 0, nil
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, before.one()))
		send(w, p, longRest)
		if posted {
			before.conn()
			w.Sleep(20 * time.Millisecond) // all input has arrived, and the loop waits for more
			before.do(func(c *rondo.Conn) { c.SetHandler(after) })
		}
		expect(w, p, longRest)
		p.Close()
		after.untilClosed()
	}
}

// longRest is longer than a lent buffer's headroom.
var longRest = pattern(5000)
