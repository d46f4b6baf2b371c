package redis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// textsOf returns the texts of a tree's prefixes, in its order.
func textsOf(t *prefixTree) (list []string) {
	for x := range t.all() {
		list = append(list, x.text)
	}
	return list
}

// check finds nodes that a tree must not have.
func (n *prefixNode) check(t *testing.T, root bool) {
	t.Helper()
	if !root && (n.label == "" || n.prefix == nil && len(n.children) < 2) {
		t.Errorf("the node %q has %d children", n.label, len(n.children))
	}
	firsts := ""
	for _, child := range n.children {
		firsts += child.label[:1]
		child.check(t, false)
	}
	if firsts != n.firsts || !slices.IsSorted([]byte(firsts)) {
		t.Errorf("the children's labels begin with %q, the node says %q", firsts, n.firsts)
	}
}

// TestPrefixTree compares a tree with a map, and its walk along a key with all prefixes of the key.
func TestPrefixTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	word := func() string {
		b := make([]byte, r.IntN(8))
		for i := range b {
			b[i] = "ab\x00\xff"[r.IntN(4)]
		}
		return string(b)
	}
	var tree prefixTree
	want := make(map[string]*prefix)
	met := 0
	for i := range 20000 {
		text := word()
		if x := want[text]; x != nil {
			tree.remove(text)
			delete(want, text)
		} else if len(want) < []int{2, 40}[i/1000%2] {
			x = &prefix{text: text}
			tree.add(x)
			want[text] = x
		}
		key, found := []byte(word()), []string(nil)
		for n, at := tree.root, 0; n != nil; n, at = n.next(key, at) {
			if n.prefix != nil {
				found = append(found, n.prefix.text)
			}
		}
		var all, overlapping []string
		for _, p := range slices.Sorted(maps.Keys(want)) {
			if strings.HasPrefix(string(key), p) {
				all = append(all, p)
			}
			if overlap(string(key), p) {
				overlapping = append(overlapping, p)
			}
		}
		met += len(all)
		if !slices.Equal(found, all) {
			t.Fatalf("%q has the prefixes %q, want %q", key, found, all)
		}
		if x := tree.overlapping(string(key)); (x == nil) != (overlapping == nil) || x != nil && x.text != overlapping[0] {
			t.Fatalf("%q overlaps %v, want the first of %q", key, x, overlapping)
		}
		if tree.find(key) != want[string(key)] {
			t.Fatalf("%q is found as %v", key, tree.find(key))
		}
		if i%16 == 0 && tree.root != nil {
			if got := slices.Sorted(maps.Keys(want)); !slices.Equal(textsOf(&tree), got) || tree.count != len(want) || tree.size != len(strings.Join(got, "")) {
				t.Fatalf("the tree has %q, want %q", textsOf(&tree), got)
			}
			tree.root.check(t, true)
		}
	}
	if met < 300 {
		t.Errorf("only %d prefixes of keys were found", met)
	}
}

// A key that is changed beside prefixes of all lengths meets only nodes with its own bytes.
func TestManyLengthsOfPrefixes(t *testing.T) {
	var tree prefixTree
	for n := range maxPrefix {
		tree.add(&prefix{text: strings.Repeat("x", n) + "y"})
	}
	for key, most := range map[string]int{"user:1000": 1, "y": 2, "xxxa": 4, strings.Repeat("x", 1<<20): maxPrefix + 1} {
		steps := 0
		for n, at := tree.root, 0; n != nil; n, at = n.next([]byte(key), at) {
			steps++
		}
		if steps > most {
			t.Errorf("a key of %d bytes meets %d nodes, want at most %d", len(key), steps, most)
		}
	}
}

func BenchmarkChangeBesidePrefixes(b *testing.B) {
	for _, lengths := range []int{1, 64, 1024} {
		for _, size := range []int{16, 2000} {
			b.Run(fmt.Sprintf("lengths=%d/key=%d", lengths, size), func(b *testing.B) {
				s := newBench(b, &Server{})
				args := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
				for n := range lengths {
					args = append(args, "PREFIX", strings.Repeat("x", n)+"y")
				}
				if got := s.do("a", args...); got != "+OK" {
					b.Fatal(got)
				}
				key := append([]byte("user:1"), strings.Repeat("0", size-6)...)
				b.ReportAllocs()
				for b.Loop() {
					s.s.tracking.prefixes.note(key, nil)
				}
			})
		}
	}
}
