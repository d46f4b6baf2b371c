package sim

import (
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// every returns all faults that do not break connections.
func every(p float64) Faults {
	return Faults{ShortRead: p, ShortWrite: p, Block: p, Reorder: p, Late: p,
		NoFiles: p, SlowClose: p, Spurious: p, LateCancel: p}
}

// A client sends a stream and expects it back.
type client struct {
	conn           *Conn
	id             uint64
	sent, got, all int
	finished       bool
	broken         error
}

// at returns byte i of client id's stream.
func at(id uint64, i int) byte { return byte(mix(id<<32 | uint64(i/7))) }

// act makes the client read or write, by chance.
func (c *client) act(t *testing.T, r *random) {
	buf := make([]byte, 1+r.intn(2000))
	if c.sent < c.all && r.next()&1 == 0 {
		n := min(len(buf), c.all-c.sent)
		for i := range n {
			buf[i] = at(c.id, c.sent+i)
		}
		n, err := c.conn.Write(buf[:n])
		c.sent += n
		c.fail(err)
		if c.sent == c.all && err == nil {
			c.fail(c.conn.CloseWrite())
		}
		return
	}
	n, err := c.conn.Read(buf)
	for i := range n {
		if buf[i] != at(c.id, c.got+i) {
			t.Fatalf("client %d: byte %d is %#x, want %#x", c.id, c.got+i, buf[i], at(c.id, c.got+i))
		}
	}
	c.got += n
	if err == io.EOF {
		c.finished = true
		if c.got != c.all || c.conn.Close() != nil {
			t.Fatalf("client %d: end of stream after %d of %d bytes", c.id, c.got, c.all)
		}
		return
	}
	c.fail(err)
}

func (c *client) fail(err error) {
	if err != nil && !c.finished {
		c.broken, c.finished = err, true
		c.conn.Close()
	}
}

// echoRun lets some clients talk to a server. It returns the network's digest, the
// number of broken connections and that of failed accepts.
func echoRun(t *testing.T, o Options) (trace uint64, broken, bad int) {
	n := NewNetwork(o)
	r := random(o.Seed)
	s := serve(t, n, 1+r.intn(3), ":0")
	var clients []*client
	for i := range 1 + r.intn(6) {
		conn, err := n.Dial("tcp", s.addr, netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{conn: conn, id: o.Seed<<8 + uint64(i), all: 1 + r.intn(20000)}
		if err := n.Drive(backend.Forever, false, func() bool { over, _ := conn.Connected(); return over }); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	left := len(clients)
	limit := n.Now().Add(time.Hour)
	for left > 0 {
		c := clients[r.intn(len(clients))]
		if !c.finished {
			if c.act(t, &r); c.finished {
				left--
				if c.broken != nil {
					broken++
				}
			}
		}
		until := n.Now().Add(r.between(0, time.Millisecond))
		if err := n.Drive(until, false, func() bool { return false }); err != ErrTime || until > limit {
			t.Fatalf("%v, at %v", err, Wall(until))
		}
	}
	// The server has seen every connection end.
	n.Drive(backend.Forever, true, func() bool { return false })
	await(t, n, func() {
		for _, l := range s.loops {
			count := make(chan int)
			l.post(func() { count <- len(l.conns) })
			if open := <-count; open != 0 {
				t.Errorf("the server still has %d connections", open)
			}
		}
	})
	s.stop(n)
	return n.Trace(), broken, s.bad
}

func TestEcho(t *testing.T) {
	faults := map[string]Faults{
		"none":  {},
		"few":   every(0.02),
		"many":  every(0.4),
		"reset": {Reset: 0.005, Late: 0.1, Reorder: 0.5},
	}
	tries := seeds(150)
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			resets, bad := 0, 0
			for seed := range tries {
				o := Options{Seed: seed, Faults: f, Buffer: 1 << (6 + seed%11)}
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					_, r, b := echoRun(t, o)
					resets += r
					bad += b
				})
			}
			if (resets > 0) != (f.Reset > 0) {
				t.Errorf("%d connections broke, with resets of probability %v", resets, f.Reset)
			}
			if (bad > 0) != (f.NoFiles > 0) {
				t.Errorf("%d accepts failed, with EMFILE of probability %v", bad, f.NoFiles)
			}
		})
	}
}

func TestSameSeedSameRun(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(40) {
		f := every(0.2)
		f.Reset = 0.001
		o := Options{Seed: seed, Faults: f}
		trace, _, _ := echoRun(t, o)
		if again, _, _ := echoRun(t, o); again != trace {
			t.Fatalf("seed %d: the runs differ: %#x, %#x", seed, trace, again)
		}
		if other, ok := seen[trace]; ok {
			t.Fatalf("seeds %d and %d give the same run", seed, other)
		}
		seen[trace] = seed
	}
}
