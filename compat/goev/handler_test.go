//go:build linux

package goev

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/compat/goev/netfd"
)

const patience = 2 * time.Minute

// reactor makes a Reactor that runs, and ends with the test.
func reactor(t *testing.T, opts ...Option) *Reactor {
	t.Helper()
	r, err := NewReactor(opts...)
	if err != nil {
		t.Fatal(err)
	}
	run(t, r)
	return r
}

func run(t *testing.T, r *Reactor) {
	ended := make(chan error, 1)
	go func() { ended <- r.Run() }()
	t.Cleanup(func() {
		r.engine.Close()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
	})
}

// acceptor listens on a port or a socket of its own, and returns its address.
func acceptor(t *testing.T, r *Reactor, network string, f func() EvHandler, opts ...Option) net.Addr {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = "unix:" + filepath.Join(t.TempDir(), "s")
	}
	a, err := NewAcceptor(r, addr, f, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Destroy(a) })
	if network == "unix" {
		return &net.UnixAddr{Net: "unix", Name: strings.TrimPrefix(addr, "unix:")}
	}
	at, err := net.ResolveTCPAddr("tcp", netfd.LocalAddr(a.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func dial(t *testing.T, to net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

func echoes(t *testing.T, c net.Conn, s string) {
	t.Helper()
	io.WriteString(c, s)
	p := make([]byte, len(s))
	if n, err := io.ReadFull(c, p); string(p) != s {
		t.Fatalf("the echo of %q is %q, %v", s, p[:n], err)
	}
}

// receive waits for a value.
func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("nothing comes")
	}
	return v
}

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for begin := time.Now(); !cond(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("waited in vain for", what)
		}
	}
}

// A handler is made of functions. Those that are nil do nothing, and go on; nil opened
// adds the handler to r.
type handler struct {
	ConnectPoolItem

	r       *Reactor
	opened  func(h *handler) bool
	read    func(h *handler) bool
	write   func(h *handler) bool
	timeout func(h *handler) bool
	drained func(h *handler)
	refused func(error)
	ended   func(h *handler)
}

func (h *handler) OnOpen() bool {
	if h.opened != nil {
		return h.opened(h)
	}
	return h.r.AddEvHandler(h, h.Fd(), EvIn) == nil
}

func (h *handler) OnRead() bool { return h.read == nil || h.read(h) }

func (h *handler) OnWrite() bool {
	if h.write != nil {
		return h.write(h)
	}
	h.AsyncOrderedFlush(h)
	return true
}

func (h *handler) OnTimeout(int64) bool { return h.timeout(h) }

func (h *handler) OnWriteBufferDrained() {
	if h.drained != nil {
		h.drained(h)
	}
}

func (h *handler) OnConnectFail(err error) { h.refused(err) }

func (h *handler) OnClose() {
	if h.ended != nil {
		h.ended(h)
	}
	h.Destroy(h)
}

// echo is OnRead of an echo server.
func echo(h *handler) bool {
	buf, n, _ := h.Read()
	if n > 0 {
		h.Write(buf)
	}
	return n != 0
}
