package redis

import "testing"

// Clients that never read may together leave as much output as one of them.
func TestStalledClientsShareABound(t *testing.T) {
	b := newBench(t, &Server{})
	first, second := b.connect("first"), b.connect("second")
	look := func(f *fakeConn) {
		f.client.stall.taken = f.client.taken() // nothing since
		b.s.stalls.look(f.client)
	}
	first.waiting, second.waiting = maxOutput/2, maxOutput
	look(first)
	look(second)
	if first.allowed != maxOutput || second.allowed != 0 {
		t.Errorf("the first may leave %d bytes, the second %d: want %d and 0", first.allowed, second.allowed, maxOutput)
	}
	second.waiting = maxOutput / 4
	look(second)
	if second.allowed != maxOutput/2 {
		t.Errorf("the second may leave %d bytes, want %d", second.allowed, maxOutput/2)
	}
	first.client.leave()
	second.waiting = maxOutput
	look(second)
	if second.allowed != mostStalled || b.s.stalls.allowed != mostStalled {
		t.Errorf("alone the second may leave %d bytes, of %d in all: want %d", second.allowed, b.s.stalls.allowed, mostStalled)
	}
	second.waiting = 0
	second.client.stall.settle(second.client)
	if second.allowed != 0 || b.s.stalls.allowed != 0 {
		t.Errorf("the second may leave %d bytes when it has read all, of %d in all: want 0", second.allowed, b.s.stalls.allowed)
	}
}
