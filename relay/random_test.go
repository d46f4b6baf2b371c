package relay_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
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
			options := relay.Options{Done: func(e relay.End) { ends = append(ends, e) }, Owner: t}
			client, server := connect(n, e, filters, options)
			m := &model{t: t, r: r, now: n.Now, sleep: n.Advance, peers: [2]peer{client, server}}
			for range 10 + r.IntN(100) {
				if r.IntN(6) == 0 {
					pass(n, e, m, options)
				} else {
					m.step()
				}
				if m.reset {
					break
				}
			}
			m.finish()
			n.Advance(time.Second) // a timer of the pair may be due before its last completion
			if len(ends) != 1 {
				t.Fatalf("Done was called %d times", len(ends))
			}
			m.check(ends[0])
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

// pass detaches the pair, lets the peers do something, and joins it again on any loop.
func pass(n *rondotest.Network, e *rondo.Engine, m *model, o relay.Options) {
	loops := slices.Collect(e.Loops())
	var left *relay.Detached
	waits := 0
	for _, l := range loops {
		l.Post(func() {
			for c := range l.Conns() {
				p := relay.PairOf(c)
				if p == nil || p.Owner() != m.t {
					continue
				}
				if p.Detach(func(d *relay.Detached, _ error) { left = d; waits-- }) == nil {
					waits++
				}
			}
		})
	}
	if m.r.IntN(20) == 0 {
		m.resetBy(m.r.IntN(2))
	}
	defer m.afterReset()
	n.Run()
	n.Until(func() bool { return waits == 0 })
	if left == nil {
		return // it has filters, or is ending
	}
	for range m.r.IntN(5) {
		m.stepApart()
	}
	var joined error
	done := false
	must(m.t, left.Join(loops[m.r.IntN(len(loops))], o, func(_ *relay.Pair, err error) { joined, done = err, true }))
	n.Until(func() bool { return done })
	must(m.t, joined)
}
