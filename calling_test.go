package rondo_test

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// TestCallingOtherEngine: what waits for a loop does not wait on a loop of another
// engine: that may be waiting for this one.
func TestCallingOtherEngine(t *testing.T) {
	a, b := &rondo.Engine{NumLoops: 1}, &rondo.Engine{NumLoops: 1}
	for _, e := range []*rondo.Engine{a, b} {
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		defer e.Close()
	}
	on := func(e *rondo.Engine, f func()) {
		for l := range e.Loops() {
			done := make(chan struct{})
			l.Post(func() { defer close(done); f() })
			<-done
		}
	}
	serve := func(*rondo.Conn) rondo.Handler { return nil }
	discard := rondo.PacketHandlerFunc(func(*rondo.PacketConn, []byte, netip.AddrPort) {})
	calls := map[string]func(){
		"Listen":       func() { b.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, serve) },
		"ListenPacket": func() { b.ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, discard) },
		"DialPacket":   func() { b.DialPacket("udp", "", "127.0.0.1:1", rondo.SocketOptions{}, discard) },
		"Dial":         func() { b.Dial(context.Background(), "tcp", "127.0.0.1:1", rondo.SocketOptions{}, serve) },
		"Attach":       func() { b.Attach(&net.TCPConn{}, serve) },
		"Wait":         func() { b.Wait() },
	}
	on(a, func() {
		for name, call := range calls {
			func() {
				defer func() {
					if text, _ := recover().(string); !strings.Contains(text, "Engine."+name+" was called on loop 0 of another engine") {
						t.Errorf("%s: panic %q", name, text)
					}
				}()
				call()
			}()
		}
	})
	// Each closes the other, at the same time.
	var begun sync.WaitGroup
	begun.Add(2)
	for _, pair := range [][2]*rondo.Engine{{a, b}, {b, a}} {
		go on(pair[0], func() {
			begun.Done()
			begun.Wait()
			pair[1].Close()
		})
	}
	begun.Wait()
	a.Wait()
	b.Wait()
}

// TestCallingInAnIterator: a handler may use iter.Pull, whose coroutine is another
// goroutine. What waits for loops does not wait there either.
func TestCallingInAnIterator(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 2}
			c := connTo(t, e, func(*rondo.Conn) rondo.Handler {
				return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) {
					next, stop := iter.Pull(func(yield func(string) bool) {
						defer func() { yield(fmt.Sprint(recover())) }()
						ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo)
						if err == nil {
							err = ln.Close()
						}
						if err != nil || e.Close() != nil {
							t.Errorf("in an iterator: %v", err)
						}
						e.Wait()
					})
					defer stop()
					if text, _ := next(); !strings.Contains(text, "Engine.Wait was called on loop") {
						t.Errorf("in an iterator Engine.Wait panicked with %s", text)
					}
					return 0, nil
				})
			})
			c.Write([]byte("x"))
			e.Wait()
		})
	}
}

// TestCallingInOthersIterator: in an iterator of another goroutine's they do wait.
func TestCallingInOthersIterator(t *testing.T) {
	var closed atomic.Bool
	e := &rondo.Engine{NumLoops: 1}
	c := connTo(t, e, func(*rondo.Conn) rondo.Handler { return closing{&closed} })
	for range 100 { // the loop is in and out of iterators of its own
		echoes(t, c, "x")
	}
	next, stop := iter.Pull(func(yield func(error) bool) { yield(e.Close()) })
	defer stop()
	if err, _ := next(); err != nil || !closed.Load() {
		t.Errorf("Close returned %v before the end", err)
	}
}

type closing struct{ was *atomic.Bool }

func (closing) Data(c *rondo.Conn, in []byte) (int, error) {
	next, stop := iter.Pull(func(yield func(int) bool) {
		n, _ := c.Write(in)
		yield(n)
	})
	defer stop()
	n, _ := next()
	return n, nil
}

func (h closing) Closed(*rondo.Conn, error) {
	time.Sleep(20 * time.Millisecond)
	h.was.Store(true)
}
