package relay_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/relay"
)

var socketSeeds = flag.Int("socketseeds", 5, "how many seeds TestRandomSockets tries on each backend and network")

// TestRandomSockets is TestRandom on the system's sockets, with several pairs on one loop, which
// share its pipe. In mid-stream connections get filters, or become shared.
func TestRandomSockets(t *testing.T) {
	t.Cleanup(func() {
		if n := passed.Load(); n < int32(*socketSeeds) {
			t.Errorf("only %d pairs were detached", n)
		}
	})
	onEach(t, func(t *testing.T, backend string) {
		for _, network := range []string{"tcp", "unix"} {
			if network == "unix" && runtime.GOOS == "windows" {
				continue
			}
			t.Run(network, func(t *testing.T) {
				for seed := 1; seed <= *socketSeeds; seed++ {
					t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
						t.Parallel() // a seed mostly waits
						tryOnSockets(t, &rondo.Engine{Backend: backend, NumLoops: 1 + seed%2}, network, uint64(seed))
					})
				}
			})
		}
	})
}

// pairsOfALoop is how many pairs share a loop.
const pairsOfALoop = 3

func tryOnSockets(t *testing.T, e *rondo.Engine, network string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 18))
	t.Cleanup(func() { e.Close() })
	var pairs [pairsOfALoop]*socketPair
	for i := range pairs {
		pairs[i] = joinSockets(t, e, network, r)
		pairs[i].id = i
	}
	for range pairsOfALoop * (10 + r.IntN(150)) {
		switch p := pairs[r.IntN(len(pairs))]; {
		case p.reset:
		case r.IntN(30) == 0:
			p.meddle()
		case p.travels && r.IntN(8) == 0:
			p.pass()
		default:
			p.step()
		}
	}
	for _, p := range pairs {
		p.finish()
		select {
		case end := <-p.ends:
			p.check(end)
		case <-time.After(time.Minute):
			t.Fatalf("pair %d does not end; reset: %v", p.id, p.reset)
		}
	}
	time.Sleep(time.Millisecond)
	for _, p := range pairs {
		if len(p.ends) > 0 {
			t.Errorf("pair %d has ended twice", p.id)
		}
	}
}

// A socketPair is a pair on sockets.
type socketPair struct {
	model
	pair    *relay.Pair
	options relay.Options
	ends    chan relay.End
	rough   bool // connections change in mid-stream
	travels bool // the pair is detached, and joined again
}

// joinSockets makes a pair.
func joinSockets(t *testing.T, e *rondo.Engine, network string, r *rand.Rand) *socketPair {
	p := &socketPair{ends: make(chan relay.End, 2), rough: r.IntN(4) == 0, travels: r.IntN(3) > 0}
	p.options.Done = func(e relay.End) { p.ends <- e }
	p.t, p.r, p.now, p.sleep, p.gentle = t, r, time.Now, time.Sleep, network == "unix"
	var so rondo.SocketOptions
	if network == "tcp" && r.IntN(2) == 0 {
		so.SendBuffer, so.RecvBuffer = 16<<10<<r.IntN(5), 128<<10
	}
	address := func(name string) string {
		if network == "unix" {
			return filepath.Join(t.TempDir(), name)
		}
		return "127.0.0.1:0"
	}
	ln, err := net.Listen(network, address("server"))
	must(t, err)
	defer ln.Close()
	pairs := make(chan *relay.Pair, 1)
	front, err := e.Listen(network, address("relay"), so, func(client *rondo.Conn) rondo.Handler {
		client.Pause()
		client.Loop().Dial(network, ln.Addr().String(), so, func(server *rondo.Conn, err error) rondo.Handler {
			if err != nil {
				t.Error(err)
				return nil
			}
			pairs <- relay.Join(client, server, p.options)
			return server.Handler()
		})
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) { return 0, nil })
	})
	must(t, err)
	client, err := net.Dial(network, front.Addr().String())
	must(t, err)
	server, err := ln.Accept()
	must(t, err)
	for i, c := range []net.Conn{client, server} {
		t.Cleanup(func() { c.Close() })
		p.peers[i] = asPeer(c)
	}
	p.pair = <-pairs
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asPeer makes a socket a peer.
func asPeer(c net.Conn) peer {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetReadBuffer(128 << 10)
		return tcpPeer{tcp}
	}
	return unixPeer{c.(*net.UnixConn)}
}

type tcpPeer struct{ *net.TCPConn }

func (p tcpPeer) Reset() error {
	p.SetLinger(0)
	return p.Close()
}

type unixPeer struct{ *net.UnixConn }

// Reset is not called: a unix socket has no reset.
func (unixPeer) Reset() error { return errors.ErrUnsupported }

// meddle changes a connection in mid-stream.
func (p *socketPair) meddle() {
	if !p.rough {
		return
	}
	a, b := p.pair.Conns()
	c := []*rondo.Conn{a, b}[p.r.IntN(2)]
	what := p.r.IntN(4)
	done := make(chan struct{})
	if c.Ref().Loop().Post(func() {
		defer close(done)
		switch w := bridge.Of(c); {
		case w.Room() < 0 || !w.IsOpen(): // filters would close it
		case what == 0:
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
		case what == 1:
			c.Control(func(uintptr) error { return nil })
		}
	}) == nil {
		<-done
	}
}

// pass detaches the pair, lets the peers do something, and joins it again on any loop.
func (p *socketPair) pass() {
	a, _ := p.pair.Conns()
	loop := a.Ref().Loop()
	left := make(chan *relay.Detached, 1)
	if loop.Post(func() {
		if p.pair.Detach(func(d *relay.Detached, _ error) { left <- d }) != nil {
			left <- nil // it has filters, or is ending
		}
	}) != nil {
		return
	}
	if p.r.IntN(50) == 0 {
		p.resetBy(p.r.IntN(2))
	}
	defer p.afterReset()
	d := <-left
	if d == nil {
		return
	}
	passed.Add(1)
	for range p.r.IntN(6) {
		p.stepApart()
	}
	loops := slices.Collect(loop.Engine().Loops())
	joined := make(chan error, 1)
	must(p.t, d.Join(loops[p.r.IntN(len(loops))], p.options, func(pair *relay.Pair, err error) {
		p.pair = pair
		joined <- err
	}))
	must(p.t, <-joined)
}

// passed counts the pairs that were detached.
var passed atomic.Int32
