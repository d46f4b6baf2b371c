package rondo_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

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
