package relay_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/relay"
	"github.com/rondo-go/rondo/rondotest"
)

var seeds = flag.Int("seeds", 100, "how many seeds TestRandom tries")

// TestRandom relays on simulated networks between a client and a server that do anything. A
// model knows what either may read: the bytes of the other one, in their order, then the end
// of the stream if it has ended, and a reset if it was reset.
func TestRandom(t *testing.T) {
	for seed := 1; seed <= *seeds; seed++ {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 18))
			o := rondotest.Options{Seed: uint64(seed)}
			if seed%2 == 0 {
				o.Faults = rondotest.Harmless(0.1)
			}
			if seed%3 == 0 {
				o.Buffer = 1 + r.IntN(2000)
			}
			n := rondotest.New(t, o)
			e := &rondo.Engine{NumLoops: 1 + r.IntN(3)}
			ends := make([]relay.End, 0, 1)
			var filters [2][]rondo.FilterOpenFunc // of the client's connection, and the server's
			for i := range filters {
				if r.IntN(4) == 0 {
					filters[i] = append(filters[i], func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
				}
			}
			client, server := connect(n, e, filters, relay.Options{Done: func(e relay.End) { ends = append(ends, e) }})
			m := &model{t: t, n: n, r: r, peers: [2]*rondotest.Conn{client, server}}
			for range 10 + r.IntN(100) {
				m.step()
				if m.reset {
					break
				}
			}
			m.finish()
			n.Run()
			if len(ends) != 1 {
				t.Fatalf("Done was called %d times", len(ends))
			}
			if end := ends[0]; m.reset != (end.Err != nil) || !m.reset && (end.FromA != m.sent[0] || end.FromB != m.sent[1]) {
				t.Errorf("the end is %+v, want %d bytes each way; reset: %v", end, m.sent, m.reset)
			}
		})
	}
}

// connect returns the two peers of a relay.
func connect(n *rondotest.Network, e *rondo.Engine, filters [2][]rondo.FilterOpenFunc, o relay.Options) (client, server *rondotest.Conn) {
	var accepted net.Conn
	n.Serve(":1", func(c *rondo.Conn) rondo.Handler {
		c.Detach(func(nc net.Conn, err error) {
			if err != nil {
				panic(err)
			}
			accepted = nc
		})
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) { return 0, nil })
	})
	ln := n.Listen(e, "tcp", ":0", rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		return relay.Dial(c, "tcp", "127.0.0.1:1", rondo.SocketOptions{}, o, filters[1]...)
	}, filters[0]...))
	client = n.Dial("tcp", ln.Addr().String())
	n.Until(func() bool { return accepted != nil })
	return client, accepted.(*rondotest.Conn)
}

// A model is what the peers have done. Index i is the direction from peer i.
type model struct {
	t     *testing.T
	n     *rondotest.Network
	r     *rand.Rand
	peers [2]*rondotest.Conn
	sent  [2]int64
	got   [2]int64
	ended [2]bool // the stream
	over  [2]bool // and that has been read
	reset bool
}

// byteOf is the byte of a direction at a place.
func byteOf(direction int, i int64) byte { return byte(i*7 + i>>8*13 + int64(direction)*101) }

func (m *model) step() {
	i := m.r.IntN(2)
	switch k := m.r.IntN(100); {
	case k < 45:
		if !m.ended[i] {
			m.write(i, 1+m.r.IntN([]int{1, 10, 1000, 40_000, 200_000}[m.r.IntN(5)]))
		}
	case k < 85:
		m.read(i, 1+m.r.IntN([]int{1, 1000, 100_000}[m.r.IntN(3)]))
	case k < 95:
		m.n.Advance(time.Duration(m.r.IntN(3)) * time.Millisecond)
	case k < 98:
		m.end(i)
	case k < 99 && !m.ended[i]: // otherwise only a write shows it
		m.peers[i].Reset()
		m.reset = true
		m.ended[i] = true
		m.readAll(i)
		m.ended[1-i] = true
		m.peers[1-i].Close()
	}
}

func (m *model) write(i, size int) {
	p := make([]byte, size)
	for j := range p {
		p[j] = byteOf(i, m.sent[i]+int64(j))
	}
	m.peers[i].SetWriteDeadline(m.n.Now().Add(time.Duration(1+m.r.IntN(3000)) * time.Microsecond))
	n, err := m.peers[i].Write(p)
	m.sent[i] += int64(n)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		m.t.Fatalf("write by peer %d: %v", i, err)
	}
}

// read reads of the direction from peer i. It reports whether more may come.
func (m *model) read(i, size int) bool {
	if m.over[i] {
		return false
	}
	p := make([]byte, size)
	to := m.peers[1-i]
	to.SetReadDeadline(m.n.Now().Add(time.Duration(1+m.r.IntN(3000)) * time.Microsecond))
	n, err := to.Read(p)
	for j := range p[:n] {
		if p[j] != byteOf(i, m.got[i]+int64(j)) {
			m.t.Fatalf("from peer %d: byte %d is wrong", i, m.got[i]+int64(j))
		}
	}
	m.got[i] += int64(n)
	switch {
	case m.got[i] > m.sent[i]:
		m.t.Fatalf("from peer %d: %d bytes came of %d", i, m.got[i], m.sent[i])
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
		return true
	case err == io.EOF && (!m.ended[i] || m.reset || m.got[i] != m.sent[i]):
		m.t.Fatalf("from peer %d: the end of the stream after %d bytes of %d; ended %v, reset %v", i, m.got[i], m.sent[i], m.ended[i], m.reset)
	case err != io.EOF && !m.reset:
		m.t.Fatalf("from peer %d: %v", i, err)
	}
	m.over[i] = true
	return false
}

func (m *model) readAll(i int) {
	for m.read(i, 100_000) {
	}
}

func (m *model) end(i int) {
	if !m.ended[i] {
		m.ended[i] = true
		m.peers[i].CloseWrite()
	}
}

// finish ends what has not ended, and reads the rest.
func (m *model) finish() {
	if m.reset {
		return
	}
	for i := range 2 {
		m.end(i)
	}
	for i := range 2 {
		m.readAll(i)
	}
}
