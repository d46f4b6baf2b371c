package mark

import (
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
)

// TestMark: each callback has its own Sight, and so has each rest.
func TestMark(t *testing.T) {
	peers := map[uint32]netip.AddrPort{7: netip.MustParseAddrPort("127.0.0.1:7")}
	m := New(func(slot uint32) netip.AddrPort { return peers[slot] })
	seen := make(map[Sight]bool)
	look := func(rests bool, peer netip.AddrPort) {
		t.Helper()
		s := m.Sight()
		if seen[s] {
			t.Errorf("%x was seen before", s)
		}
		seen[s] = true
		if s.Rests() != rests || m.Rests() != rests || m.Peer(s) != peer {
			t.Errorf("rests %t, %t, of %v; want %t, of %v", s.Rests(), m.Rests(), m.Peer(s), rests, peer)
		}
	}
	look(true, netip.AddrPort{})
	for range 2 {
		m.Begin(7)
		look(false, peers[7])
		m.Begin(7)
		look(false, peers[7])
		m.BeginOther()
		look(false, netip.AddrPort{})
		m.Rest()
		look(true, netip.AddrPort{})
	}
	m.Begin(7)
	m.Ended()
	look(true, netip.AddrPort{})
	before := m.Sight()
	m.Rest()
	m.Ended()
	if m.Sight() != before {
		t.Error("a loop that rests has moved")
	}
}

// TestPeerOfThePast: the slot of a callback that has ended may have another connection.
func TestPeerOfThePast(t *testing.T) {
	m := New(func(uint32) netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:7") })
	m.Begin(1)
	s := m.Sight()
	m.Begin(2)
	if p := m.Peer(s); p.IsValid() {
		t.Errorf("it is %v", p)
	}
}

// TestTable: the table of connections stands still while Peer reads it.
func TestTable(t *testing.T) {
	table := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}
	m := New(func(slot uint32) netip.AddrPort { return table[slot] })
	m.Begin(0)
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 1000 {
			m.Peer(m.Sight())
		}
	}()
	for i := range 1000 {
		changed := m.Changing()
		table[0] = netip.AddrPortFrom(table[0].Addr(), uint16(i))
		changed()
	}
	<-done
}

// TestUse counts users.
func TestUse(t *testing.T) {
	m := New(nil)
	for _, c := range []struct {
		add int
		any bool
	}{{1, true}, {1, true}, {-1, true}, {-1, false}} {
		if m.Use(c.add) != c.any {
			t.Errorf("after %+d users: %t", c.add, !c.any)
		}
	}
}

// TestWake: whoever sleeps is woken by the next turn, and told if it has begun already.
func TestWake(t *testing.T) {
	m := New(nil)
	c := make(chan struct{}, 1)
	m.Wakes(c)
	s := m.Sight()
	m.Turn()
	if m.Sleep(s) {
		t.Error("one sleeps in a turn")
	}
	m.Turn()
	<-c
	if s = m.Sight(); !m.Sleep(s) || len(c) > 0 {
		t.Error("one cannot sleep")
	}
	m.Turn()
	if len(c) != 1 {
		t.Error("nobody was woken")
	}
	m.Turn()
	<-c
	m.WakesNot(c)
	m.Sleep(m.Sight())
	m.Turn()
	if len(c) != 0 {
		t.Error("one was woken who is gone")
	}
}

// TestWakeIsNotLost: whoever sleeps is woken, whenever the turn begins.
func TestWakeIsNotLost(t *testing.T) {
	m := New(nil)
	c := make(chan struct{}, 1)
	m.Wakes(c)
	var over atomic.Bool
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for !over.Load() {
			m.Turn()
			m.BeginOther()
			m.Rest()
			runtime.Gosched()
		}
	}()
	for n := 0; n < 1000; {
		if s := m.Sight(); s.Rests() && m.Sleep(s) {
			<-c
			n++
		}
	}
	over.Store(true)
	<-ended
}
