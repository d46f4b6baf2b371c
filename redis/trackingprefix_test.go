package redis

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTrackingPrefixesAreBounded(t *testing.T) {
	b := newBench(t, &Server{})
	args := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for i := range maxPrefixes {
		args = append(args, "PREFIX", fmt.Sprintf("%07d", i*7919%1000003))
	}
	if got := b.do("a", append(args, "PREFIX", "x")...); got != "-ERR A client can't have more than 65536 prefixes" {
		t.Error(got)
	}
	if got := b.do("a", args...); got != "+OK" {
		t.Error(got)
	}
	prefixes := textsOf(&b.connect("a").client.tracks.prefixes)
	if !slices.IsSorted(prefixes) || len(prefixes) != maxPrefixes {
		t.Errorf("%d prefixes, sorted: %v", len(prefixes), slices.IsSorted(prefixes))
	}
	long := strings.Repeat("x", maxPrefix)
	b.script(`
		CLIENT TRACKING ON BCAST PREFIX y => -ERR A client can't have more than 65536 prefixes
		CLIENT TRACKING OFF => +OK
		CLIENT TRACKING ON BCAST PREFIX ` + long + `x => -ERR A prefix can't have more than 1024 bytes
		CLIENT TRACKING ON BCAST PREFIX ` + long + ` => +OK
	`)
	if tree := &b.s.tracking.prefixes.tree; tree.count != 1 || len(tree.root.children) != 1 || cap(tree.root.children) > 4 {
		t.Errorf("%d prefixes are left, with room for %d below the root", tree.count, cap(tree.root.children))
	}
}

// The overlap that clients are told of is the one that comparing all pairs finds first.
func TestOverlappingPrefixes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	word := func() string {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = "ab"[r.IntN(2)]
		}
		return string(b)
	}
	found := 0
	for range 20000 {
		var existing []string
		for range r.IntN(4) {
			if w := word(); !slices.ContainsFunc(existing, func(x string) bool { return overlap(x, w) }) {
				existing = append(existing, w)
			}
		}
		slices.Sort(existing)
		var tree prefixTree
		for _, text := range existing {
			tree.add(&prefix{text: text})
		}
		var added [][]byte
		for range r.IntN(5) {
			added = append(added, []byte(word()))
		}
		want := slices.IndexFunc(added, func(p []byte) bool {
			return slices.ContainsFunc(existing, func(x string) bool { return overlap(x, string(p)) })
		})
		for i, p := range added {
			for _, q := range added[i+1:] {
				if overlap(string(p), string(q)) && (want < 0 || i < want) {
					want = i
				}
			}
		}
		if got := firstOverlap(added, &tree); got != want {
			t.Fatalf("%q beside %q: %d, want %d", added, existing, got, want)
		}
		if want >= 0 {
			found++
		}
	}
	if found < 5000 || found > 19000 {
		t.Errorf("%d of 20000 overlap", found)
	}
}

// One more prefix takes as long beside very many as beside few: what it allocates tells.
func TestOneMorePrefix(t *testing.T) {
	b := newBench(t, &Server{})
	args := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for i := range 50000 {
		args = append(args, "PREFIX", fmt.Sprintf("%07d", i))
	}
	if got := b.do("a", args...); got != "+OK" {
		t.Fatal(got)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const more = 100
	for i := range more {
		if got := b.do("a", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", fmt.Sprintf("x%07d", i)); got != "+OK" {
			t.Fatal(got)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / more; each > 32<<10 {
		t.Errorf("another prefix beside 50,000 allocates %d bytes", each)
	}
}

// Clients come to a prefix and leave it, few and many.
func TestClientsOfPrefixes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, has := &prefix{}, make(map[*client]bool)
	for i := range 20000 {
		most := []int{2 * fewClients, 40}[i/2000%2]
		c := new(client)
		for y := range has { // any one
			c = y
			break
		}
		if n := len(has); n == 0 || n < most && r.IntN(2) == 0 {
			c = new(client)
			has[c] = true
			x.add(c)
		} else {
			delete(has, c)
			x.remove(c)
		}
		if len(x.clients) != len(has) {
			t.Fatalf("%d clients, want %d", len(x.clients), len(has))
		}
		for at, y := range x.clients {
			if !has[y] || x.index != nil && x.index[y] != at {
				t.Fatalf("client %d is the wrong one, or not found", at)
			}
		}
	}
}
