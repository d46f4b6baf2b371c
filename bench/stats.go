package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
)

// wide is half the width of an interval from which a ratio is marked as vague.
const wide = 0.05

// enough is the minimum number of repetitions for an interval.
const enough = 5

// A ratio is the median of pairwise ratios, with its 95% confidence interval by
// the bootstrap.
type ratio struct {
	Median, Low, High float64
	N                 int
	told              bool // the 99% interval excludes 1
}

// bootstrapped computes a ratio from the ratios of repetitions. It draws whole
// repetitions, since each has its own processes. The same ratios always give
// the same interval.
func bootstrapped(ratios []float64) ratio {
	const draws = 4000
	if len(ratios) == 0 {
		return ratio{}
	}
	random := rand.New(rand.NewPCG(1, 2))
	drawn, resample := make([]float64, draws), make([]float64, len(ratios))
	for i := range drawn {
		for j := range resample {
			resample[j] = ratios[random.IntN(len(ratios))]
		}
		drawn[i] = median(resample)
	}
	slices.Sort(drawn)
	interval := func(confidence float64) (low, high float64) {
		tail := (1 - confidence) / 2
		return stat.Quantile(tail, stat.Empirical, drawn, nil), stat.Quantile(1-tail, stat.Empirical, drawn, nil)
	}
	r := ratio{Median: median(ratios), N: len(ratios)}
	low, high := interval(0.99)
	r.told = low > 1 || high < 1
	r.Low, r.High = interval(0.95)
	return r
}

// apartByChance returns how likely the intervals of sessions of these sizes do not
// all overlap, though every session measures the same.
func apartByChance(sizes []int) float64 {
	const trials = 20_000
	random := rand.New(rand.NewPCG(3, 4))
	ends := make([]ratio, len(sizes)) // of the intervals, as ranks from 1 on
	for i, n := range sizes {
		ranks := make([]float64, n)
		for k := range ranks {
			ranks[k] = float64(k + 1)
		}
		ends[i] = bootstrapped(ranks)
	}
	apart := 0
	for range trials {
		low, high := 0.0, 1.0
		for i, n := range sizes {
			values := make([]float64, n)
			for k := range values {
				values[k] = random.Float64()
			}
			slices.Sort(values)
			low, high = max(low, ranked(values, ends[i].Low)), min(high, ranked(values, ends[i].High))
		}
		if low > high {
			apart++
		}
	}
	return float64(apart) / trials
}

// ranked returns the value of a rank, which is between those of two neighbours if
// the rank is not whole.
func ranked(sorted []float64, rank float64) float64 {
	k := int(rank)
	v := sorted[k-1]
	if part := rank - float64(k); part > 0 {
		v += part * (sorted[k] - v)
	}
	return v
}

// median returns the median of at least one value.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// differs reports whether there is a difference, with 99% confidence. A
// comparison has two figures, so 95% intervals would find a difference in every
// tenth comparison of a server with itself.
func (r ratio) differs() bool { return r.told }

// vague reports whether the interval is too wide, or the repetitions too few,
// for the figure to be worth much.
func (r ratio) vague() bool { return r.N < enough || r.High-r.Low > 2*wide*r.Median }

// String marks a vague ratio with ~.
func (r ratio) String() string {
	mark := ""
	if r.vague() {
		mark = "~"
	}
	switch {
	case r.N == 0:
		return none
	case r.N < enough:
		return fmt.Sprintf("%s%.2f", mark, r.Median)
	}
	return fmt.Sprintf("%s%.2f (%.2f–%.2f)", mark, r.Median, r.Low, r.High)
}

// thousands writes a rounded number with commas.
func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
