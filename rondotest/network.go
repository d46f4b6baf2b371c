// Package rondotest tests handlers on a simulated network with a simulated
// clock. The engine and the handlers are ordinary ones; connections, latencies
// and timeouts are simulated.
//
//	func TestEcho(t *testing.T) {
//		n := rondotest.New(t, rondotest.Options{})
//		n.Serve(":7", open)
//		c := n.Dial("tcp", "127.0.0.1:7")
//		c.Send("hello")
//		c.Expect("hello")
//	}
//
// Nothing sleeps. A call of the test, such as Read or Advance, runs the network
// until the call has a result: bytes travel, handlers run, and when nothing is
// left to do the clock jumps to the next event. An idle timeout of an hour
// passes at once, and a Read that would wait for ever returns an error.
//
// # Seeds
//
// A seed decides how long bytes travel, in what pieces they arrive, which loop
// runs first, and which Faults happen when. The same seed gives the same run,
// so a failure can be repeated. A failing test prints its seed:
//
//	rondotest: seed 3481; run with RONDO_SEED=3481
//
// The environment variable RONDO_SEED overrides Options.Seed. RONDO_TRACE=1
// logs every event. To be sure of a handler, run it with a thousand seeds: a
// small test takes less than a millisecond.
//
// A run repeats only if handlers depend on nothing but the network: not on real
// time, on the order of a map, or on a race between other goroutines. Handlers
// may start goroutines that return with Loop.Post or a Ref: the network waits
// for them while they compute. It cannot wait for a goroutine that waits for
// something real, such as a file or a timer of package time.
//
// # Rules
//
// The network stands still while the test runs, and the test while the network
// runs. So the test may read a handler's variables without a lock. The methods
// of a Network and its Conns are for the test's goroutines; a handler must not
// call them. Use Await for calls that wait for loops, such as Engine.Shutdown.
//
// The simulation does not show how systems differ. Keep some tests on real
// sockets.
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

// Options configure a Network. The zero Options give a mild network without
// faults, and a new seed each time.
type Options struct {
	// Seed decides everything. 0 means a random one.
	Seed uint64
	// MinLatency and MaxLatency bound how long bytes travel. If both are 0, the
	// bounds are 50 µs and 1 ms.
	MinLatency, MaxLatency time.Duration
	// Fragment is the probability, from 0 to 1, that a piece of a write travels
	// separately, so that it may arrive separately. 0 means 0.3; a negative
	// number means never.
	Fragment float64
	// Buffer is the number of bytes in one direction of a connection, on their
	// way or unread, at which its writer must wait. 0 means 64 KiB.
	Buffer int
	// Faults are the faults of the network.
	Faults Faults
}

// Faults are the probabilities, from 0 to 1, of errors and of unusual but legal
// behavior. The zero Faults mean none. A client of a correct server notices
// only Reset, which ends connections, NoFiles, which delays them, and the
// faults of datagrams.
type Faults struct {
	// ShortRead: a loop receives less than has arrived.
	ShortRead float64
	// ShortWrite: the system takes only a part of a loop's write at once.
	ShortWrite float64
	// Block: the system takes nothing of a loop's write.
	Block float64
	// Reorder: a loop gets the events of one moment in another order.
	Reorder float64
	// Late: a loop gets an event late.
	Late float64
	// Reset: bytes break the connection instead of arriving.
	Reset float64
	// NoFiles: accepting a connection fails, as if the process had too many
	// open files, and must be tried again.
	NoFiles float64
	// SlowClose: a closed connection takes some time to go away.
	SlowClose float64
	// Spurious: a loop wakes up without an event.
	Spurious float64
	// LateCancel: an operation that a loop cancels continues for some time.
	LateCancel float64
	// Loss: a datagram does not arrive.
	Loss float64
	// Duplicate: a datagram arrives twice.
	Duplicate float64
	// Disorder: later datagrams overtake a datagram.
	Disorder float64
}

// Harmless returns Faults with every fault that a correct server hides, each
// with probability p.
func Harmless(p float64) Faults {
	return Faults{ShortRead: p, ShortWrite: p, Block: p, Reorder: p, Late: p, SlowClose: p, Spurious: p, LateCancel: p}
}

// A Network connects engines and the test. Its methods are for the test's
// goroutines.
type Network struct {
	tb      testing.TB
	seed    uint64
	sim     *sim.Network
	name    string // of the backend
	engines []*rondo.Engine
	closed  atomic.Bool

	unregister func()
}

// check returns an error for a field with a meaningless value.
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

// networks counts the Networks, to give each a different name.
var networks atomic.Uint64

// New makes a Network. When the test ends, the Network closes its engines.
// Without a test, as in an Example or in the set-up of a benchmark, pass nil
// for tb and call Close; then a failure panics.
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

// Seed returns the seed that decides everything.
func (n *Network) Seed() uint64 { return n.seed }

// Close closes the engines and ends the network. Call it only for a Network
// without a test.
func (n *Network) Close() {
	n.helper()
	if n.closed.Load() {
		return
	}
	for _, e := range n.engines {
		// A lost loop cannot be closed; the loss was already reported.
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

// Engine puts e on the network by setting its Backend, and returns e. If
// NumLoops is 0 it becomes 1, since the number of processors would make runs
// differ between machines. If Logger is nil it becomes the test's log.
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

// Listen is e.Listen with the zero SocketOptions. It puts e on the network if
// necessary, and fails the test if e cannot listen. Addresses are literal, such
// as "127.0.0.1:7", ":7" or "localhost:7"; port 0 means a free port. Network
// "unix" accepts any name and makes no file.
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

// DialPacket is Engine.DialPacket on this network. The network chooses the
// local address.
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

// Blackhole makes an IP address, such as "192.0.2.1", silent: unless an engine
// listens there, a dial is not refused but waits for a minute.
func (n *Network) Blackhole(address string) {
	n.helper()
	ip, err := netip.ParseAddr(address)
	if err != nil {
		n.fatal(err)
	}
	n.sim.Blackhole(ip)
}

// Serve is rondo.Serve on this network: it makes a new engine, listens on
// address, and returns the engine.
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

// helper, logf and fatal report to the test, if there is one.

func (n *Network) helper() {
	if n.tb != nil {
		n.tb.Helper()
	}
}

func (n *Network) logf(format string, args ...any) {
	switch {
	case n.tb == nil:
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	case !n.closed.Load(): // after the test, its log is closed
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

// logWriter writes an engine's log to the test's log.
type logWriter struct{ n *Network }

func (w logWriter) Write(p []byte) (int, error) {
	w.n.logf("%s", p)
	return len(p), nil
}

// withoutTime removes the real time from the log.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.Attr{}
	}
	return a
}
