package rondotest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// seeds returns the number of seeds to try: RONDO_SEEDS, or a few.
func seeds(few int) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("RONDO_SEEDS"), 10, 32); err == nil {
		return n
	}
	if testing.Short() {
		return uint64(few+9) / 10
	}
	return uint64(few)
}

// chatter is a handler that does a bit of everything: it echoes in pieces, with timers,
// posts to other loops, and goroutines that return with a Ref.
type chatter struct {
	e *rondo.Engine
}

func (h *chatter) Data(c *rondo.Conn, in []byte) (int, error) {
	n := (len(in) + 1) / 2
	switch in[0] % 4 {
	case 0:
		c.Write(in[:n])
	case 1:
		p, ref := append([]byte(nil), in[:n]...), c.Ref()
		c.Loop().AfterFunc(time.Millisecond, func() { ref.Write(p) })
	case 2:
		p, ref := append([]byte(nil), in[:n]...), c.Ref()
		go ref.Write(p)
	case 3:
		p, ref := append([]byte(nil), in[:n]...), c.Ref()
		for l := range h.e.Loops() {
			if l != c.Loop() {
				l.Post(func() { ref.Write(p) })
				return n, nil
			}
		}
	}
	if n < len(in) {
		c.Pause()
		ref := c.Ref()
		c.Loop().AfterFunc(100*time.Microsecond, func() { ref.Do((*rondo.Conn).Resume) })
	}
	return n, nil
}

func (h *chatter) EOF(c *rondo.Conn)             { c.Close() }
func (h *chatter) Closed(c *rondo.Conn, _ error) {}

// chat returns the network's digest after some clients have talked.
func chat(t *testing.T, o Options) uint64 {
	n := New(t, o)
	e := n.Engine(&rondo.Engine{NumLoops: 3, Linger: time.Second})
	n.Listen(e, "tcp", ":7", func(c *rondo.Conn) rondo.Handler {
		c.SetIdle(time.Second)
		return &chatter{e: e}
	})
	buf := make([]byte, 100)
	var conns []*Conn
	for i := range 5 {
		c := n.Dial("tcp", "127.0.0.1:7")
		conns = append(conns, c)
		for j := range 4 {
			c.Write(fmt.Appendf(nil, "%d%d%s", (i+j)%4, j, buf[:i*10]))
		}
		n.Advance(time.Duration(i) * time.Millisecond)
	}
	for i, c := range conns {
		c.SetReadDeadline(n.Now().Add(5 * time.Millisecond))
		c.Read(buf)
		if i%2 == 0 {
			c.CloseWrite()
		}
	}
	n.Advance(time.Minute)
	n.Await(func() {
		if err := e.Shutdown(n.Timeout(time.Second)); err != nil {
			t.Error(err)
		}
	})
	n.Close()
	return n.sim.Trace()
}

func TestSameSeedSameRun(t *testing.T) {
	t.Setenv("RONDO_SEED", "")
	faults := Harmless(0.1)
	faults.NoFiles, faults.Reset = 0.1, 0.01
	seen := map[uint64]uint64{}
	for seed := uint64(1); seed <= seeds(50); seed++ {
		o := Options{Seed: seed, Faults: faults}
		trace := chat(t, o)
		if again := chat(t, o); again != trace {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		if other, ok := seen[trace]; ok {
			t.Fatalf("seeds %d and %d give the same run", seed, other)
		}
		seen[trace] = seed
	}
}
