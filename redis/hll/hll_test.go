package hll

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// limit is what Redis has by default.
const limit = 3000

func add(t testing.TB, b []byte, element []byte) []byte {
	register, rank := Hash(element)
	b, _, ok := Set(b, register, rank, limit)
	if !ok {
		t.Fatalf("%q: corrupt after %q", b, element)
	}
	return b
}

// redis-server 7.0.15 stores the same bytes.
func TestBytes(t *testing.T) {
	b := Init(nil)
	if want := "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff"; string(b) != want {
		t.Errorf("empty: %q", b)
	}
	for _, element := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		b = add(t, b, []byte(element))
	}
	want := "Z:1646 v:1,1 Z:5645 v:1,1 Z:1085 v:2,1 z:57 v:1,1 Z:4274 v:2,1 Z:2445 v:1,1 Z:622 v:1,1 Z:603"
	if got := string(AppendRuns(nil, b)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func (r *Ranks) equal(b []byte) error {
	var got Ranks
	if !got.Merge(b) {
		return fmt.Errorf("corrupt: %q", b)
	}
	for i, rank := range got {
		if rank != r[i] {
			return fmt.Errorf("register %d has rank %d, want %d", i, rank, r[i])
		}
	}
	return nil
}

// TestModel sets random registers, near to each other so that runs are split and joined.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, top := []int64{limit, 20, 0, 1 << 20}[r.IntN(4)], 1+r.IntN(60)
		b, want := Init(nil), Ranks{}
		for step := range 2000 {
			register, rank := r.IntN(Registers), byte(1+r.IntN(top))
			if r.IntN(3) > 0 {
				register = min(Registers-1, register/4000*4000+r.IntN(90))
			}
			wasDense := Dense(b)
			b2, changed, ok := Set(b, register, rank, limit)
			if !ok || changed != (rank > want[register]) {
				t.Fatalf("seed %d, step %d: changed %t, ok %t", seed, step, changed, ok)
			}
			if _, kept := Estimate(b2); changed && kept && !Dense(b2) {
				t.Fatalf("seed %d, step %d: the estimate is kept", seed, step)
			}
			b, want[register] = b2, max(want[register], rank)
			if !Dense(b) && (rank > maxSparseRank || int64(len(b)) > max(limit, 18)) || wasDense && !Dense(b) || !Valid(b) {
				t.Fatalf("seed %d, step %d: %q", seed, step, b)
			}
		}
		if err := want.equal(b); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		d, ok := ToDense(slices.Clone(b))
		if err := want.equal(d); err != nil || !ok {
			t.Fatalf("seed %d: dense: %v", seed, err)
		}
		written := slices.Clone(d)
		for i := range written[headerSize:] {
			written[headerSize+i] = byte(r.Uint32())
		}
		if want.Write(written); !bytes.Equal(written, d) {
			t.Fatalf("seed %d: Write differs", seed)
		}
		n, _ := Count(b)
		if m, _ := Count(d); n != m || n != want.Count() {
			t.Fatalf("seed %d: the estimates are %d, %d, %d", seed, n, m, want.Count())
		}
	}
}

func TestEstimates(t *testing.T) {
	b := Init(nil)
	for i := range 200_000 {
		b = add(t, b, strconv.AppendInt(nil, int64(i), 10))
		if n := i + 1; n&(n-1) == 0 {
			got, _ := Count(b)
			if wrong := math.Abs(float64(got) - float64(n)); wrong > 1+0.03*float64(n) {
				t.Errorf("%d elements: the estimate is %d", n, got)
			}
		}
	}
	if err := SelfTest(limit); err != nil {
		t.Error(err)
	}
}

// Registers above any rank of Hash, as a client may write them.
func TestHighestRanks(t *testing.T) {
	b, _ := ToDense(Init(nil))
	for i := range b[headerSize:] {
		b[headerSize+i] = 0xff
	}
	if n, ok := Count(b); !ok || n != math.MinInt64 {
		t.Errorf("the estimate is %d", n)
	}
	if Rank(b, Registers-1) != 63 || Rank(b, 0) != 63 {
		t.Error("a rank is not 63")
	}
}

func TestEstimate(t *testing.T) {
	b := Init(nil)
	if n, ok := Estimate(b); n != 0 || !ok {
		t.Errorf("empty: %d, %t", n, ok)
	}
	SetEstimate(b, 12345)
	if n, ok := Estimate(b); n != 12345 || !ok {
		t.Errorf("%d, %t", n, ok)
	}
	Forget(b)
	if _, ok := Estimate(b); ok {
		t.Error("not forgotten")
	}
}

