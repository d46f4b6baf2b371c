//go:build unix

package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// A generation is a proxy that was, or will be, replaced by another one.
type generation struct {
	*proxy.Server
	access testkit.Log
}

func newGeneration(t *testing.T, backend string, loops int) *generation {
	g := new(generation)
	g.Server = &proxy.Server{Engine: &rondo.Engine{Backend: backend, NumLoops: loops}, AccessLog: g.access.Logger()}
	t.Cleanup(func() {
		g.Close()
		g.Engine.Close()
	})
	return g
}

// sockets returns the ends of a connection between two processes.
func sockets(t *testing.T) (ends [2]*net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "control")
		nc, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = nc.(*net.UnixConn)
	}
	return ends
}

// replace replaces a generation. The old engine ends in the background, when its connections have.
func (g *generation) replace(t *testing.T, next *generation, c proxy.Config) error {
	t.Helper()
	ends := sockets(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	took := make(chan error, 1)
	go func() { took <- next.TakeOver(ctx, ends[1], c) }()
	gave := g.HandOver(ctx, ends[0])
	return errors.Join(gave, <-took)
}

// mustReplace is replace, and shuts the old generation down.
func (g *generation) mustReplace(t *testing.T, next *generation, c proxy.Config) {
	t.Helper()
	if err := g.replace(t, next, c); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Engine.Shutdown(t.Context())
	}()
	t.Cleanup(func() { <-done })
}

// eachBackend runs a test on each backend of this system.
func eachBackend(t *testing.T, test func(t *testing.T, backend string)) {
	for _, backend := range pick.Names() {
		t.Run(backend, func(t *testing.T) { test(t, backend) })
	}
}

func configOf(address string, targets ...string) proxy.Config {
	pool := proxy.Pool{Name: "p"}
	for _, a := range targets {
		pool.Targets = append(pool.Targets, proxy.Target{Network: "tcp", Address: a})
	}
	return proxy.Config{Listeners: []proxy.Listener{{Network: "tcp", Address: address}}, Pools: []proxy.Pool{pool}}
}

// A peer of the streams tests: it sends a number of random bytes and the end of the stream, and
// wants others. Both are made from seeds.
func stream(nc net.Conn, sends, wants uint64, size int, pause func()) error {
	defer nc.Close()
	sent := make(chan error, 1)
	go func() {
		source, rest := rand.NewChaCha8(seedOf(sends)), size
		buf := make([]byte, 64<<10)
		for rest > 0 {
			p := buf[:min(rest, 1+int(source.Uint64()%uint64(len(buf))))]
			source.Read(p)
			if _, err := nc.Write(p); err != nil {
				sent <- err
				return
			}
			rest -= len(p)
			pause()
		}
		sent <- nc.(interface{ CloseWrite() error }).CloseWrite()
	}()
	source, rest := rand.NewChaCha8(seedOf(wants)), size
	buf, want := make([]byte, 64<<10), make([]byte, 64<<10)
	for rest > 0 {
		n := min(rest, 1+int(source.Uint64()%uint64(len(buf))))
		if _, err := io.ReadFull(nc, buf[:n]); err != nil {
			return fmt.Errorf("%d bytes before the end: %w", rest, err)
		}
		source.Read(want[:n])
		if string(buf[:n]) != string(want[:n]) {
			return fmt.Errorf("wrong bytes, at most %d before the end", rest)
		}
		rest -= n
		pause()
	}
	if n, err := nc.Read(buf); n > 0 || err != io.EOF {
		return fmt.Errorf("behind the last byte: %d, %w", n, err)
	}
	return <-sent
}

func seedOf(n uint64) (seed [32]byte) {
	seed[0], seed[1] = byte(n), byte(n>>8)
	return seed
}

