// Package rondotest tests handlers on a network that does not exist, with a
// clock that does not tick: an ordinary engine, with ordinary handlers, on
// loops whose connections, latencies and timeouts are simulated.
//
//	func TestEcho(t *testing.T) {
//		n := rondotest.New(t, rondotest.Options{})
//		n.Serve(":7", open)
//		c := n.Dial("tcp", "127.0.0.1:7")
//		c.Send("hello")
//		c.Expect("hello")
//	}
//
// Nothing sleeps. What a test calls, a Read or an Advance, runs the network
// until there is an answer: bytes travel, handlers are called, and when nobody
// has anything to do the clock jumps to what happens next. An idle timeout of
// an hour is over at once. And a Read that would wait for ever says so.
//
// # Seeds
//
// How long bytes travel, in what pieces they arrive, which loop goes first, and
// which Faults happen when, is decided by a seed. The same seed gives the same
// run, so a failure can be looked at again; a test that fails says with which
// seed:
//
//	rondotest: seed 3481; run with RONDO_SEED=3481
//
// The environment's RONDO_SEED goes before Options. RONDO_TRACE=1 logs all that
// happens. To be sure of a handler, run it with a thousand seeds: a small test
// takes less than a millisecond.
//
// For a run to repeat, what handlers do must depend on the network alone, not on
// the real time, on the order of a map, or on who wins a race between other
// goroutines. Handlers may start goroutines, which come back with Loop.Post or
// a Ref: the network waits for them while they compute. It cannot wait for one
// that waits for something real, a file or a timer of package time.
//
// # Rules
//
// The network stands still while the test runs, and the test while the network
// runs: so the test may look at a handler's variables without a lock. Its
// methods, and those of its Conns, are for the test's goroutines; a handler must
// not call them. What waits for loops, like Engine.Shutdown, has to be called
// in Await.
//
// It is no substitute for a test over real sockets at the end: it knows nothing
// of what systems do differently.
package rondotest

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/sim"
	"github.com/rondo-go/rondo/internal/pick"
)

// Options are what a Network is like. The zero Options are a mild network
// without faults, and another one each time.
type Options struct {
	// Seed decides everything. 0: any.
	Seed uint64
	// MinLatency and MaxLatency bound how long bytes travel. Both 0: 50 µs and
	// 1 ms.
	MinLatency, MaxLatency time.Duration
	// Fragment is how likely a piece of what is written is to travel on its
	// own, so that it may arrive on its own, from 0 to 1. 0: 0.3. Negative:
	// never.
	Fragment float64
	// Buffer is how many bytes of a direction of a connection may be under way
	// and unread, in bytes, before its writer has to wait. 0: 64 KiB.
	Buffer int
	// Faults are what may go wrong.
	Faults Faults
}

// Faults are the probabilities, from 0 to 1, of what may go wrong, or go
// otherwise than one expects. The zero Faults are none. Reset ends connections
// and NoFiles delays them; the others a correct server does not show.
type Faults struct {
	// ShortRead: a loop receives less than has arrived.
	ShortRead float64
	// ShortWrite: of a loop's write only a part is taken at once.
	ShortWrite float64
	// Block: nothing is.
	Block float64
	// Reorder: what a loop learns at once it learns in another order.
	Reorder float64
	// Late: it learns something only after some time.
	Late float64
	// Reset: bytes, instead of arriving, break the connection.
	Reset float64
	// NoFiles: accepting a connection fails, as it does when the process has
	// too many files open, and has to be tried again.
	NoFiles float64
	// SlowClose: a closed connection takes some time to be gone.
	SlowClose float64
	// Spurious: a loop wakes up for nothing.
	Spurious float64
	// LateCancel: what a loop wants to stop goes on for some time.
	LateCancel float64
	// Loss: a datagram does not arrive.
	Loss float64
	// Duplicate: a datagram arrives twice.
	Duplicate float64
	// Disorder: a datagram is overtaken by later ones.
	Disorder float64
}