func TestCorruptRuns(t *testing.T) {
	for name, c := range map[string]struct {
		runs string
		good bool
	}{
		"none":                     {"", false},
		"one register too few":     {"\x7f\xfe", false},
		"one too many":             {"\x7f\xff\x00", false},
		"a rank behind the last":   {"\x7f\xff\x80", false},
		"a rank across the end":    {"\x7f\xfe\x81", false},
		"half a run that counts 1": {"\x7f\xfe\x40", true},
		"half a run":               {"\x40", false},
	} {
		b := append(Init(nil)[:headerSize], c.runs...)
		if !Valid(b) {
			t.Errorf("%s: not Valid", name)
		}
		if ok := new(Ranks).Merge(b); ok != c.good {
			t.Errorf("%s: Merge is %t", name, ok)
		}
		if _, ok := ToDense(b); ok != c.good {
			t.Errorf("%s: ToDense is %t", name, ok)
		}
		if _, ok := Count(b); ok != c.good {
			t.Errorf("%s: Count is %t", name, ok)
		}
		if _, _, ok := Set(b, Registers-1, 60, limit); ok != c.good {
			t.Errorf("%s: Set of rank 60 is %t", name, ok)
		}
	}
	if _, _, ok := Set(append(Init(nil)[:headerSize], "\x7f\xfe"...), Registers-1, 1, limit); ok {
		t.Error("Set finds a register that is not there")
	}
}

func TestValid(t *testing.T) {
	d, _ := ToDense(Init(nil))
	for name, b := range map[string][]byte{
		"empty":       {},
		"short":       Init(nil)[:headerSize-1],
		"magic":       append([]byte("hyll"), Init(nil)[4:]...),
		"encoding":    append([]byte("HYLL\x02"), Init(nil)[5:]...),
		"short dense": d[:DenseSize-1],
		"long dense":  append(slices.Clone(d), 0),
	} {
		if Valid(b) {
			t.Errorf("%s is valid", name)
		}
	}
	if !Valid(d) || !Valid(Init(nil)) || !Valid(Init(nil)[:headerSize]) {
		t.Error("a good one is not valid")
	}
}

// FuzzPayload uses any bytes that are Valid. Nothing may panic, and what Set changes must
// stay as right, or as corrupt, as it was.
func FuzzPayload(f *testing.F) {
	f.Add([]byte("\x7f\xff"), uint16(5), byte(3))
	f.Add([]byte("\x7f\xfe\x40"), uint16(Registers-1), byte(3))
	f.Add([]byte("\x83\x83\x05\x50\x01"), uint16(9), byte(33))
	f.Add([]byte("\x5f\xff\x83\x83\x83\x5f\xf3"), uint16(1<<13+5), byte(2))
	f.Fuzz(func(t *testing.T, runs []byte, register uint16, rank byte) {
		b := append(Init(nil)[:headerSize], runs...)
		before := new(Ranks)
		good := before.Merge(b)
		if _, ok := Count(b); ok != good {
			t.Fatalf("Count of %q is %t, Merge %t", runs, ok, good)
		}
		AppendRuns(nil, b)
		at, rank := int(register%Registers), 1+rank%51
		out, changed, ok := Set(slices.Clone(b), at, rank, limit)
		if good && !ok {
			t.Fatalf("Set fails on %q", runs)
		}
		if !Valid(out) {
			t.Fatalf("Set makes %q", out)
		}
		if !good || len(runs) > 0 && runs[len(runs)-1]&^63 == longRun {
			return // Redis splits a run at the end that has no second byte, and so does Set
		}
		if changed != (rank > before[at]) {
			t.Fatalf("changed %t, the rank was %d and is %d", changed, before[at], rank)
		}
		before[at] = max(before[at], rank)
		if err := before.equal(out); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{0, 100, 1000, 100_000} {
		h := Init(nil)
		for i := range n {
			h = add(b, h, strconv.AppendInt(nil, int64(i), 10))
		}
		b.Run(fmt.Sprintf("elements=%d", n), func(b *testing.B) {
			work := make([]byte, 0, DenseSize)
			var element [8]byte
			b.ReportAllocs()
			for i := range b.N {
				element[0], element[1], element[2] = byte(i), byte(i>>8), byte(i>>16)
				register, rank := Hash(element[:])
				if Dense(h) {
					Set(h, register, min(rank, 1), limit)
				} else {
					Set(append(work[:0], h...), register, rank, limit)
				}
			}
		})
		b.Run(fmt.Sprintf("count/elements=%d", n), func(b *testing.B) {
			for range b.N {
				Count(h)
			}
		})
	}
}
