package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/proxy"
)

// targets makes targets with weights.
func targets(weights ...int) (all []proxy.Target) {
	for i, w := range weights {
		all = append(all, proxy.Target{Network: "tcp", Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: w})
	}
	return all
}

// In turn, by weight, and mixed.
func TestRoundRobin(t *testing.T) {
	for want, weights := range map[string][]int{
		"012012012":      {1, 0, 1}, // 0 stands for 1
		"01001000100100": {5, 2},
		"0000":           {1000},
	} {
		c := proxy.NewChooser(proxy.Pool{Targets: targets(weights...)})
		var got strings.Builder
		for range len(want) {
			fmt.Fprint(&got, c.Choose(""))
		}
		if want == "01001000100100" {
			if s := got.String()[:14]; strings.Count(s, "1") != 4 || strings.Contains(s, "11") {
				t.Errorf("weights %v: %s: want 4 of 14 times the second one, never twice in a row", weights, s)
			}
			continue
		}
		if got.String() != want {
			t.Errorf("weights %v: %s, want %s", weights, got.String(), want)
		}
	}
}

// By the number of connections for the weight.
func TestLeastConns(t *testing.T) {
	c := proxy.NewChooser(proxy.Pool{Balance: proxy.LeastConns, Targets: targets(1, 3)})
	var open [2]int
	for range 40 {
		open[c.Choose("")]++
	}
	if open != [2]int{10, 30} {
		t.Errorf("of 40 connections the targets have %v, want 10 and 30", open)
	}
	for range 5 {
		c.Leave(0)
	}
	for range 5 {
		if i := c.Choose(""); i != 0 {
			t.Errorf("target %d was chosen, want 0, which has fewer", i)
		}
	}
	equal := proxy.NewChooser(proxy.Pool{Balance: proxy.LeastConns, Targets: targets(1, 1, 1)})
	seen := make(map[int]bool)
	for range 3 {
		i := equal.Choose("")
		equal.Leave(i)
		seen[i] = true
	}
	if len(seen) != 3 {
		t.Errorf("idle targets that were chosen: %v, want all three", seen)
	}
}

// A client keeps its target, in another process too. When a target goes, only its clients
// move. Each target has as large a share of the clients as its weight says.
func TestSourceHash(t *testing.T) {
	const clients = 30_000
	all := targets(1, 1, 2, 1)
	before := proxy.NewChooser(proxy.Pool{Balance: proxy.SourceHash, Targets: all})
	after := proxy.NewChooser(proxy.Pool{Balance: proxy.SourceHash, Targets: all[:3]})
	var shares [4]int
	for i := range clients {
		ip := fmt.Sprintf("10.1.%d.%d", i>>8, i&255)
		a, again, b := before.Choose(ip), before.Choose(ip), after.Choose(ip)
		shares[a]++
		if a != again || a != 3 && a != b {
			t.Fatalf("client %s has target %d, then %d, and without target 3 it has %d", ip, a, again, b)
		}
	}
	for i, n := range shares {
		want := clients / 5
		if i == 2 {
			want *= 2
		}
		if n < want*9/10 || n > want*11/10 {
			t.Errorf("target %d has %d clients, want about %d", i, n, want)
		}
	}
	if a, b := before.Choose("2001:db8::1"), before.Choose("2001:db8::ffff:1"); a != b {
		t.Errorf("two addresses of an IPv6 host have targets %d and %d", a, b)
	}
	if a, b := before.Choose("10.1.2.3"), before.Choose("::ffff:10.1.2.3"); a != b {
		t.Errorf("an IPv4 address and its IPv6 form have targets %d and %d", a, b)
	}
	// These never change: all versions of the program, on all hosts, must agree.
	if got := fmt.Sprint(before.Choose("192.0.2.1"), before.Choose("192.0.2.2"), before.Choose("192.0.2.3"), before.Choose("2001:db8::1")); got != "0 3 3 2" {
		t.Errorf("the targets of four clients are %s", got)
	}
}

// A full or draining target gets nothing.
func TestFullAndDraining(t *testing.T) {
	for _, b := range []proxy.Balance{proxy.RoundRobin, proxy.LeastConns, proxy.SourceHash} {
		all := targets(1, 1, 1)
		all[0].MaxConns, all[1].MaxConns, all[2].Drain = 2, 3, true
		c := proxy.NewChooser(proxy.Pool{Balance: b, Targets: all})
		var open [3]int
		for range 5 {
			open[c.Choose("10.0.0.1")]++
		}
		if last := c.Choose("10.0.0.1"); open != [3]int{2, 3, 0} || last != -1 {
			t.Errorf("balance %d: the targets have %v, and then %d is chosen", b, open, last)
		}
		c.Leave(1)
		if i := c.Choose("10.0.0.1"); i != 1 {
			t.Errorf("balance %d: target %d was chosen, want 1, which has a place", b, i)
		}
	}
}