// target serves streams: a connection says its number in one line, before all else.
func streamTarget(t *testing.T, size int, pause func()) (address string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup // so that a test that has failed before them is what is told
	t.Cleanup(func() {
		ln.Close()
		all.Wait()
	})
	all.Add(1)
	go func() {
		defer all.Done()
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			all.Add(1)
			go func() {
				defer all.Done()
				defer nc.Close()
				var number [2]byte
				if _, err := io.ReadFull(nc, number[:]); err != nil {
					t.Error("target:", err)
					return
				}
				n := uint64(number[0]) + uint64(number[1])<<8
				if err := stream(nc, 2*n+1, 2*n, size, pause); err != nil {
					t.Errorf("target of stream %d: %v", n, err)
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// Streams go through proxies that replace each other again and again, and no byte is lost. New
// clients come all the time.
func TestHandOverStreams(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		const size = 3 << 20
		streams, upgrades := 24, 8
		slow := func() {
			if rand.IntN(8) == 0 {
				time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond)
			}
		}
		config := configOf("127.0.0.1:0", streamTarget(t, size, slow))
		var all sync.WaitGroup
		t.Cleanup(all.Wait)
		now := newGeneration(t, backend, 2)
		if err := now.Apply(config); err != nil {
			t.Fatal(err)
		}
		address := now.Addrs()[0].String()
		start := func(n int) {
			all.Add(1)
			go func() {
				defer all.Done()
				nc, err := net.Dial("tcp", address)
				if err == nil {
					_, err = nc.Write([]byte{byte(n), byte(n >> 8)})
				}
				if err == nil {
					err = stream(nc, uint64(2*n), uint64(2*n+1), size, slow)
				}
				if err != nil {
					t.Errorf("client of stream %d: %v", n, err)
				}
			}()
		}
		for n := range streams {
			start(n)
		}
		for i := range upgrades {
			start(streams + i)
			next := newGeneration(t, backend, 1+i%3)
			now.mustReplace(t, next, config)
			now = next
		}
		all.Wait()
		testkit.Until(t, "all connections have ended", func() bool { return isIdle(now) })
	})
}

// isIdle reports whether a proxy has no connections, by all its counts.
func isIdle(g *generation) bool {
	s := g.Stats()
	open := int64(g.Engine.Stats().Open)
	for _, l := range s.Listeners {
		open += l.Open
	}
	for _, p := range s.Pools {
		for _, target := range p.Targets {
			open += target.Open
		}
	}
	return open == 0
}

// plainTarget passes its connections to the test.
func plainTarget(t *testing.T) (address string, conns chan *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	conns = make(chan *net.TCPConn, 100)
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			conns <- nc.(*net.TCPConn)
		}
	}()
	return ln.Addr().String(), conns
}

// say writes, and hears reads; both fail the test.
func say(t *testing.T, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, nc net.Conn, want string) {
	t.Helper()
	nc.SetReadDeadline(time.Now().Add(20 * time.Second))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

// Half-closed connections, resets, the access log and the counts outlive an upgrade.
func TestHandOverStates(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		old := newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		connect := func() (client, target *net.TCPConn) {
			client = testkit.Dial(t, old.Addrs()[0].String())
			say(t, client, "a")
			target = <-conns
			hear(t, target, "a")
			say(t, target, "b")
			hear(t, client, "b")
			return client, target
		}
		clientEnded, hisTarget := connect()
		clientEnded.CloseWrite()
		if _, err := hisTarget.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		hisClient, targetEnded := connect()
		targetEnded.CloseWrite()
		if _, err := hisClient.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		resets, hisTarget2 := connect()
		next := newGeneration(t, backend, 1)
		old.mustReplace(t, next, config)
		if n := old.Engine.Stats().Open; n != 0 {
			t.Errorf("the old process still has %d connections", n)
		}
		if n := next.Stats().Pools[0].Targets[0].Open; n != 3 {
			t.Errorf("the target has %d connections in the new process; want 3", n)
		}
		say(t, hisTarget, "answer")
		hisTarget.CloseWrite()
		hear(t, clientEnded, "answer")
		if _, err := clientEnded.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		say(t, hisClient, "more")
		hisClient.CloseWrite()
		hear(t, targetEnded, "more")
		if _, err := targetEnded.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		resets.SetLinger(0)
		resets.Close()
		if _, err := hisTarget2.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("behind a reset: %v", err)
		}
		testkit.Until(t, "all connections have ended", func() bool { return isIdle(next) })
		testkit.Until(t, "there are three lines in the log", func() bool { return strings.Count(next.access.String(), "\n") == 3 })
		lines := next.access.String()
		if strings.Count(lines, "msg=connection") != 3 || old.access.String() != "" {
			t.Errorf("the logs of both:\n%s\n%s", old.access.String(), lines)
		}
		want := fmt.Sprintf("client=%s listener=tcp://127.0.0.1:0 pool=p target=tcp://%s received=1 sent=7", clientEnded.LocalAddr(), address)
		if !strings.Contains(lines, want) {
			t.Errorf("the log lacks %q:\n%s", want, lines)
		}
	})
}

