package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// open makes a proxy on a backend, with one target.
func open(t *testing.T, backend, target string, change func(*proxy.Pool)) (*proxy.Server, string) {
	t.Helper()
	p := &proxy.Server{Engine: &rondo.Engine{Backend: backend, NumLoops: 2}, Logger: new(testkit.Log).Logger()}
	pool := proxy.Pool{Targets: []proxy.Target{{Network: "tcp", Address: target}}}
	if change != nil {
		change(&pool)
	}
	if err := p.Apply(proxy.Config{Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:0"}}, Pools: []proxy.Pool{pool}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Engine.Close() })
	return p, p.Addrs()[0].String()
}

// gone waits until the proxy has no connections.
func gone(t *testing.T, p *proxy.Server) {
	t.Helper()
	testkit.Until(t, "the end of all connections", func() bool {
		s := p.Stats()
		return s.Listeners[0].Open == 0 && s.Pools[0].Targets[0].Open == 0 && p.Engine.Stats().Open == 0
	})
}

// Many clients connect at once, and each gets its bytes. RONDO_CLIENTS is how many.
func TestManyAtOnce(t *testing.T) {
	clients := 500
	if n, err := strconv.Atoi(os.Getenv("RONDO_CLIENTS")); err == nil {
		clients = n
	}
	onEach(t, func(t *testing.T, backend string) {
		target := testkit.Listen(t, &rondo.Engine{Backend: backend, NumLoops: 1}, testkit.Echo)
		p, address := open(t, backend, target, nil)
		conns := make([]net.Conn, clients)
		done := make(chan error, clients)
		for i := range conns {
			go func() {
				var err error
				conns[i], err = net.Dial("tcp", address)
				done <- err
			}()
		}
		for range conns {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range conns {
			c.SetDeadline(time.Now().Add(time.Minute))
			testkit.Echoes(t, c, "hello")
		}
		if n := p.Stats().Pools[0].Targets[0].Open; n != int64(clients) {
			t.Errorf("the target has %d connections", n)
		}
		for _, c := range conns {
			c.Close()
		}
		gone(t, p)
	})
}

// accepting is a target of package net. Its connections are served by f, which may block.
func accepting(t *testing.T, f func(*net.TCPConn)) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(time.Minute))
			go f(c.(*net.TCPConn))
		}
	}()
	return ln.Addr().String()
}

// What targets and clients may do to each other.
func TestAbuse(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789"), 100_000)
	isReset := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
	onEach(t, func(t *testing.T, backend string) {
		t.Run("the target ends its stream first", func(t *testing.T) {
			got := make(chan []byte, 1)
			p, address := open(t, backend, accepting(t, func(c *net.TCPConn) {
				c.Write(big)
				c.CloseWrite()
				b, _ := io.ReadAll(c)
				got <- b
				c.Close()
			}), nil)
			c := testkit.Dial(t, address)
			if b, err := io.ReadAll(c); err != nil || !bytes.Equal(b, big) {
				t.Errorf("the client got %d bytes, %v", len(b), err)
			}
			c.Write(big)
			c.CloseWrite()
			if b := <-got; !bytes.Equal(b, big) {
				t.Errorf("the target got %d bytes", len(b))
			}
			c.Close()
			gone(t, p)
		})
		t.Run("the target dies in mid-stream", func(t *testing.T) {
			p, address := open(t, backend, accepting(t, func(c *net.TCPConn) {
				c.Write(big[:1000])
				io.ReadFull(c, make([]byte, 5))
				c.SetLinger(0)
				c.Close()
			}), nil)
			c := testkit.Dial(t, address)
			io.WriteString(c, "hello")
			b, err := io.ReadAll(c)
			if !isReset(err) || !bytes.Equal(b, big[:len(b)]) {
				t.Errorf("the client got %d bytes, %v; want a reset", len(b), err)
			}
			gone(t, p)
		})
		t.Run("the client resets", func(t *testing.T) {
			failed := make(chan error, 1)
			p, address := open(t, backend, accepting(t, func(c *net.TCPConn) {
				_, err := io.ReadAll(c)
				failed <- err
				c.Close()
			}), nil)
			c := testkit.Dial(t, address)
			c.Write(big[:1000])
			testkit.Until(t, "a connection", func() bool { return p.Stats().Pools[0].Targets[0].Conns == 1 })
			c.SetLinger(0)
			c.Close()
			if err := <-failed; !isReset(err) {
				t.Errorf("the target read %v, want a reset", err)
			}
			gone(t, p)
		})
		t.Run("nobody says anything", func(t *testing.T) {
			p, address := open(t, backend, accepting(t, func(c *net.TCPConn) { io.ReadAll(c) }), func(p *proxy.Pool) { p.Idle = 50 * time.Millisecond })
			if _, err := testkit.Dial(t, address).Read(make([]byte, 1)); !isReset(err) {
				t.Errorf("the client read %v, want a reset", err)
			}
			gone(t, p)
		})
		t.Run("slow readers", func(t *testing.T) {
			p, address := open(t, backend, accepting(t, func(c *net.TCPConn) {
				go c.Write(big)
				time.Sleep(50 * time.Millisecond)
				io.CopyN(io.Discard, c, int64(len(big)))
				c.Close()
			}), nil)
			c := testkit.Dial(t, address)
			go c.Write(big)
			time.Sleep(100 * time.Millisecond)
			b := make([]byte, len(big))
			if n, err := io.ReadFull(c, b); err != nil || !bytes.Equal(b, big) {
				t.Errorf("the client got %d bytes, %v", n, err)
			}
			c.Close()
			gone(t, p)
		})
	})
}
