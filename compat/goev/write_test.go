//go:build linux

package goev

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// AsyncWrite keeps each goroutine's order, the queue can be measured, and its end is told.
func TestAsyncWrite(t *testing.T) {
	r := reactor(t)
	drained := make(chan bool, 100)
	servers := make(chan *handler, 1)
	at := acceptor(t, r, "tcp", func() EvHandler {
		h := &handler{r: r, drained: func(*handler) { drained <- true }}
		h.opened = func(h *handler) bool {
			ok := r.AddEvHandler(h, h.Fd(), EvIn) == nil
			servers <- h
			return ok
		}
		h.read = func(h *handler) bool { _, n, _ := h.Read(); return n != 0 }
		return h
	}, SockRcvBufSize(16<<10))
	c := dial(t, at)
	h := receive(t, servers)
	const lines, goroutines = 2000, 4
	pad := strings.Repeat(".", 1000)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range lines {
				h.AsyncWrite(h, fmt.Appendf(nil, "%d %6d%s\n", g, i, pad))
			}
		}()
	}
	all.Wait()
	until(t, "a queue", func() bool { return h.AsyncWaitWriteQLen() > 0 })
	next := make([]int, goroutines)
	line := make([]byte, len("0 000000")+len(pad)+1)
	for range lines * goroutines {
		if _, err := io.ReadFull(c, line); err != nil {
			t.Fatal(err)
		}
		var g, i int
		fmt.Sscanf(string(line), "%d %d", &g, &i)
		if i != next[g] {
			t.Fatalf("line %d of goroutine %d comes in place of %d", i, g, next[g])
		}
		next[g]++
	}
	receive(t, drained)
	until(t, "an empty queue", func() bool { return h.AsyncWaitWriteQLen() == 0 })
	h.Destroy(h)
	h.AsyncWrite(h, []byte("lost"))
	if n, err := h.Write([]byte("lost")); n != 0 || err != unix.EBADF {
		t.Errorf("Write after Destroy: %d, %v", n, err)
	}
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
}

// What AsyncWrite was given before the handler moved to another Reactor is sent too, and
// before what it was given later.
func TestAsyncWriteAndMove(t *testing.T) {
	from, to := reactor(t), reactor(t)
	at := acceptor(t, from, "tcp", func() EvHandler {
		return &handler{r: from, read: func(h *handler) bool {
			if h.GetReactor() == to {
				return echo(h)
			}
			h.Read()
			h.AsyncWrite(h, []byte("one "))
			if err := errors.Join(from.RemoveEvent(h.Fd(), EvAll), to.AddEvHandler(h, h.Fd(), EvIn)); err != nil {
				t.Error(err)
			}
			h.AsyncWrite(h, []byte("two "))
			time.Sleep(5 * time.Millisecond) // the other poller may be quicker
			return true
		}}
	})
	c := dial(t, at)
	io.WriteString(c, "move")
	p := make([]byte, 8)
	if n, err := io.ReadFull(c, p); err != nil || string(p) != "one two " {
		t.Errorf("got %q, %v", p[:n], err)
	}
	echoes(t, c, "moved")
}

// A handler that does not watch for input gets OnClose when its output fails, and is not
// told that all is sent.
func TestOutputFails(t *testing.T) {
	r := reactor(t)
	servers, closed := make(chan *handler, 1), make(chan bool, 1)
	at := acceptor(t, r, "tcp", func() EvHandler {
		h := &handler{drained: func(*handler) { t.Error("OnWriteBufferDrained is called") }, ended: func(*handler) { closed <- true }}
		h.opened = func(h *handler) bool {
			ok := r.AddEvHandler(h, h.Fd(), EvOutET) == nil
			servers <- h
			return ok
		}
		return h
	})
	c := dial(t, at).(*net.TCPConn)
	h := receive(t, servers)
	h.AsyncWrite(h, make([]byte, 32<<20))
	until(t, "output", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.waiting })
	c.SetLinger(0)
	c.Close()
	receive(t, closed)
}

// Destroy does not give a descriptor's number away while the poller reads from it.
func TestDestroyWhileReading(t *testing.T) {
	r := reactor(t)
	in, out := pipe(t)
	if err := unix.SetNonblock(in, false); err != nil {
		t.Fatal(err)
	}
	reading := make(chan bool)
	h := &handler{read: func(h *handler) bool {
		h.Read()
		close(reading)
		h.Read() // waits
		return false
	}}
	if err := r.AddEvHandler(h, in, EvIn); err != nil {
		t.Fatal(err)
	}
	unix.Write(out, []byte("x"))
	receive(t, reading)
	time.Sleep(5 * time.Millisecond)
	destroyed := make(chan bool)
	go func() { h.Destroy(h); close(destroyed) }()
	time.Sleep(5 * time.Millisecond)
	if _, err := unix.FcntlInt(uintptr(in), unix.F_GETFD, 0); err != nil {
		t.Error("the descriptor is closed:", err)
	}
	unix.Write(out, []byte("x"))
	receive(t, destroyed)
}
