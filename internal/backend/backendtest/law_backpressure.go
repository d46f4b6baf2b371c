package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
)

// outputIsBounded: output beyond MaxOutput is refused, and the accepted stream arrives
// whole.
func outputIsBounded(w World) {
	const most = 1 << 20
	block := pattern(10_000)
	written := 0
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		for range 10_000 {
			n, err := c.Write(block)
			written += n
			if c.Buffered() > most {
				return 0, fmt.Errorf("%d bytes wait, over MaxOutput", c.Buffered())
			}
			if errors.Is(err, rondo.ErrOutputFull) {
				c.Close()
				return len(in), nil
			}
			if err != nil || n != len(block) {
				return 0, fmt.Errorf("Write of %d bytes: %d, %v", len(block), n, err)
			}
		}
		return 0, errors.New("100 MB were taken for a peer that does not read")
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: most, Linger: time.Minute}, h.one()))
	send(w, p, []byte("x"))
	w.Until("a full output", func() bool { return h.received() == 1 || h.isClosed() })
	expect(w, p, bytes.Repeat(block, written/len(block)+1)[:written])
	expectEOF(w, p)
	p.Close()
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
}

// highWaterStopsReading: once output has passed HighWater, the engine stops reading, so
// that the peer's sends block. It reads again when the peer does.
func highWaterStopsReading(w World) {
	const high = 128 << 10
	var most atomic.Int64
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		n, err := c.Write(in)
		most.Store(max(most.Load(), int64(c.Buffered())))
		return n, err
	}}
	e := &rondo.Engine{NumLoops: 1, HighWater: high, LowWater: high / 4}
	p := w.Dial(w.Listen(e, h.one()))
	block := pattern(1 << 20)
	n := 0
	for {
		k := push(w, p, block[n%len(block):], 300*time.Millisecond)
		n += k
		if k == 0 {
			break
		}
		if n >= 64<<20 {
			w.Fatal("64 MiB went to an echo whose output nobody reads")
		}
	}
	if m := most.Load(); m > 2*high {
		w.Errorf("%d bytes of output waited, with HighWater at %d", m, high)
	}
	for at := 0; at < n; {
		k := min(len(block)-at%len(block), n-at)
		expect(w, p, block[at%len(block):][:k])
		at += k
	}
	send(w, p, []byte("and on"))
	expect(w, p, []byte("and on"))
}

// drainedOffersTheRest: a handler that stops in the middle of its input, because output
// passed HighWater, is offered the rest when the output has drained.
func drainedOffersTheRest(w World) {
	answer := pattern(100_000)
	drained := 0
	var stopped atomic.Bool
	h := &handler{w: w, drained: func(*rondo.Conn) { drained++ }}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		n := 0
		for n < len(in) && c.Buffered() <= 200_000 {
			if _, err := c.Write(answer); err != nil {
				return n, err
			}
			n++
		}
		if c.Buffered() > 150_000 {
			stopped.Store(true)
		}
		return n, nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, HighWater: 150_000, LowWater: 50_000}, h.one()))
	const requests = 200
	send(w, p, bytes.Repeat([]byte("?"), requests))
	p.CloseWrite()
	w.Until("a full output", stopped.Load)
	expect(w, p, bytes.Repeat(answer, requests))
	expectEOF(w, p)
	h.untilClosed()
	if drained == 0 {
		w.Error("Drained was never called")
	}
	if h.got.Len() != requests {
		w.Errorf("%d requests were answered of %d", h.got.Len(), requests)
	}
}

// inputIsBounded: a handler that consumes none of MaxInput bytes loses its connection.
func inputIsBounded(w World) {
	const most = 100_000
	var offered atomic.Int64
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		offered.Store(int64(len(in)))
		return 0, nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: most, Linger: 100 * time.Millisecond}, h.one()))
	p.SetWriteDeadline(w.Now().Add(patience))
	p.Write(pattern(2 << 20)) // may fail when the connection closes
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrInputFull) {
		w.Errorf("Closed got %v, want ErrInputFull", err)
	}
	if n := offered.Load(); n < most || n > most+backend.LendSize {
		w.Errorf("Data was offered %d bytes at the end, with MaxInput at %d", n, most)
	}
}

// slowHandlerIsBounded: a handler that consumes little at a time never holds more than
// MaxInput either, and finally gets all input.
func slowHandlerIsBounded(w World) {
	const most = 100_000
	var offered atomic.Int64
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		offered.Store(max(offered.Load(), int64(len(in))))
		return min(len(in), 10_000), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxInput: most}, h.one()))
	sent := pattern(1 << 20)
	send(w, p, sent)
	w.Until("most of the input", func() bool { return h.received() > len(sent)-most-10_000 })
	if n := offered.Load(); n > most+backend.LendSize {
		w.Errorf("Data was offered %d bytes, with MaxInput at %d", n, most)
	}
	p.Reset()
	h.untilClosed()
	if got := h.got.Bytes(); mismatch(got, sent[:len(got)]) >= 0 {
		w.Error("Data got wrong bytes")
	}
}

// floodStarvesNobody: a connection that floods its loop does not starve timers, posts
// or other connections.
func floodStarvesNobody(w World) {
	var ticks, posts atomic.Int64
	flood := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
	echo := &handler{w: w}
	next := make(chan *handler, 2)
	next <- flood
	next <- echo
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, opener(func(*rondo.Conn) *handler { return <-next }))
	flooder, client := w.Dial(addr), Peer(nil)
	w.Until("the flooder's connection", flood.isOpened)
	flood.do(func(c *rondo.Conn) {
		c.Loop().Every(time.Millisecond, func() {
			ticks.Add(1)
			c.Loop().Post(func() { posts.Add(1) })
		})
	})
	client = w.Dial(addr)
	block := pattern(1 << 20)
	for i := range 20 {
		send(w, flooder, block)
		msg := []byte(fmt.Sprint("message ", i))
		send(w, client, msg)
		expect(w, client, msg)
	}
	before := ticks.Load()
	w.Until("timers and posts beside a flood", func() bool {
		return ticks.Load() > before && posts.Load() > before
	})
	w.Until("the flood", func() bool { return flood.received() == 20*len(block) }) // some may wait in the system
}
