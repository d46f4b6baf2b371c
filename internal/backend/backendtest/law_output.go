package backendtest

import (
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// All ways to write, mixed, make one stream in the order of the calls.
func writesKeepOrder(w World) {
	stream := pattern(6 << 20)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		rest := stream
		take := func(n int) []byte {
			n = min(n, len(rest))
			p := rest[:n]
			rest = rest[n:]
			return p
		}
		for i := 0; len(rest) > 0; i++ {
			switch i % 7 {
			case 0:
				c.Write(take(10))
			case 1:
				c.Write(append(c.AvailableBuffer(), take(100)...))
			case 2:
				c.WriteOwned(take(3000), nil)
			case 3:
				c.Write(take(70_000))
			case 4:
				c.Write(append(c.AvailableBuffer(), take(90_000)...))
			case 5:
				c.WriteOwned(take(40_000), func() {})
			case 6:
				c.AvailableBuffer()
				if i%2 == 0 {
					c.Flush()
				}
				c.Write(nil)
			}
		}
		c.Close()
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{Loops: 1, Linger: time.Minute}, h.one()))
	send(w, p, []byte("x"))
	slowly(w, p, stream)
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
}

// WriteOwned's release is called exactly once: when sent, refused, or dropped.
func ownedIsReleasedOnce(w World) {
	for _, end := range []func(*rondo.Conn){
		(*rondo.Conn).Close,
		func(c *rondo.Conn) { c.Abort(nil) },
	} {
		const writes = 300
		var released [writes]atomic.Int32
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			p := pattern(100_000)
			for i := range writes {
				if i == writes-1 {
					end(c)
				}
				c.WriteOwned(p, func() { released[i].Add(1) })
			}
			return len(in), nil
		}}
		p := w.Dial(w.Listen(&rondo.Engine{Loops: 1, Linger: 50 * time.Millisecond}, h.one()))
		send(w, p, []byte("x"))
		h.untilClosed()
		for i := range released {
			if n := released[i].Load(); n != 1 {
				w.Fatalf("write %d was released %d times", i, n)
			}
		}
	}
}
