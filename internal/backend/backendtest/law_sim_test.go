package backendtest_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/rondotest"
)

var (
	first = flag.Int("first", 1, "the first seed of the laws on simulated networks")
	seeds = flag.Int("seeds", 3, "how many of these seeds are tried")
)

// TestLawsSimulated runs the engine's laws on the simulated network, with several seeds
// and every fault that a correct engine hides.
func TestLawsSimulated(t *testing.T) {
	trySeeds(t, func(w *simulated) backendtest.World { return w })
}

// trySeeds runs the laws on simulated networks. world makes a World of each.
func trySeeds(t *testing.T, world func(*simulated) backendtest.World, but ...string) {
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			backendtest.Laws(t, func(t *testing.T) backendtest.World {
				o := rondotest.Options{Seed: uint64(seed)}
				if seed%2 == 0 {
					o.Faults = rondotest.Harmless(0.1)
					o.Faults.Loss, o.Faults.Duplicate, o.Faults.Disorder = 0.1, 0.1, 0.1
				}
				return world(&simulated{t, rondotest.New(t, o)})
			}, but...)
		})
	}
}

// simulated is the World of the simulated network.
type simulated struct {
	*testing.T
	net *rondotest.Network
}

func (w *simulated) Listen(e *rondo.Engine, open rondo.OpenFunc) net.Addr {
	w.Helper()
	return w.net.Listen(e, "tcp", "127.0.0.1:0", open).Addr()
}

func (w *simulated) ListenPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn {
	w.Helper()
	return w.net.ListenPacket(e, network, address, h)
}

func (w *simulated) DialPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn {
	w.Helper()
	return w.net.DialPacket(e, network, address, h)
}

func (w *simulated) Dial(addr net.Addr) backendtest.Peer {
	w.Helper()
	return simPeer{w.net.Dial(addr.Network(), addr.String())}
}

func (w *simulated) Conn(p backendtest.Peer) net.Conn { return p.(simPeer).Conn }

type simPeer struct{ *rondotest.Conn }

func (p simPeer) Reset() { p.Conn.Reset() }

func (w *simulated) Now() time.Time                          { return w.net.Now() }
func (w *simulated) Timeout(d time.Duration) context.Context { return w.net.Timeout(d) }

func (w *simulated) Sleep(d time.Duration) { w.net.Advance(d) }
func (w *simulated) Call(f func())         { w.net.Await(f) }

func (w *simulated) Until(_ string, cond func() bool) {
	w.Helper()
	w.net.Until(cond)
}