// A client that waits for a target, or whose ClientHello is not complete, goes along.
func TestHandOverClients(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		pool := proxy.Pool{Name: "p", Queue: 5, QueueTime: time.Minute, Targets: []proxy.Target{{Network: "tcp", Address: address, MaxConns: 1}}}
		config := proxy.Config{Pools: []proxy.Pool{pool}, Listeners: []proxy.Listener{
			{Network: "tcp", Address: "127.0.0.1:0"},
			{Network: "tcp4", Address: "127.0.0.1:0", Routes: []proxy.Route{{Names: []string{"a.example"}}}},
		}}
		old := newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		first := testkit.Dial(t, old.Addrs()[0].String())
		say(t, first, "first")
		target := <-conns
		hear(t, target, "first")
		queued := testkit.Dial(t, old.Addrs()[0].String())
		say(t, queued, "early")
		testkit.Until(t, "a client waits", func() bool { return old.Stats().Pools[0].Waiting == 1 })
		slow := testkit.Dial(t, old.Addrs()[1].String())
		hello := clientHello(t, "a.example")
		say(t, slow, hello[:50])
		testkit.Until(t, "the other client is there", func() bool { return old.Stats().Listeners[1].Open == 1 })

		next := newGeneration(t, backend, 2)
		old.mustReplace(t, next, config)
		first.Close()
		target.Close()
		target = <-conns
		hear(t, target, "early")
		queued.Close()
		target.Close()
		say(t, slow, hello[50:])
		target = <-conns
		hear(t, target, hello)
		slow.Close()
		target.Close()
		testkit.Until(t, "all connections have ended", func() bool { return isIdle(next) })
	})
}

// clientHello returns the first bytes of a TLS client.
func clientHello(t *testing.T, name string) string {
	t.Helper()
	a, b := net.Pipe()
	go tls.Client(a, &tls.Config{ServerName: name}).Handshake()
	buf := make([]byte, 16<<10)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	b.Close()
	return string(buf[:n])
}

// Connections whose TLS the old process has ended stay there, and go on.
func TestHandOverTLS(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		authority := testcert.New("test")
		config := configOf("127.0.0.1:0", address)
		config.Listeners[0].TLS = &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "localhost")}}
		old := newGeneration(t, backend, 1)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		address = old.Addrs()[0].String()
		connect := func() (net.Conn, net.Conn) {
			client, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				t.Fatal(err)
			}
			say(t, client, "hello")
			target := <-conns
			hear(t, target, "hello")
			return client, target
		}
		client, target := connect()
		next := newGeneration(t, backend, 1)
		old.mustReplace(t, next, config)
		if n := old.Engine.Stats().Open; n != 2 {
			t.Errorf("the old process has %d connections; want 2", n)
		}
		say(t, target, "answer")
		hear(t, client, "answer")
		client.Close()
		target.Close()
		client, target = connect() // by the new process
		client.Close()
		target.Close()
		testkit.Until(t, "all connections have ended", func() bool { return isIdle(next) && old.Engine.Stats().Open == 0 })
	})
}

