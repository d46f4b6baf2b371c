package relay_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/buf"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/relay"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

func TestMain(m *testing.M) {
	buf.Watch = &held
	m.Run()
}

// held counts the bytes of the buffers that the loops of all engines have taken from their
// pools.
var held watcher

type watcher struct{ bytes atomic.Int64 }

func (w *watcher) Got(b []byte)     { w.bytes.Add(int64(cap(b))) }
func (w *watcher) PutBack(b []byte) { w.bytes.Add(-int64(cap(b))) }

// onEach runs a test on each backend.
func onEach(t *testing.T, f func(t *testing.T, backend string)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// proxy serves clients by Dial, and returns a channel with the ends.
func proxy(t testing.TB, e *rondo.Engine, server string, filters ...rondo.FilterOpenFunc) (address string, ends chan relay.End) {
	ends = make(chan relay.End, 100)
	return testkit.Listen(t, e, func(c *rondo.Conn) rondo.Handler {
		return relay.Dial(c, "tcp", server, rondo.SocketOptions{}, relay.Options{Done: func(e relay.End) { ends <- e }}, filters...)
	}), ends
}

// listener is a server of package net, for one connection after the other.
func listener(t testing.TB) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func accept(t testing.TB, ln net.Listener) *net.TCPConn {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c.(*net.TCPConn)
}

// Many clients, on several loops.
func TestManyLoops(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		server := testkit.Listen(t, &rondo.Engine{Backend: backend, NumLoops: 2}, testkit.Echo)
		e := &rondo.Engine{Backend: backend, NumLoops: 3}
		address, ends := proxy(t, e, server)
		const clients = 30
		done := make(chan error, clients)
		for range clients {
			go func() {
				c, err := net.Dial("tcp", address)
				if err != nil {
					done <- err
					return
				}
				defer c.Close()
				want := bytes.Repeat([]byte("0123456789"), 50_000)
				go func() {
					c.Write(want)
					c.(*net.TCPConn).CloseWrite()
				}()
				got, err := io.ReadAll(c)
				if err == nil && !bytes.Equal(got, want) {
					err = errors.New("wrong bytes")
				}
				done <- err
			}()
		}
		for range clients {
			if err := <-done; err != nil {
				t.Error(err)
			}
			if end := <-ends; end.Err != nil || end.FromA != 500_000 || end.FromB != 500_000 {
				t.Errorf("the end is %+v", end)
			}
		}
		if err := e.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A client with TLS and a server without, and the other way round.
func TestTLSOnOneSide(t *testing.T) {
	a := testcert.New("relay")
	server := &tls.Config{Certificates: []tls.Certificate{a.Issue(testcert.ECDSA, "relay.test")}}
	client := &tls.Config{RootCAs: a.Pool(), ServerName: "relay.test"}
	text := strings.Repeat("over TLS and back. ", 50_000)
	talk := func(t *testing.T, c net.Conn, ends chan relay.End) {
		t.Helper()
		c.SetDeadline(time.Now().Add(time.Minute))
		go func() {
			io.WriteString(c, text)
			c.(interface{ CloseWrite() error }).CloseWrite()
		}()
		if got, err := io.ReadAll(c); err != nil || string(got) != text {
			t.Errorf("%d bytes of %d came back: %v", len(got), len(text), err)
		}
		c.Close()
		if end := <-ends; end.Err != nil || end.FromA != int64(len(text)) || end.FromB != int64(len(text)) {
			t.Errorf("the end is %+v", end)
		}
	}
	onEach(t, func(t *testing.T, backend string) {
		plain := testkit.Listen(t, &rondo.Engine{Backend: backend}, testkit.Echo)
		ends := make(chan relay.End, 1)
		e := &rondo.Engine{Backend: backend}
		address := testkit.Listen(t, e, rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
			return relay.Dial(c, "tcp", plain, rondo.SocketOptions{}, relay.Options{Done: func(e relay.End) { ends <- e }})
		}, rtls.Server(server)))
		c, err := tls.Dial("tcp", address, client)
		if err != nil {
			t.Fatal(err)
		}
		talk(t, c, ends)

		secure := testkit.Listen(t, &rondo.Engine{Backend: backend}, rondo.Filtered(testkit.Echo, rtls.Server(server)))
		address, ends = proxy(t, &rondo.Engine{Backend: backend}, secure, rtls.Client(client))
		talk(t, testkit.Dial(t, address), ends)
	})
}

