package rondo_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// ender looks in Ending whether its connection's descriptor is still open.
type ender struct {
	bridge.Ours
	rondo.HandlerFunc
	direct bridge.Direct
	ending error // of a Recv in Ending
	closed chan error
}

func (h *ender) Ending() {
	if h.direct != nil {
		_, _, h.ending = h.direct.Recv(make([]byte, 1))
	}
}

func (h *ender) Closed(*rondo.Conn, error) { h.closed <- h.ending }

// TestEndingBeforeTheDescriptorIsClosed: a connection that fails in the last moment of a
// turn, when what others wrote again and again is sent for the last time, is told of its
// Ending before its descriptor is closed: somebody may be using that by a Direct.
func TestEndingBeforeTheDescriptorIsClosed(t *testing.T) {
	for _, name := range backends() {
		for again := range 8 { // of which one is the last that a turn sends
			t.Run(fmt.Sprintf("%s/%d", name, again), func(t *testing.T) { failAfter(t, name, again) })
		}
	}
}

// failAfter writes to a connection that the peer has reset, after another one's write
// was sent so many times in the same turn.
func failAfter(t *testing.T, backend string, again int) {
	e := &rondo.Engine{NumLoops: 1, Backend: backend}
	conns := make(chan *rondo.Conn, 1)
	h := &ender{closed: make(chan error, 1)}
	peer := connTo(t, e, func(c *rondo.Conn) rondo.Handler {
		c.Pause()
		h.direct = bridge.Of(c).Direct()
		conns <- c
		return h
	})
	failing := <-conns
	if h.direct == nil {
		return // nobody but the backend uses the descriptor
	}
	connTo(t, e, func(c *rondo.Conn) rondo.Handler {
		conns <- c
		return echo(c)
	})
	other := <-conns
	peer.(*net.TCPConn).SetLinger(0)
	peer.Close()
	until(t, "the reset", func() bool {
		_, ok, _ := h.direct.Recv(make([]byte, 1))
		return ok
	})
	var write func()
	write = func() {
		if again--; again >= 0 {
			other.WriteOwned([]byte("x"), write)
		} else {
			failing.Write([]byte("lost"))
		}
	}
	if err := other.Ref().Do(func(*rondo.Conn) { write() }); err != nil {
		t.Fatal(err)
	}
	if err := <-h.closed; errors.Is(err, syscall.EBADF) {
		t.Errorf("Ending came when the descriptor was closed: %v", err)
	}
}
