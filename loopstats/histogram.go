package loopstats

import (
	"math"
	"slices"

	"github.com/rondo-go/rondo/internal/meter"
)

// A Histogram has how often numbers of each size were recorded: times in nanoseconds, or numbers of
// events. It knows numbers below 16 exactly, and others within an eighth. Numbers from 15*2^36 on
// (17 minutes) are one size. A Histogram never changes. The zero Histogram is empty.
type Histogram struct {
	counts          []uint64 // of the buckets of meter, without empty ones at the end
	count, sum, max uint64
}

func recorded(h *meter.Histogram) Histogram {
	counts, sum, most := h.Read()
	return of(counts, sum, most)
}

func of(counts []uint64, sum, most uint64) Histogram {
	h := Histogram{counts: counts, sum: sum, max: most}
	for _, n := range counts {
		h.count += n
	}
	return h
}

// Count returns how many numbers were recorded.
func (h Histogram) Count() uint64 { return h.count }

// Sum returns the exact sum of the numbers. (Some stand for others that were not measured: see the
// package.)
func (h Histogram) Sum() int64 { return toInt(h.sum) }

// Max returns the exact maximum of the numbers, 0 if there are none. In a result of Since it is
// rounded up as Quantile's.
func (h Histogram) Max() int64 { return toInt(h.max) }

// Quantile returns a number that the part q of all numbers does not exceed: 0.5 for the median. It
// is too high by an eighth at most, and never too low. It is 0 if there are no numbers. A q below 0
// counts as 0, and one above 1 as 1.
func (h Histogram) Quantile(q float64) int64 {
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(h.count)))
	rank = max(min(rank, h.count), 1)
	for i, n := range h.counts {
		if n >= rank {
			return toInt(min(meter.Least(i+1)-1, h.max))
		}
		rank -= n
	}
	return h.Max()
}

// Below returns how many of the numbers are less than n. It is exact for an n below 16 and for
// powers of two up to 2^39; otherwise numbers that are less than n by an eighth may be missing.
func (h Histogram) Below(n int64) (count uint64) {
	for i, c := range h.counts {
		if meter.Least(i+1) > uint64(max(n, 0)) {
			break
		}
		count += c
	}
	return count
}

// Merge returns the Histogram of the numbers of both, for instance of two loops.
func (h Histogram) Merge(o Histogram) Histogram {
	if len(h.counts) < len(o.counts) {
		h, o = o, h
	}
	counts := slices.Clone(h.counts)
	for i, n := range o.counts {
		counts[i] += n
	}
	return of(counts, h.sum+o.sum, max(h.max, o.max))
}

// Since returns the Histogram of the numbers that were recorded since earlier, an older one of
// the same measure of the same loop: what happened in the last second, say.
func (h Histogram) Since(earlier Histogram) Histogram {
	counts := slices.Clone(h.counts)
	used := 0
	for i := range counts {
		if i < len(earlier.counts) {
			counts[i] -= min(counts[i], earlier.counts[i])
		}
		if counts[i] > 0 {
			used = i + 1
		}
	}
	most := uint64(0)
	if used > 0 {
		most = min(h.max, meter.Least(used)-1)
	}
	if used == len(h.counts) && h.max > earlier.max {
		most = h.max
	}
	return of(counts[:used], h.sum-min(h.sum, earlier.sum), most)
}

func toInt(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