// A server that refuses: the client sees a reset, soon.
func TestRefused(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		ln := listener(t)
		ln.Close()
		address, ends := proxy(t, &rondo.Engine{Backend: backend}, ln.Addr().String())
		c, err := net.Dial("tcp", address)
		if err == nil { // otherwise the reset was faster
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || err == io.EOF && runtime.GOOS != "windows" || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the client read %d bytes, %v", n, err)
			}
		}
		end := <-ends
		if end.By != nil || end.Err == nil || runtime.GOOS != "windows" && !errors.Is(end.Err, syscall.ECONNREFUSED) {
			t.Errorf("the end is %+v", end)
		}
	})
}

// On the simulated network: what may happen while the server is being dialed.
func TestDialing(t *testing.T) {
	options := func(ends *[]relay.End) relay.Options {
		return relay.Options{Done: func(e relay.End) { *ends = append(*ends, e) }}
	}
	for _, what := range []string{"silent server", "client resets", "client is closed", "client is taken", "Shutdown", "Close"} {
		t.Run(what, func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{})
			n.Blackhole("192.0.2.1")
			e := &rondo.Engine{}
			var ends []relay.End
			var proxied *rondo.Conn
			ln := n.Listen(e, "tcp", ":0", func(c *rondo.Conn) rondo.Handler {
				proxied = c
				return relay.Dial(c, "tcp", "192.0.2.1:80", rondo.SocketOptions{DialTimeout: 10 * time.Second}, options(&ends))
			})
			c := n.Dial("tcp", ln.Addr().String())
			c.Send("hello")
			n.Advance(time.Second)
			do := func(f func(*rondo.Conn)) {
				proxied.Ref().Do(f)
				n.Run()
			}
			switch what {
			case "client resets":
				c.Reset() // a paused connection does not notice
			case "client is closed":
				do((*rondo.Conn).Close)
				c.Close()
			case "client is taken":
				do(func(c *rondo.Conn) {
					c.SetHandler(rondo.HandlerFunc((*rondo.Conn).Write))
					c.Resume()
				})
				c.Expect("hello")
				c.Close()
			case "Shutdown":
				n.Await(func() { e.Shutdown(n.Timeout(time.Minute)) })
			case "Close":
				n.Await(func() { e.Close() })
			}
			n.Advance(time.Minute)
			if len(ends) != 1 || ends[0].Err == nil {
				t.Errorf("the ends are %+v, want one with an error", ends)
			}
		})
	}
}