// Harmless is every fault that a correct server does not show, each with
// probability p.
func Harmless(p float64) Faults {
	return Faults{ShortRead: p, ShortWrite: p, Block: p, Reorder: p, Late: p, SlowClose: p, Spurious: p, LateCancel: p}
}

// A Network is where the connections of engines and of the test meet. Its
// methods are for the test's goroutines.
type Network struct {
	tb      testing.TB
	seed    uint64
	sim     *sim.Network
	name    string // of the backend
	engines []*rondo.Engine
	closed  atomic.Bool

	unregister func()
}

// check finds meaningless values.
func (o *Options) check() error {
	switch {
	case o.MinLatency < 0 || o.MaxLatency < 0:
		return fmt.Errorf("rondotest: Options.MinLatency and MaxLatency are %v and %v: want 0 or more", o.MinLatency, o.MaxLatency)
	case o.MaxLatency > 0 && o.MinLatency > o.MaxLatency:
		return fmt.Errorf("rondotest: Options.MinLatency is %v: want no more than MaxLatency, which is %v", o.MinLatency, o.MaxLatency)
	case !(o.Fragment <= 1):
		return fmt.Errorf("rondotest: Options.Fragment is %v: want a probability, or a negative number for never", o.Fragment)
	case o.Buffer < 0:
		return fmt.Errorf("rondotest: Options.Buffer is %d: want 0, for 64 KiB, or more", o.Buffer)
	}
	faults := reflect.ValueOf(o.Faults)
	for i := range faults.NumField() {
		if p := faults.Field(i).Float(); !(0 <= p && p <= 1) {
			return fmt.Errorf("rondotest: Options.Faults.%s is %v: want a probability, from 0 to 1", faults.Type().Field(i).Name, p)
		}
	}
	return nil
}

// networks counts them, to tell their names apart.
var networks atomic.Uint64

// New makes a Network. When the test ends it closes the engines on it. Without a
// test, as in an Example or a benchmark's set-up, tb is nil: then call Close, and
// what would fail the test panics.
func New(tb testing.TB, o Options) *Network {
	n := &Network{tb: tb, seed: o.Seed, name: fmt.Sprintf("sim#%d", networks.Add(1))}
	if s := os.Getenv("RONDO_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			n.helper()
			n.fatal(fmt.Errorf("rondotest: RONDO_SEED: %w", err))
		}
		n.seed = seed
	} else if n.seed == 0 {
		n.seed = uint64(rand.Uint32())
	}
	if err := o.check(); err != nil {
		n.helper()
		n.fatal(err)
	}
	so := sim.Options{
		Seed:       n.seed,
		MinLatency: o.MinLatency,
		MaxLatency: o.MaxLatency,
		Fragment:   o.Fragment,
		Buffer:     o.Buffer,
		Faults:     sim.Faults(o.Faults),
	}
	if os.Getenv("RONDO_TRACE") != "" {
		so.Log = func(e sim.Event) { n.logf("%v", e) }
	}
	n.sim = sim.NewNetwork(so)
	n.sim.Face(n.wrap, unwrap)
	n.unregister = pick.Register(n.name, func() (backend.Backend, error) { return n.sim.Open(), nil })
	if tb != nil {
		tb.Cleanup(n.Close)
	}
	return n
}

// Seed is what decides everything.
func (n *Network) Seed() uint64 { return n.seed }

// Close closes the engines and ends the network. Only a Network without a test
// needs it.
func (n *Network) Close() {
	n.helper()
	if n.closed.Load() {
		return
	}
	for _, e := range n.engines {
		// A loop that was lost is beyond closing; that was reported already.
		if n.sim.Await(func() { e.Close() }) != nil {
			break
		}
	}
	n.unregister()
	err := n.sim.Close()
	if n.tb != nil {
		if err != nil {
			n.tb.Errorf("%v", err)
		}
		if n.tb.Failed() {
			n.tb.Logf("rondotest: seed %d; run with RONDO_SEED=%d", n.seed, n.seed)
		}
	}
	n.closed.Store(true)
	if n.tb == nil && err != nil {
		n.fatal(err)
	}
}

