//go:build linux

package goev

import (
	"fmt"
	"io"
	"net"
	"slices"
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
			mine := slices.Index(r.pollers, h.entry.Load().poller)
			h.PCachedSet(100+mine, true)
			_, others := h.PCachedGet(100 + (mine+1)%pollers)
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

// To set a value costs no more when there are many.
func TestCacheOfMany(t *testing.T) {
	r := reactor(t, EvPollNum(2))
	set := func(id int) { r.PollSyncOpt(PollSyncCache, PollSyncCacheOpt{ID: id, Value: true}) }
	for id := range 10000 {
		set(id)
	}
	if n := testing.AllocsPerRun(100, func() { set(5000) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}
