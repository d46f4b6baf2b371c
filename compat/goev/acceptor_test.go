//go:build linux

package goev

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/testkit"
)

// Several pollers serve connections, of the acceptor's Reactor and of another one; output
// that a slow peer has not read waits, and its handler need have no OnWrite.
func TestEcho(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, others := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(network, others), func(t *testing.T) {
				accepts := reactor(t, EvPollNum(2))
				serves := accepts
				if others > 0 {
					serves = reactor(t, EvPollNum(others), EvPollReadBuffSize(4<<10))
				}
				var closed atomic.Int32
				at := acceptor(t, accepts, network, func() EvHandler {
					return &plain{handler{r: serves, read: echo, ended: func(*handler) { closed.Add(1) }}}
				})
				var conns []net.Conn
				for i := range 20 {
					c := dial(t, at)
					echoes(t, c, fmt.Sprintf("hello %d\n", i))
					conns = append(conns, c)
				}
				long := bytes.Repeat([]byte("0123456789abcde\n"), 256<<10)
				go conns[0].Write(long)
				got := make([]byte, len(long))
				if _, err := io.ReadFull(conns[0], got); err != nil || !bytes.Equal(got, long) {
					t.Fatal("the long echo differs:", err)
				}
				for _, c := range conns {
					c.Close()
				}
				until(t, "OnClose", func() bool { return closed.Load() == 20 })
			})
		}
	}
}

// plain is a handler with IOHandle's OnWrite.
type plain struct{ handler }

func (p *plain) OnWrite() bool { return p.IOHandle.OnWrite() }

func (p *plain) OnOpen() bool { return p.r.AddEvHandler(p, p.Fd(), EvIn) == nil }

// OnClose is called once: after OnOpen or OnRead has returned false, at the peer's end and
// at its reset, even if OnRead does not care.
func TestOnClose(t *testing.T) {
	r := reactor(t)
	for name, test := range map[string]struct {
		opened, read func(h *handler) bool
		client       func(c *net.TCPConn)
	}{
		"OnOpen": {opened: func(*handler) bool { return false }},
		"OnRead": {read: func(*handler) bool { return false }, client: func(c *net.TCPConn) { c.Write([]byte("x")) }},
		"end":    {read: echo, client: func(c *net.TCPConn) { c.CloseWrite() }},
		"reset": {read: func(h *handler) bool { h.Read(); return true }, client: func(c *net.TCPConn) {
			c.SetLinger(0)
			c.Close()
		}},
	} {
		closed := make(chan bool, 10)
		at := acceptor(t, r, "tcp", func() EvHandler {
			return &handler{r: r, opened: test.opened, read: test.read, ended: func(*handler) { closed <- true }}
		})
		c := dial(t, at).(*net.TCPConn)
		if test.client != nil {
			test.client(c)
		}
		receive(t, closed)
		io.Copy(io.Discard, c)
		time.Sleep(2 * time.Millisecond)
		if len(closed) > 0 {
			t.Errorf("%s: OnClose was called again", name)
		}
	}
}

// Several acceptors of one address, one for each poller, get connections.
func TestReusePort(t *testing.T) {
	r := reactor(t, EvPollNum(3))
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(testkit.FreeAddress(t)))
	var served [3]atomic.Int32
	for i := range served {
		a, err := NewAcceptor(r, at.String(), func() EvHandler {
			served[i].Add(1)
			return &handler{r: r, read: echo}
		}, ReusePort(true), ListenBacklog(64), ReuseAddr(true))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Destroy(a)
	}
	for range 100 {
		c := dial(t, at)
		echoes(t, c, "hello")
		c.Close()
	}
	for i := range served {
		if served[i].Load() == 0 {
			t.Errorf("acceptor %d got no connection of 100", i)
		}
	}
}

// NewAcceptor reports what it cannot listen on.
func TestAcceptorFails(t *testing.T) {
	r := reactor(t)
	at := acceptor(t, r, "tcp", nil)
	for _, addr := range []string{"", "8080", "localhost:8080", "127.0.0.1:x", "127.0.0.1:70000", "[::1]:80", "unix:", "unix:/nowhere/s", at.String()} {
		if _, err := NewAcceptor(r, addr, nil); err == nil {
			t.Errorf("%q is no error", addr)
		}
	}
}

// The pollers of a Reactor get about as many connections each, whatever the numbers of
// their descriptors are: the loop takes numbers too.
func TestPollersShare(t *testing.T) {
	const pollers, conns = 4, 40
	for name, apart := range map[string]bool{"one Reactor": false, "two": true} {
		serves := reactor(t, EvPollNum(pollers))
		accepts := serves
		if apart {
			accepts = reactor(t)
		}
		var mu sync.Mutex
		got := make(map[*poller]int)
		at := acceptor(t, accepts, "tcp", func() EvHandler {
			return &handler{r: serves, read: func(h *handler) bool {
				mu.Lock()
				got[h.entry.Load().poller]++
				mu.Unlock()
				return echo(h)
			}}
		})
		for range conns {
			echoes(t, dial(t, at), "x")
		}
		mu.Lock()
		for _, n := range got {
			if len(got) != pollers || n < conns/pollers-1 || n > conns/pollers+1 {
				t.Errorf("%s: %d of %d pollers have connections, one of them %d of %d", name, len(got), pollers, n, conns)
			}
		}
		mu.Unlock()
	}
}

// A descriptor that two Reactors watch is closed for both, and for the peer.
func TestTwoReactorsWatch(t *testing.T) {
	r, other := reactor(t), reactor(t)
	at := acceptor(t, r, "tcp", func() EvHandler {
		h := &handler{r: r, read: echo}
		h.opened = func(h *handler) bool {
			return other.AddEvHandler(&handler{}, h.Fd(), EvOutET) == nil && r.AddEvHandler(h, h.Fd(), EvIn) == nil
		}
		return h
	})
	c := dial(t, at).(*net.TCPConn)
	echoes(t, c, "hello")
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
}