// Engine puts e on the network, by setting its Backend, and returns it. It sets
// NumLoops to 1 if it is 0, since the number of this machine's processors is not
// the seed's; and Logger, if it is nil, to the test's log.
func (n *Network) Engine(e *rondo.Engine) *rondo.Engine {
	e.Backend = n.name
	if e.NumLoops == 0 {
		e.NumLoops = 1
	}
	if e.Logger == nil && n.tb != nil {
		e.Logger = slog.New(slog.NewTextHandler(logWriter{n}, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	}
	n.engines = append(n.engines, e)
	return e
}

// Listen is e.Listen, with the default SocketOptions. It puts e on the network if it
// is not, and fails the test if e cannot listen. Addresses are literal, such as
// "127.0.0.1:7", ":7", "localhost:7", or with port 0 for a free one; network
// "unix" takes any name and makes no file.
func (n *Network) Listen(e *rondo.Engine, network, address string, open rondo.OpenFunc) *rondo.Listener {
	n.helper()
	if e.Backend != n.name {
		n.Engine(e)
	}
	var ln *rondo.Listener
	var err error
	n.Await(func() { err = e.Start() })
	if err != nil {
		n.fatal(err)
	}
	n.Await(func() { ln, err = e.Listen(network, address, rondo.SocketOptions{}, open) })
	if err != nil {
		n.fatal(err)
	}
	return ln
}

// ListenPacket is Engine.ListenPacket on this network.
func (n *Network) ListenPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn {
	n.helper()
	return n.packets(e, func() (*rondo.PacketConn, error) {
		return e.ListenPacket(network, address, rondo.SocketOptions{}, h)
	})
}

// DialPacket is Engine.DialPacket on this network, from an address of its choice.
func (n *Network) DialPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn {
	n.helper()
	return n.packets(e, func() (*rondo.PacketConn, error) {
		return e.DialPacket(network, "", address, rondo.SocketOptions{}, h)
	})
}

func (n *Network) packets(e *rondo.Engine, open func() (*rondo.PacketConn, error)) (c *rondo.PacketConn) {
	n.helper()
	if e.Backend != n.name {
		n.Engine(e)
	}
	var err error
	n.Await(func() { err = e.Start() })
	if err == nil {
		n.Await(func() { c, err = open() })
	}
	if err != nil {
		n.fatal(err)
	}
	return c
}

// Blackhole makes an IP address, such as "192.0.2.1", one from which there is no
// answer unless an engine listens there: who dials it waits, for a minute, and is
// not refused.
func (n *Network) Blackhole(address string) {
	n.helper()
	ip, err := netip.ParseAddr(address)
	if err != nil {
		n.fatal(err)
	}
	n.sim.Blackhole(ip)
}

// Serve is rondo.Serve: it listens to address with a new engine, which it
// returns.
func (n *Network) Serve(address string, open rondo.OpenFunc) *rondo.Engine {
	n.helper()
	network, address, err := rondo.ParseAddress(address)
	if err != nil {
		n.fatal(err)
	}
	e := n.Engine(new(rondo.Engine))
	n.Listen(e, network, address, open)
	return e
}

// helper, logf and fatal speak to the test, if there is one.

func (n *Network) helper() {
	if n.tb != nil {
		n.tb.Helper()
	}
}

func (n *Network) logf(format string, args ...any) {
	switch {
	case n.tb == nil:
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	case !n.closed.Load(): // the test's log is closed after the test
		n.tb.Logf(format, args...)
	}
}

func (n *Network) fatal(err error) {
	if n.tb == nil {
		panic(fmt.Sprintf("%v (rondotest: seed %d)", err, n.seed))
	}
	n.tb.Helper()
	n.tb.Fatal(err)
}

// logWriter writes an engine's log to the test's.
type logWriter struct{ n *Network }

func (w logWriter) Write(p []byte) (int, error) {
	w.n.logf("%s", p)
	return len(p), nil
}

// withoutTime leaves the real time out of the log.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.Attr{}
	}
	return a
}
