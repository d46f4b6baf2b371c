//go:build linux

package goev

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Whatever peers do, beside whatever handlers and other goroutines do, OnClose is called
// at most once, each connection ends for its peer, and none stays watched.
func TestHostile(t *testing.T) {
	pollers := reactor(t, EvPollNum(3))
	other := reactor(t, EvPollNum(2), EvPollReadBuffSize(1000))
	var opened, closed, destroyed, twice atomic.Int32
	const clients, each = 8, 60
	at := acceptor(t, pollers, "tcp", func() EvHandler {
		h := &handler{r: pollers, timeout: func(h *handler) bool { h.AsyncWrite(h, []byte("tick")); return h.Fd() > 0 }}
		if rand.IntN(2) == 0 {
			h.r = other
		}
		var ended atomic.Int32
		h.opened = func(h *handler) bool {
			opened.Add(1)
			if rand.IntN(20) == 0 {
				return false
			}
			ok := h.r.AddEvHandler(h, h.Fd(), []uint32{EvIn, EvIn | EvOut, EvInET | EvOutET}[rand.IntN(3)]) == nil
			if ok && rand.IntN(3) == 0 {
				h.ScheduleTimer(h, rand.Int64N(3), rand.Int64N(3))
			}
			if ok && rand.IntN(4) == 0 {
				go fromElsewhere(h, &destroyed)
			}
			return ok
		}
		h.read = func(h *handler) bool { return atRandom(h, pollers, other) }
		h.ended = func(h *handler) {
			h.CancelTimer(h)
			if ended.Add(1) > 1 {
				twice.Add(1)
			}
			closed.Add(1)
		}
		return h
	}, ListenBacklog(clients*each+rand.IntN(100))) // with fewer, a connection that has ended may never be accepted
	var all sync.WaitGroup
	for range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for range each {
				if c, err := net.Dial("tcp", at.String()); err == nil {
					misbehave(c.(*net.TCPConn))
				}
			}
		}()
	}
	all.Wait()
	until(t, "all connections", func() bool { return opened.Load() == clients*each })
	until(t, "the end of what is watched", func() bool {
		watched.mu.Lock()
		defer watched.mu.Unlock()
		n := 0
		for _, first := range watched.entries {
			for e := first; e != nil; e = e.next {
				if e.poller.reactor == pollers || e.poller.reactor == other {
					n++
				}
			}
		}
		return n == 1 // the acceptor
	})
	watched.mu.Lock()
	for _, r := range []*Reactor{pollers, other} {
		for _, p := range r.pollers {
			if p.entries < 0 || p.entries > 1 {
				t.Errorf("a poller counts %d entries", p.entries)
			}
		}
	}
	watched.mu.Unlock()
	if n := twice.Load(); n > 0 {
		t.Errorf("OnClose was called twice for %d handlers", n)
	}
	if c, d := closed.Load(), destroyed.Load(); c+d < clients*each {
		t.Errorf("%d handlers were closed and %d destroyed, of %d", c, d, clients*each)
	}
}

// atRandom reads, and does something.
func atRandom(h *handler, r, other *Reactor) bool {
	buf, n, _ := h.Read()
	if n == 0 {
		return false
	}
	switch rand.IntN(12) {
	case 0:
		h.Write(make([]byte, rand.IntN(4<<20)))
	case 1:
		h.AsyncWrite(h, make([]byte, rand.IntN(200000)))
	case 2:
		h.Destroy(h)
		return false
	case 3:
		return false
	case 4: // to the other Reactor
		from, to := h.GetReactor(), r
		if from == r {
			to = other
		}
		return from.RemoveEvent(h.Fd(), EvAll) == nil && to.AddEvHandler(h, h.Fd(), EvIn) == nil
	case 5: // again
		return h.GetReactor().AddEvHandler(h, h.Fd(), EvIn) == nil
	case 6:
		h.GetReactor().AppendEvent(h.Fd(), EvOut)
	case 7:
		h.CancelTimer(h)
		h.ScheduleTimer(h, rand.Int64N(3), 1)
	default:
		h.Write(buf)
	}
	return true
}

// fromElsewhere is what another goroutine does with a handler.
func fromElsewhere(h *handler, destroyed *atomic.Int32) {
	for range rand.IntN(20) {
		switch rand.IntN(4) {
		case 0:
			h.Write(make([]byte, rand.IntN(100000)))
		case 1:
			time.Sleep(time.Millisecond)
		default:
			h.AsyncWrite(h, make([]byte, rand.IntN(100000)))
		}
	}
	if rand.IntN(2) == 0 {
		destroyed.Add(1)
		h.Destroy(h)
	}
}

// misbehave is a random peer.
func misbehave(c *net.TCPConn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Duration(1+rand.IntN(20)) * time.Millisecond))
	for range rand.IntN(6) {
		switch rand.IntN(6) {
		case 0:
			c.CloseWrite()
		case 1:
			c.SetLinger(0)
		case 2, 3:
			c.Write(make([]byte, rand.IntN(50000)))
		default:
			io.CopyN(io.Discard, c, rand.Int64N(100000))
		}
	}
}
