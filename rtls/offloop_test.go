package rtls_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// On simulated networks nothing differs but where handshakes are computed.
func TestOffLoop(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		for seed := range seeds(10) {
			o := &rtls.Options{OffLoop: 1 + int(seed)%2}
			n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
			config := serverConfig(version)
			config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if hello.Conn.RemoteAddr() == nil || hello.Context().Err() != nil {
					return nil, errors.New("no address, or no time")
				}
				return nil, nil
			}
			n.Serve(":7", rondo.Filtered((&player{}).open, o.Server(config)))
			for range 3 {
				c := handshake(t, n.Dial("tcp", "127.0.0.1:7"), clientConfig())
				roundTrip(t, c, strings.Repeat("hello", 10_000))
				c.Close()
			}
			n.Close()
			if t.Failed() {
				return
			}
		}
	})
}

// connect is tls.Dial, on a goroutine of its own.
func connect(t *testing.T, address string, config *tls.Config) <-chan net.Conn {
	done := make(chan net.Conn, 1)
	go func() {
		c, err := tls.Dial("tcp", address, config)
		if err != nil {
			close(done)
			return
		}
		t.Cleanup(func() { c.Close() })
		done <- c
	}()
	return done
}

// Callbacks that block hold up neither the loop nor more handshakes than they may,
// and the connections that wait for them can be closed.
func TestOffLoopBlocks(t *testing.T) {
	const limit = 2
	gate := newGate()
	e := &rondo.Engine{NumLoops: 1}
	o := &rtls.Options{OffLoop: limit}
	address := listen(t, e, rondo.Filtered(echo, o.Server(gate.config())))
	quick := listen(t, e, rondo.Filtered(echo, rtls.Server(serverConfig(0))))

	var conns []<-chan net.Conn
	for range 5 {
		conns = append(conns, connect(t, address, clientConfig()))
	}
	gate.await(t, limit)
	// Meanwhile the loop serves others.
	c := <-connect(t, quick, clientConfig())
	for range 10 {
		roundTrip(t, c, "hello")
	}
	close(gate.open)
	for _, done := range conns {
		c, ok := <-done
		if !ok {
			t.Fatal("a handshake failed")
		}
		roundTrip(t, c, "hello")
	}
	if m := gate.most.Load(); m != limit {
		t.Errorf("%d callbacks ran at once, want %d", m, limit)
	}
}

// The end of a connection ends the callback that it waits for.
func TestOffLoopCanceled(t *testing.T) {
	gate := newGate()
	e := &rondo.Engine{NumLoops: 1}
	address := listen(t, e, rondo.Filtered(echo, (&rtls.Options{OffLoop: 1}).Server(gate.config())))
	connect(t, address, clientConfig())
	gate.await(t, 1)
	e.Close()
	<-gate.canceled
}

// gate is a callback that blocks.
type gate struct {
	open          chan bool
	canceled      chan bool
	running, most atomic.Int32
}

func newGate() *gate { return &gate{open: make(chan bool), canceled: make(chan bool, 10)} }

func (g *gate) config() *tls.Config {
	config := serverConfig(0)
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		n := g.running.Add(1)
		defer g.running.Add(-1)
		for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
		}
		select {
		case <-g.open:
		case <-hello.Context().Done():
			g.canceled <- true
			return nil, hello.Context().Err()
		}
		cert := hostCert()
		return &cert, nil
	}
	return config
}

// await waits until so many callbacks run.
func (g *gate) await(t *testing.T, n int32) {
	t.Helper()
	for begin := time.Now(); g.running.Load() < n; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("%d callbacks run, want %d", g.running.Load(), n)
		}
	}
}

// A callback that panics, or ends its goroutine, costs its connection, is counted,
// and logged with its own stack, wherever it runs.
func TestCallbackPanics(t *testing.T) {
	for name, o := range map[string]*rtls.Options{"on the loop": {}, "off the loop": {OffLoop: 1}} {
		t.Run(name, func(t *testing.T) {
			var log testkit.Log
			e := &rondo.Engine{NumLoops: 1, Logger: log.Logger()}
			config := serverConfig(0)
			config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				switch hello.ServerName {
				case host:
					return theCulprit(), nil
				case "gone.test":
					runtime.Goexit()
				}
				cert := hostCert()
				return &cert, nil
			}
			why := make(chan error, 2)
			address := listen(t, e, func(c *rondo.Conn) rondo.Handler {
				c.Use(echo, o.Server(config))
				return closing(func(err error) { why <- err })
			})
			if c := <-connect(t, address, clientConfig()); c != nil {
				t.Error("connected")
			}
			var panicked *rondo.PanicError
			if err := <-why; !errors.As(err, &panicked) || panicked.Value != "oops" || !bytes.Contains(panicked.Stack, []byte("theCulprit")) {
				t.Errorf("Closed got %v", err)
			}
			if got := log.String(); !strings.Contains(got, "oops") || !strings.Contains(got, "theCulprit") {
				t.Errorf("the log: %s", got)
			}
			other := clientConfig()
			other.ServerName, other.InsecureSkipVerify = "gone.test", true
			if c := <-connect(t, address, other); c != nil {
				t.Error("connected though the callback's goroutine had ended")
			}
			if err := <-why; !errors.As(err, &panicked) || !strings.Contains(err.Error(), "runtime.Goexit") {
				t.Errorf("after runtime.Goexit Closed got %v", err)
			}
			other = clientConfig()
			other.ServerName, other.InsecureSkipVerify = "other.test", true
			c, ok := <-connect(t, address, other)
			if !ok {
				t.Fatal("the next connection failed")
			}
			roundTrip(t, c, "hello")
			if got := e.Stats().Panics; got != 2 {
				t.Errorf("%d panics were counted", got)
			}
		})
	}
}

