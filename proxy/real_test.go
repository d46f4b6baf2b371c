package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// onEach runs a test on each backend.
func onEach(t *testing.T, f func(t *testing.T, backend string)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// exchange sends text through the proxy, ends the stream, and wants the text back.
func exchange(address string, text []byte) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		c.Write(text)
		c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err == nil && !bytes.Equal(got, text) {
		err = fmt.Errorf("%d bytes of %d came back, or wrong ones", len(got), len(text))
	}
	return err
}

// Configurations change while clients come and long streams pass: no client notices.
func TestApplyUnderLoad(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		var targets []proxy.Target
		for range 3 {
			address := testkit.Listen(t, &rondo.Engine{Backend: backend, NumLoops: 1}, testkit.Echo)
			targets = append(targets, proxy.Target{Network: "tcp", Address: address})
		}
		bad := proxy.Target{Network: "tcp", Address: testkit.FreeAddress(t)}
		p := &proxy.Server{Engine: &rondo.Engine{Backend: backend, NumLoops: 3}, Logger: new(testkit.Log).Logger()}
		apply := func(b proxy.Balance, targets ...proxy.Target) {
			t.Helper()
			err := p.Apply(proxy.Config{
				Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:0"}},
				Pools:     []proxy.Pool{{Targets: targets, Balance: b}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		apply(proxy.RoundRobin, targets...)
		defer p.Engine.Close()
		address := p.Addrs()[0].String()

		long := make([]net.Conn, 10)
		for i := range long {
			long[i] = testkit.Dial(t, address)
		}
		const clients, each = 4, 25
		done := make(chan error, clients)
		for range clients {
			go func() {
				var err error
				for range each {
					err = errors.Join(err, exchange(address, bytes.Repeat([]byte("0123456789"), 3_000)))
				}
				done <- err
			}()
		}
		for ended := 0; ended < clients; {
			for i, b := range []proxy.Balance{proxy.LeastConns, proxy.SourceHash, proxy.RoundRobin} {
				apply(b, targets[i], bad)
				for _, c := range long {
					testkit.Echoes(t, c, "still there")
				}
				apply(b, targets...)
			}
			select {
			case err := <-done:
				if ended++; err != nil {
					t.Error(err)
				}
			default:
			}
		}
		for _, c := range long {
			c.Close()
		}
		p.Close()
		if err := p.Engine.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		for _, target := range p.Stats().Pools[0].Targets {
			if target.Open != 0 {
				t.Errorf("target %s still has %d connections", target.Address, target.Open)
			}
		}
	})
}

// Apply takes a socket that listens already, also again after a configuration without it.
func TestInherited(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		target := testkit.Listen(t, &rondo.Engine{Backend: backend, NumLoops: 1}, testkit.Echo)
		held, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		file, err := held.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		front := proxy.Listener{Network: "tcp", Address: held.Addr().String()}
		other := proxy.Listener{Network: "tcp", Address: "127.0.0.1:0"}
		var asked []string
		p := &proxy.Server{Engine: &rondo.Engine{Backend: backend, NumLoops: 2}, Logger: new(testkit.Log).Logger(),
			Inherited: func(network, address string) net.Listener {
				asked = append(asked, network+"://"+address)
				if address != front.Address {
					return nil
				}
				ln, err := net.FileListener(file)
				if err != nil {
					t.Error(err)
				}
				return ln
			}}
		defer p.Engine.Close()
		pools := []proxy.Pool{{Targets: []proxy.Target{{Network: "tcp", Address: target}}}}
		for _, listeners := range [][]proxy.Listener{{front, other}, {front}, {other}, {other, front}} {
			if err := p.Apply(proxy.Config{Listeners: listeners, Pools: pools}); err != nil {
				t.Fatal(err)
			}
			for _, a := range p.Addrs() {
				if err := exchange(a.String(), []byte("hello")); err != nil {
					t.Errorf("%v: %v", a, err)
				}
			}
		}
		at := "tcp://" + front.Address
		if want := fmt.Sprint([]string{at, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0", at}); fmt.Sprint(asked) != want {
			t.Errorf("asked for %v, want %v", asked, want)
		}
	})
}

// A client of TLS that has its answer says so, and closes: the proxy's own closing alert then
// meets a closed socket. That is no failure, and not logged as one.
func TestTLSClientHasItsAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		target := testkit.Listen(t, &rondo.Engine{Backend: backend, NumLoops: 1}, testkit.Echo)
		var access testkit.Log
		p := &proxy.Server{Engine: &rondo.Engine{Backend: backend, NumLoops: 1}, AccessLog: access.Logger(), Logger: new(testkit.Log).Logger()}
		err := p.Apply(proxy.Config{
			Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:0", TLS: certificate("a.test")}},
			Pools:     []proxy.Pool{{Targets: []proxy.Target{{Network: "tcp", Address: target}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Engine.Close()
		const clients = 30
		for range clients {
			c := tls.Client(testkit.Dial(t, p.Addrs()[0].String()), wants("a.test"))
			testkit.Echoes(t, c, "hello")
			c.Close()
		}
		// The counts of a connection come before its line.
		testkit.Until(t, "a line for each", func() bool { return strings.Count(access.String(), "\n") == clients })
		log := access.String()
		if n := strings.Count(log, "received=5 sent=5"); n != clients || strings.Contains(log, "error=") {
			t.Errorf("%d of %d lines are right:\n%s", n, clients, log)
		}
	})
}
