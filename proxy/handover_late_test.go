//go:build unix

package proxy_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo/proxy"
)

// Clients that a listener has accepted, and that come to their loops late since a loop is busy, go
// to the new process like all others.
func TestHandOverLateClients(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		config.Listeners = append(config.Listeners, proxy.Listener{Network: "tcp4", Address: "127.0.0.1:0"}) // which loop 1 accepts
		old, next := newGeneration(t, backend, 2), newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		slow := slowResolver{make(chan struct{})}
		asked := make(chan struct{})
		next.Engine.Resolver = askedResolver{slow, sync.OnceFunc(func() { close(asked) })}
		_, port, _ := net.SplitHostPort(address)
		named := configOf("127.0.0.1:0", "name.example:"+port)
		named.Listeners = config.Listeners
		ends := sockets(t)
		took, gave := make(chan error, 1), make(chan error, 1)
		go func() { took <- next.TakeOver(t.Context(), ends[1], named) }()
		go func() { gave <- old.HandOver(t.Context(), ends[0]) }()
		<-asked // the new process has the sockets, and does not listen yet
		busy := make(chan struct{})
		slices.Collect(old.Engine.Loops())[1].Post(func() { <-busy })
		const count = 20
		for range count {
			c, err := net.Dial("tcp", old.Addrs()[1].String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			say(t, c, "a")
		}
		time.Sleep(50 * time.Millisecond) // they may be accepted now
		close(slow.may)
		time.Sleep(200 * time.Millisecond) // in which the other loop finds that nothing comes
		close(busy)
		if err := errors.Join(<-gave, <-took); err != nil {
			t.Fatal(err)
		}
		if n := old.Engine.Stats().Open; n > 0 {
			t.Fatalf("%d connections stay in the old process", n)
		}
		old.Engine.Shutdown(t.Context()) // resets clients without a target
		for range count {
			select {
			case c := <-conns:
				hear(t, c, "a")
			case <-time.After(20 * time.Second):
				t.Fatal("a client has no target")
			}
		}
	})
}

// askedResolver says when it is asked.
type askedResolver struct {
	slowResolver
	asked func()
}

func (r askedResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	r.asked()
	return r.slowResolver.LookupNetIP(ctx, network, host)
}

// A process that connects and says nothing does not keep the proxy from a new configuration.
func TestHandOverToASilentOne(t *testing.T) {
	address, conns := plainTarget(t)
	old := newGeneration(t, "", 2)
	if err := old.Apply(configOf("127.0.0.1:0", address)); err != nil {
		t.Fatal(err)
	}
	ends := sockets(t)
	gave := make(chan error, 1)
	go func() { gave <- old.HandOver(t.Context(), ends[0]) }()
	time.Sleep(20 * time.Millisecond) // most likely it waits
	if err := old.Apply(configOf("127.0.0.1:0", address)); err != nil {
		t.Error(err)
	}
	next := newGeneration(t, "", 2)
	if err := next.TakeOver(t.Context(), ends[1], configOf("127.0.0.1:0", address)); err != nil {
		t.Error(err)
	}
	if err := <-gave; err != nil {
		t.Error(err)
	}
	talkers(t, next, conns, 1)
}

// The file of a socket that the service manager has made stays, whatever process ends.
func TestHandOverLeavesFilesOfOthers(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		path := filepath.Join(socketDir(t), "socket")
		systemd, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
		if err != nil {
			t.Fatal(err)
		}
		defer systemd.Close()
		address, conns := plainTarget(t)
		config := configOf("", address)
		config.Listeners[0] = proxy.Listener{Network: "unix", Address: path}
		now := newGeneration(t, backend, 2)
		now.Inherited = func(string, string) net.Listener {
			f, err := systemd.File()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ln, err := net.FileListener(f)
			if err != nil {
				t.Fatal(err)
			}
			return ln
		}
		if err := now.Apply(config); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			next := newGeneration(t, backend, 2)
			now.mustReplace(t, next, config)
			now = next
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			say(t, c, "a")
			hear(t, <-conns, "a")
			c.Close()
		}
		now.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("the service manager's socket has lost its file: %v", err)
		}
	})
}