func theCulprit() *tls.Certificate { panic("oops") }

// No connection has a goroutine after its handshake, and none is left when the
// engine is closed, whatever the handshakes were doing. A loop keeps one that has
// made handshakes for the next.
func TestGoroutines(t *testing.T) {
	for name, o := range map[string]*rtls.Options{"on the loop": {}, "off the loop": {OffLoop: 3}} {
		t.Run(name, func(t *testing.T) {
			const conns = 50
			before := runtime.NumGoroutine()
			e := &rondo.Engine{NumLoops: 2}
			address := listen(t, e, rondo.Filtered(echo, o.Server(serverConfig(0))))
			idle := runtime.NumGoroutine()
			if o.OffLoop == 0 {
				idle += e.NumLoops
			}
			var open []net.Conn
			for range conns {
				c, err := tls.Dial("tcp", address, clientConfig())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				roundTrip(t, c, "hello")
				open = append(open, c)
			}
			settles(t, "beside the loops", idle)
			for range conns { // these stay in mid-handshake
				raw, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer raw.Close()
				tls.Client(&stop{raw, 1}, clientConfig()).Handshake()
			}
			if got := e.Stats().Open; got < conns {
				t.Errorf("%d connections are open", got)
			}
			for _, c := range open[:10] {
				roundTrip(t, c, "hello")
			}
			e.Close()
			settles(t, "after Close", before)
			for _, c := range open {
				if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
					t.Errorf("a client sees %v", err)
				}
			}
		})
	}
}

// settles waits until there are no more goroutines than want.
func settles(t *testing.T, when string, want int) {
	t.Helper()
	for begin := time.Now(); runtime.NumGoroutine() > want; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			b := make([]byte, 1<<20)
			t.Fatalf("%s: %d goroutines, want %d:\n%s", when, runtime.NumGoroutine(), want, b[:runtime.Stack(b, true)])
		}
	}
}

// A message takes one small allocation, which is crypto/tls's: what it reads a
// record with.
func TestAllocations(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		address := listen(t, &rondo.Engine{NumLoops: 1}, rondo.Filtered(echo, rtls.Server(serverConfig(version))))
		c, ok := <-connect(t, address, clientConfig())
		if !ok {
			t.Fatal("no connection")
		}
		for _, size := range []int{64, 1 << 10, 16 << 10} {
			msg, back := make([]byte, size), make([]byte, size)
			exchange := func() {
				c.Write(msg)
				if _, err := io.ReadFull(c, back); err != nil {
					t.Fatal(err)
				}
			}
			for range 50 {
				exchange()
			}
			perExchange := testing.AllocsPerRun(500, exchange)
			// The client's one, of the same code, is among them.
			most := 2.0
			if sys.Race {
				most = 6 // sync.Pool forgets at random then
			}
			if perExchange > most {
				t.Errorf("an echo of %d bytes makes %v allocations at both ends", size, perExchange)
			}
		}
	})
}

// What a loop keeps for handshakes is bounded, however many it had at once, and
// ends with its last connection.
func TestRoutines(t *testing.T) {
	const many, kept = 100, 32
	e := &rondo.Engine{NumLoops: 1}
	address := listen(t, e, rondo.Filtered(echo, (&rtls.Options{HandshakeTimeout: -1}).Server(serverConfig(0))))
	idle := runtime.NumGoroutine()
	g := newGate()
	var conns []<-chan *tls.Conn
	for range many {
		raw, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		done := make(chan *tls.Conn, 1)
		conns = append(conns, done)
		go func() {
			c := tls.Client(&held{Conn: raw, gate: g}, clientConfig())
			if err := c.Handshake(); err != nil {
				t.Error(err)
			}
			done <- c
		}()
	}
	g.await(t, many)
	close(g.open)
	var open []*tls.Conn
	for _, done := range conns {
		c := <-done
		roundTrip(t, c, "hello")
		open = append(open, c)
	}
	settles(t, "after many handshakes at once", idle+kept)
	if runtime.NumGoroutine() == idle {
		t.Error("nothing is kept for the next handshake")
	}
	for _, c := range open {
		c.Close()
	}
	settles(t, "without connections", idle)
}

// held is a client's connection that stops in the middle of the handshake.
type held struct {
	net.Conn
	gate   *gate
	writes int
}

func (h *held) Write(p []byte) (int, error) {
	if h.writes++; h.writes == 2 {
		h.gate.running.Add(1)
		<-h.gate.open
	}
	return h.Conn.Write(p)
}
