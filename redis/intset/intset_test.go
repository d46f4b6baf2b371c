package intset

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The bytes are those that Redis's DUMP contains.
func TestBytes(t *testing.T) {
	s := Init(nil)
	for _, c := range []struct {
		n    int64
		want string
	}{
		{5, "02000000" + "01000000" + "0500"},
		{-2, "02000000" + "02000000" + "feff" + "0500"},
		{5, "02000000" + "02000000" + "feff" + "0500"},
		{1 << 15, "04000000" + "03000000" + "feffffff" + "05000000" + "00800000"},
		{-1 << 31, "04000000" + "04000000" + "00000080" + "feffffff" + "05000000" + "00800000"},
		{math.MinInt64, "08000000" + "05000000" + "0000000000000080" + "00000080ffffffff" +
			"feffffffffffffff" + "0500000000000000" + "0080000000000000"},
	} {
		s, _ = Add(s, c.n)
		if got := hex.EncodeToString(s); got != c.want {
			t.Errorf("after %d\ngot  %s\nwant %s", c.n, got, c.want)
		}
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, want := Init(nil), map[int64]bool{}
		for range 1000 {
			n := int64(rng.Uint64()) >> (rng.IntN(64))
			if rng.IntN(2) == 0 {
				n = rng.Int64N(60) - 30
			}
			var changed bool
			had := want[n]
			if _, ok := Find(s, n); ok != had {
				t.Fatalf("seed %d: Find(%d) is %t", seed, n, ok)
			}
			if rng.IntN(3) > 0 {
				s, changed = Add(s, n)
				want[n] = true
				changed = !changed
			} else {
				s, changed = Remove(s, n)
				delete(want, n)
			}
			if changed != had || Len(s) != len(want) || !Valid(s) {
				t.Fatalf("seed %d: %d: changed %t, %d elements, want %t, %d; valid %t", seed, n, changed, Len(s), had, len(want), Valid(s))
			}
		}
		for i := range Len(s) {
			if !want[At(s, i)] {
				t.Errorf("seed %d: unexpected %d", seed, At(s, i))
			}
		}
	}
}

func TestValid(t *testing.T) {
	good := Init(nil)
	for n := range int64(5) {
		good, _ = Add(good, n*40000)
	}
	if !Valid(good) || !Valid(Init(nil)) {
		t.Error("a good intset is not valid")
	}
	for name, change := range map[string]func([]byte) []byte{
		"short header": func(b []byte) []byte { return b[:7] },
		"width":        func(b []byte) []byte { b[0] = 3; return b },
		"short":        func(b []byte) []byte { return b[:len(b)-1] },
		"long":         func(b []byte) []byte { return append(b, 0) },
		"number":       func(b []byte) []byte { b[7] = 0xFF; return b },
		"order":        func(b []byte) []byte { b[11] = 0x7F; return b },
		"twice":        func(b []byte) []byte { copy(b[12:16], b[8:12]); return b },
	} {
		if Valid(change(slices.Clone(good))) {
			t.Errorf("%s is valid", name)
		}
	}
}
