//go:build linux

package goev

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

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
