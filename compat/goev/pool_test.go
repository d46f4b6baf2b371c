//go:build linux

package goev

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A pool makes its minimum, lends and takes back, forgets the lost, and keeps to its
// maximum.
func TestConnectPool(t *testing.T) {
	r := reactor(t, EvPollNum(2))
	var mu sync.Mutex
	var served []*handler
	at := acceptor(t, r, "tcp", func() EvHandler {
		h := &handler{r: r, read: echo}
		mu.Lock()
		served = append(served, h)
		mu.Unlock()
		return h
	})
	c, err := NewConnector(r)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 100)
	var refuse atomic.Bool
	p, err := NewConnectPool(c, at.String(), 3, 2, 6, 1000, 2, func() ConnectPoolHandler {
		h := &handler{r: r, ended: func(h *handler) { h.Closed() }}
		h.opened = func(h *handler) bool { return !refuse.Load() && r.AddEvHandler(h, h.Fd(), EvIn) == nil }
		h.read = func(h *handler) bool {
			buf, n, _ := h.Read()
			if n > 0 {
				got <- string(buf)
			}
			return n != 0
		}
		return h
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the minimum", func() bool { return p.IdleNum() == 3 && p.LiveNum() == 3 })
	var out []ConnectPoolHandler
	for len(out) < 6 {
		if h := p.Acquire(); h != nil {
			out = append(out, h)
			continue
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if p.Acquire() != nil || p.LiveNum() != 6 {
		t.Errorf("%d connections, of at most 6", p.LiveNum())
	}
	for i, h := range out {
		s := fmt.Sprint("question ", i)
		h.Write([]byte(s))
		if g := receive(t, got); g != s || h.GetPool() != p {
			t.Errorf("got %q", g)
		}
	}
	for _, h := range out[:5] {
		p.Release(h)
	}
	if p.IdleNum() != 5 {
		t.Errorf("%d are idle", p.IdleNum())
	}
	refuse.Store(true)
	mu.Lock()
	for _, h := range served {
		h.Destroy(h)
	}
	mu.Unlock()
	until(t, "the end of all", func() bool { return p.IdleNum() == 0 && p.LiveNum() == 0 })
	p.Release(out[5]) // which has closed
	if p.IdleNum() != 0 {
		t.Error("a closed connection is idle")
	}
	refuse.Store(false)
	until(t, "new ones", func() bool { return p.IdleNum() >= 3 })
	for name, f := range map[string]func(){
		"is nil":         func() { p.Release(nil) },
		"doesn't belong": func() { p.Release(&handler{}) },
		"invalid":        func() { NewConnectPool(c, "", 3, 1, 3, 1, 1, nil) },
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, name) {
					t.Errorf("panic %q, want %q", s, name)
				}
			}()
			f()
		}()
	}
}