// Join refuses what cannot be joined, by a panic that says why.
func TestJoinPanics(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	e := &rondo.Engine{NumLoops: 2}
	var conns []*rondo.Conn
	ln := n.Listen(e, "tcp", ":0", func(c *rondo.Conn) rondo.Handler {
		conns = append(conns, c)
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	for range 2 {
		n.Dial("tcp", ln.Addr().String())
		n.Run()
	}
	a, b := conns[0], conns[1]
	if a.Ref().Loop() == b.Ref().Loop() {
		t.Fatal("both connections are on one loop")
	}
	for want, join := range map[string]func(){
		"on different loops":     func() { relay.Join(a, b, relay.Options{}) },
		"are the same":           func() { relay.Join(a, a, relay.Options{}) },
		"a connection is nil":    func() { relay.Join(a, nil, relay.Options{}) },
		"Join: a connection is ": func() { relay.Join(nil, b, relay.Options{}) },
	} {
		var got any
		a.Ref().Do(func(*rondo.Conn) {
			defer func() { got = recover() }()
			join()
		})
		n.Run()
		if s, _ := got.(string); !strings.Contains(s, want) {
			t.Errorf("the panic is %v, want %q", got, want)
		}
	}
}

// connected returns the two peers of a relay.
func connected(t testing.TB, e *rondo.Engine) (client, server *net.TCPConn, ends chan relay.End) {
	t.Helper()
	ln := listener(t)
	address, ends := proxy(t, e, ln.Addr().String())
	client = testkit.Dial(t, address)
	return client, accept(t, ln), ends
}

// A stream goes through a pipe where the system has splice(2), messages do not.
func TestStreamsArePiped(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		ln := listener(t)
		pairs := make(chan *relay.Pair, 1)
		e := &rondo.Engine{Backend: backend, NumLoops: 1}
		address := testkit.Listen(t, e, func(client *rondo.Conn) rondo.Handler {
			client.Pause()
			client.Loop().Dial("tcp", ln.Addr().String(), rondo.SocketOptions{}, func(server *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					t.Error(err)
					return nil
				}
				pairs <- relay.Join(client, server, relay.Options{Idle: time.Minute})
				return server.Handler()
			})
			return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) { return 0, nil })
		})
		client, pair := testkit.Dial(t, address), <-pairs
		server := accept(t, ln)
		piped := func() (there, back bool) {
			conn, _ := pair.Conns()
			done := make(chan struct{})
			conn.Ref().Do(func(*rondo.Conn) { there, back = pair.Piped(); close(done) })
			<-done
			return there, back
		}
		want := make([]byte, 16<<20)
		for i := range want {
			want[i] = byte(i>>10 ^ i)
		}
		go client.Write(want)
		got := make([]byte, len(want))
		seen := false
		for n := 0; n < len(got); n += 1 << 20 {
			if _, err := io.ReadFull(server, got[n:n+1<<20]); err != nil {
				t.Fatal(err)
			}
			there, back := piped()
			seen = seen || there
			if back {
				t.Error("a direction without a stream receives into a pipe")
			}
		}
		if !bytes.Equal(got, want) {
			t.Error("wrong bytes came")
		}
		if has := runtime.GOOS == "linux" && (backend == "epoll" || backend == "poll"); seen != has {
			t.Errorf("the stream went through a pipe: %v, want %v", seen, has)
		}
		for range 2 { // the first message may come behind the stream
			time.Sleep(10 * time.Millisecond)
			io.WriteString(client, "a message")
			if _, err := io.ReadFull(server, got[:9]); err != nil {
				t.Fatal(err)
			}
		}
		if there, _ := piped(); there {
			t.Error("messages go through a pipe")
		}
	})
}

// A peer that never reads costs a direction at most 128 KB of buffers, and the other
// direction nothing.
func TestStalledMemory(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		before := held.bytes.Load()
		client, server, _ := connected(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		server.SetReadBuffer(64 << 10)
		block := make([]byte, 10_000) // no divisor of a receive
		most := int64(0)
		for range 20_000 {
			client.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			_, err := client.Write(block)
			most = max(most, held.bytes.Load()-before)
			if err != nil && most >= 1000 { // else a busy machine has not run the loop
				break
			}
		}
		if most > 128_000 || most < 1000 {
			t.Errorf("a stalled stream held %d bytes of buffers, want 1000 to 128000", most)
		}
		client.Close()
		server.Close()
	})
}

// An idle pair takes less than 1 KB beside its connections.
func TestIdleMemory(t *testing.T) {
	const pairs = 500
	n := rondotest.New(t, rondotest.Options{})
	var conns []*rondo.Conn
	ln := n.Listen(&rondo.Engine{}, "tcp", ":0", func(c *rondo.Conn) rondo.Handler {
		conns = append(conns, c)
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	for range 2 * pairs {
		n.Dial("tcp", ln.Addr().String())
	}
	n.Run()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	begin := heap()
	conns[0].Ref().Do(func(*rondo.Conn) {
		for i := 0; i < len(conns); i += 2 {
			relay.Join(conns[i], conns[i+1], relay.Options{Idle: time.Hour, Limit: 2 * time.Hour})
		}
	})
	n.Run()
	size := (int64(heap()) - int64(begin)) / pairs
	t.Logf("%d bytes a pair", size)
	if size > 1000 {
		t.Errorf("a pair at rest takes %d bytes, want at most 1000", size)
	}
	runtime.KeepAlive(conns)
}

// Messages that are passed on allocate nothing.
func TestAllocs(t *testing.T) {
	client, server, _ := connected(t, &rondo.Engine{NumLoops: 1})
	p := make([]byte, 1000)
	trip := func() {
		client.Write(p)
		io.ReadFull(server, p)
		server.Write(p)
		io.ReadFull(client, p)
	}
	for range 100 {
		trip()
	}
	if n := testing.AllocsPerRun(500, trip); n >= 1 {
		t.Errorf("a message there and back allocates %v times", n)
	}
}