// If the new process cannot serve, the old one goes on.
func TestHandOverInVain(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		old := newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		client := testkit.Dial(t, old.Addrs()[0].String())
		say(t, client, "a")
		target := <-conns
		hear(t, target, "a")

		bad := config
		bad.Listeners = append(bad.Listeners[:1:1], proxy.Listener{Network: "tcp", Address: address}) // in use
		if err := old.replace(t, newGeneration(t, backend, 1), bad); err == nil {
			t.Error("a process that cannot listen has taken over")
		}
		ends := sockets(t)
		say(t, ends[1], "this is no protocol of ours, and longer than a header")
		if err := old.HandOver(t.Context(), ends[0]); err == nil {
			t.Error("a stranger has taken over")
		}
		ends[1].Close()
		ends = sockets(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := old.HandOver(ctx, ends[0]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody has taken over: %v", err)
		}
		ends[1].Close()

		say(t, client, "b")
		hear(t, target, "b")
		other := testkit.Dial(t, old.Addrs()[0].String())
		say(t, other, "c")
		hear(t, <-conns, "c")
		if err := old.Apply(config); err != nil {
			t.Error(err)
		}
		old.mustReplace(t, newGeneration(t, backend, 1), config)
		say(t, client, "d")
		hear(t, target, "d")
	})
}

// The file of a unix socket goes on, and the last process removes it.
func TestHandOverUnix(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		dir, err := os.MkdirTemp("", "rondo")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		address, conns := plainTarget(t)
		config := configOf("", address)
		config.Listeners[0] = proxy.Listener{Network: "unix", Address: filepath.Join(dir, "socket")}
		now := newGeneration(t, backend, 2)
		if err := now.Apply(config); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			client, err := net.Dial("unix", config.Listeners[0].Address)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			say(t, client, "a")
			hear(t, <-conns, "a")
			next := newGeneration(t, backend, 1)
			now.mustReplace(t, next, config)
			now = next
		}
		now.Close()
		if _, err := os.Lstat(config.Listeners[0].Address); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket's file is still there: %v", err)
		}
	})
}

// A new process that ends in the middle costs the connections that it has got, and no others.
func TestHandOverCut(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		old := newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		const count = 400
		var clients, targets []*net.TCPConn
		for range count {
			c := testkit.Dial(t, old.Addrs()[0].String())
			say(t, c, "a")
			target := <-conns
			hear(t, target, "a")
			clients, targets = append(clients, c), append(targets, target)
		}
		ends := sockets(t)
		next := newGeneration(t, backend, 1)
		go next.TakeOver(t.Context(), ends[1], config)
		failed := make(chan error, 1)
		go func() { failed <- old.HandOver(t.Context(), ends[0]) }()
		testkit.Until(t, "connections have come", func() bool { return next.Engine.Stats().Open > 20 })
		next.Engine.Close()
		err := <-failed
		lost := 0
		for i, c := range clients {
			c.SetDeadline(time.Now().Add(20 * time.Second))
			targets[i].SetDeadline(time.Now().Add(20 * time.Second))
			io.WriteString(c, "b")
			if n, _ := targets[i].Read(make([]byte, 1)); n == 0 {
				lost++
			}
		}
		if err == nil { // it was too late
			return
		}
		t.Logf("%d of %d connections were lost; %v", lost, count, err)
		if open := int(old.Engine.Stats().Open); open != 2*(count-lost) {
			t.Errorf("the old process has %d connections; want %d", open, 2*(count-lost))
		}
		c := testkit.Dial(t, old.Addrs()[0].String())
		say(t, c, "a")
		hear(t, <-conns, "a")
	})
}
