//go:build unix

package proxy_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// A connection that outlives several processes keeps its target, and its time limits: it began
// before the last ones did.
func TestHandOverTwice(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		now := newGeneration(t, backend, 2)
		if err := now.Apply(config); err != nil {
			t.Fatal(err)
		}
		clients, targets := talkers(t, now, conns, 2)
		for range 3 {
			time.Sleep(30 * time.Millisecond) // more than a process takes to start
			next := newGeneration(t, backend, 2)
			now.mustReplace(t, next, config)
			now = next
			if n := now.Stats().Pools[0].Targets[0].Open; n != 2 {
				t.Errorf("the target has %d connections; want 2", n)
			}
		}
		goesOn(t, now, conns, clients, targets)
		clients[0].Close()
		targets[0].Close()
		testkit.Until(t, "a line in the log", func() bool { return strings.Contains(now.access.String(), "target=tcp://"+address) })
		config.Pools[0].Limit = 50 * time.Millisecond
		next := newGeneration(t, backend, 2)
		now.mustReplace(t, next, config)
		if _, err := clients[1].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the limit the client reads %v", err)
		}
	})
}

// A client that waits for a place does not overtake the connections that have the places.
func TestHandOverKeepsLimits(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		pool := &config.Pools[0]
		pool.Queue, pool.QueueTime, pool.Targets[0].MaxConns = 50, time.Minute, 30
		now := newGeneration(t, backend, 3)
		if err := now.Apply(config); err != nil {
			t.Fatal(err)
		}
		clients, targets := talkers(t, now, conns, 30)
		const waiting = 20
		for range waiting {
			say(t, testkit.Dial(t, now.Addrs()[0].String()), "x")
		}
		testkit.Until(t, "all wait", func() bool { return now.Stats().Pools[0].Waiting == waiting })
		for range 5 {
			next := newGeneration(t, backend, 3)
			now.mustReplace(t, next, config)
			now = next
			testkit.Until(t, "all wait again", func() bool { return now.Stats().Pools[0].Waiting == waiting })
			if s := now.Stats().Pools[0]; s.Targets[0].Open != 30 || s.Targets[0].Conns != 0 {
				t.Fatalf("the counts are %+v", s)
			}
		}
		select {
		case <-conns:
			t.Error("the target has more connections than it may")
		default:
		}
		clients[0].Close()
		targets[0].Close()
		hear(t, <-conns, "x")
	})
}

// The file of a unix socket that the new configuration lacks goes away.
func TestHandOverWithoutAListener(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		dir := socketDir(t)
		address, _ := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		less := config
		config.Listeners = append(config.Listeners, proxy.Listener{Network: "unix", Address: filepath.Join(dir, "a")}, proxy.Listener{Network: "unix", Address: filepath.Join(dir, "b")})
		less.Listeners = config.Listeners[:2:2]
		now := newGeneration(t, backend, 2)
		if err := now.Apply(config); err != nil {
			t.Fatal(err)
		}
		for _, c := range []proxy.Config{config, less, less} {
			next := newGeneration(t, backend, 2)
			now.mustReplace(t, next, c)
			now = next
		}
		if _, err := os.Lstat(filepath.Join(dir, "b")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file of a listener that has gone is still there: %v", err)
		}
		if _, err := net.Dial("unix", filepath.Join(dir, "a")); err != nil {
			t.Error(err)
		}
	})
}

// Listeners of which the system chose the ports keep them, each one its own.
func TestHandOverAnyPort(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		var config proxy.Config
		var targets []chan *net.TCPConn
		for _, name := range []string{"a", "b", "c"} {
			address, conns := plainTarget(t)
			c := configOf("127.0.0.1:0", address)
			c.Pools[0].Name, c.Listeners[0].Pool = name, name
			config.Listeners, config.Pools = append(config.Listeners, c.Listeners...), append(config.Pools, c.Pools...)
			targets = append(targets, conns)
		}
		old, next := newGeneration(t, backend, 2), newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		addrs := old.Addrs()
		old.mustReplace(t, next, config)
		for i, a := range next.Addrs() {
			if a.String() != addrs[i].String() {
				t.Errorf("listener %d is at %v, and was at %v", i, a, addrs[i])
			}
			say(t, testkit.Dial(t, a.String()), "a")
			hear(t, <-targets[i], "a")
		}
	})
}

// A listener may have more sockets than a message.
func TestHandOverManyLoops(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		old, next := newGeneration(t, backend, 70), newGeneration(t, backend, 1)
		old.Engine.Balance = rondo.ReusePort
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		clients, targets := talkers(t, old, conns, 50)
		old.mustReplace(t, next, config)
		goesOn(t, next, conns, clients, targets)
	})
}

// A proxy that listens no more still counts.
func TestStatsOfAClosedServer(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		g := newGeneration(t, backend, 2)
		if err := g.Apply(configOf("127.0.0.1:0", address)); err != nil {
			t.Fatal(err)
		}
		clients, _ := talkers(t, g, conns, 3)
		g.Close()
		if s := g.Stats(); len(s.Listeners) != 1 || s.Listeners[0].Open != 3 || s.Listeners[0].Accepted != 3 {
			t.Errorf("the counts of a closed proxy are %+v", s.Listeners)
		}
		for _, c := range clients {
			c.Close()
		}
	})
}
