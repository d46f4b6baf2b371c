package rondo

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// TestAdmissionCountsNetworks: the addresses of an IPv6 network of 64 bits are one, and so is
// an IPv4 address in both its forms. Nothing is left of those that have gone.
func TestAdmissionCountsNetworks(t *testing.T) {
	adm := (&Engine{MaxConnsPerAddr: 2}).newAdmission()
	enter := func(addr string, want bool) {
		t.Helper()
		if limit := adm.enter(netip.MustParseAddr(addr), nil, true); (limit == "") != want {
			t.Errorf("%s: limit %q, want one: %v", addr, limit, !want)
		}
	}
	enter("1.2.3.4", true)
	enter("::ffff:1.2.3.4", true)
	enter("1.2.3.4", false)
	enter("1.2.3.5", true)
	enter("2001:db8:1:2::1", true)
	enter("2001:db8:1:2:ffff::1", true)
	enter("2001:db8:1:2::9", false)
	enter("2001:db8:1:3::1", true)
	enter("fe80::1%eth0", true)
	for range 10 {
		if limit := adm.enter(netip.Addr{}, nil, true); limit != "" {
			t.Errorf("without an address: %q", limit)
		}
	}
	adm.leave(netip.MustParseAddr("::ffff:1.2.3.4"))
	enter("1.2.3.4", true)
	for _, a := range []string{"1.2.3.4", "1.2.3.4", "1.2.3.5", "2001:db8:1:2::7", "2001:db8:1:2::8", "2001:db8:1:3::1", "fe80::1"} {
		adm.leave(netip.MustParseAddr(a))
	}
	for range 10 {
		adm.leave(netip.Addr{})
	}
	adm.mustBeEmpty(t)
}

func (a *admission) mustBeEmpty(t *testing.T) {
	t.Helper()
	if n := a.open.Load(); n != 0 {
		t.Errorf("%d connections are counted, want none", n)
	}
	for i := range a.addrs {
		if n := len(a.addrs[i].open); n > 0 {
			t.Errorf("%d addresses are counted, want none", n)
		}
	}
}

// TestAdmissionForgets: a map that had many addresses is not kept.
func TestAdmissionForgets(t *testing.T) {
	adm := (&Engine{MaxConnsPerAddr: 1}).newAdmission()
	var addrs []netip.Addr
	for i := range 100_000 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	for range 2 {
		for _, a := range addrs {
			if limit := adm.enter(a, nil, true); limit != "" {
				t.Fatal(a, limit)
			}
		}
		for _, a := range addrs {
			adm.leave(a)
		}
		adm.mustBeEmpty(t)
		for i := range adm.addrs {
			if adm.addrs[i].open != nil {
				t.Error("a map of many addresses is kept")
			}
		}
	}
}

// TestBucket: it gives no more than a second's tokens at once, and as many in each second.
func TestBucket(t *testing.T) {
	now := time.Now()
	b := bucket{perSecond: 10}
	taken := func(at time.Duration) (n int) {
		for b.take(now.Add(at)) {
			n++
		}
		return n
	}
	for _, step := range []struct {
		at   time.Duration
		want int
	}{
		{0, 10}, {0, 0}, {99 * time.Millisecond, 0}, {101 * time.Millisecond, 1}, {50 * time.Millisecond, 0},
		{time.Second + 102*time.Millisecond, 10}, {time.Hour, 10}, {time.Hour - time.Second, 0},
	} {
		if n := taken(step.at); n != step.want {
			t.Errorf("%d tokens after %v, want %d", n, step.at, step.want)
		}
	}
}

// BenchmarkAdmission is what the limits of connections cost one that comes and goes: alone, and
// beside others that come to other loops.
func BenchmarkAdmission(b *testing.B) {
	for _, limits := range []struct {
		name string
		*Engine
	}{
		{"none", &Engine{}},
		{"MaxConns", &Engine{MaxConns: 1 << 30}},
		{"MaxConnsPerAddr", &Engine{MaxConnsPerAddr: 1 << 30}},
		{"AcceptRate", &Engine{AcceptRate: 1 << 30}},
		{"all", &Engine{MaxConns: 1 << 30, MaxConnsPerAddr: 1 << 30, AcceptRate: 1 << 30}},
	} {
		b.Run(limits.name, func(b *testing.B) {
			adm := limits.newAdmission()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				l, _ := audience(1, false)
				addr := netip.AddrFrom4([4]byte{10, 0, byte(rand.N(256)), byte(rand.N(256))})
				for pb.Next() {
					if limit := adm.enter(addr, l, true); limit != "" {
						b.Error(limit)
					}
					adm.leave(addr)
				}
			})
		})
	}
}
