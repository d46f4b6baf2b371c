//go:build linux

package goev

import (
	"fmt"
	"io"
	"net"
	"testing"
)

// The pollers' caches have what InitPollSyncOpt and PollSyncOpt set, and PCachedSet sets
// one poller's.
func TestCache(t *testing.T) {
	const pollers = 3
	r, err := NewReactor(EvPollNum(pollers))
	if err != nil {
		t.Fatal(err)
	}
	r.InitPollSyncOpt(PollSyncCache, PollSyncCacheOpt{ID: 1, Value: "first"})
	r.PollSyncOpt(7, nil) // unknown
	run(t, r)
	seen := make(chan string, 1)
	at := acceptor(t, r, "tcp", func() EvHandler {
		return &handler{r: r, read: func(h *handler) bool {
			_, n, _ := h.Read()
			v, ok := h.PCachedGet(1)
			h.PCachedSet(100+h.Fd()%pollers, true)
			_, others := h.PCachedGet(100 + (h.Fd()+1)%pollers)
			if n > 0 {
				seen <- fmt.Sprintf("%v %t %t", v, ok, others)
			}
			return n != 0
		}}
	})
	var conns []net.Conn
	for range 2 * pollers {
		conns = append(conns, dial(t, at))
	}
	for _, want := range []string{"first", "second"} {
		if want == "second" {
			r.PollSyncOpt(PollSyncCache, PollSyncCacheOpt{ID: 1, Value: want})
		}
		for _, c := range conns {
			io.WriteString(c, "x")
			if s := receive(t, seen); s != want+" true false" {
				t.Errorf("seen %q", s)
			}
		}
	}
}
