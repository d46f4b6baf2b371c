package loopstats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/internal/meter"
)

// samples returns n numbers of all sizes up to 2^40.
func samples(r *rand.Rand, n int) (all []int64) {
	for range n {
		all = append(all, r.Int64N(1<<r.IntN(40)))
	}
	return all
}

func histogram(all ...[]int64) Histogram {
	var h meter.Histogram
	for _, some := range all {
		for _, v := range some {
			h.Record(v)
		}
	}
	return recorded(&h)
}

// TestQuantile compares with the sorted numbers.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		all := samples(r, 1+r.IntN(1000))
		h := histogram(all)
		slices.Sort(all)
		for _, q := range []float64{-1, 0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1, 2} {
			rank := min(max(int(math.Ceil(q*float64(len(all))))-1, 0), len(all)-1)
			if got, want := h.Quantile(q), all[rank]; got < want || got > want+want/8 {
				t.Errorf("quantile %v of %d numbers is %d, want %d", q, len(all), got, want)
			}
		}
		sum := int64(0)
		for _, v := range all {
			sum += v
		}
		if h.Count() != uint64(len(all)) || h.Sum() != sum || h.Max() != all[len(all)-1] {
			t.Errorf("count %d, sum %d, max %d; want %d, %d, %d", h.Count(), h.Sum(), h.Max(), len(all), sum, all[len(all)-1])
		}
		for shift := range 40 {
			if got, want := h.Below(1<<shift), count(all, 1<<shift); got != want {
				t.Errorf("%d numbers are below 2^%d, want %d", got, shift, want)
			}
		}
		if h.Below(-1) != 0 || h.Below(1<<60) != uint64(len(all)) {
			t.Errorf("%d below -1, %d below 2^60", h.Below(-1), h.Below(1<<60))
		}
	}
}

func count(all []int64, below int64) (n uint64) {
	for _, v := range all {
		if v < below {
			n++
		}
	}
	return n
}

// TestMergeAndSince: merged is what both recorded, and since is what came later.
func TestMergeAndSince(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		a, b := samples(r, r.IntN(100)), samples(r, r.IntN(100))
		both := histogram(a, b)
		same(t, "merged", histogram(a).Merge(histogram(b)), both)
		later := both.Since(histogram(a))
		want := histogram(b)
		if later.Max() < want.Max() || later.Max() > want.Max()+want.Max()/8 {
			t.Errorf("the maximum is %d, want %d", later.Max(), want.Max())
		}
		later.max = want.max
		same(t, "since", later, want)
	}
}

func same(t *testing.T, what string, got, want Histogram) {
	t.Helper()
	if !slices.Equal(got.counts, want.counts) || got.count != want.count || got.sum != want.sum || got.max != want.max {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// TestLargeNumbers: they are one size.
func TestLargeNumbers(t *testing.T) {
	h := histogram([]int64{1 << 45, math.MaxInt64, 1})
	if h.Max() != math.MaxInt64 || h.Quantile(0.1) != 1 || h.Count() != 3 || h.Below(1<<40) != 1 {
		t.Errorf("max %d, least %d, count %d, %d below 2^40", h.Max(), h.Quantile(0.1), h.Count(), h.Below(1<<40))
	}
}

func TestEmpty(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 || h.Sum() != 0 || h.Count() != 0 || h.Below(9) != 0 {
		t.Errorf("%+v", h)
	}
	same(t, "merged", h.Merge(h), h)
	same(t, "since", h.Since(h), h)
}
