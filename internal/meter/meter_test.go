package meter

import (
	"math"
	"testing"
)

// TestBuckets: the buckets have no gaps, and each number is in one whose width is an eighth of
// it at most.
func TestBuckets(t *testing.T) {
	for i := range buckets - 1 {
		least, next := Least(i), Least(i+1)
		if bucketOf(least) != i || bucketOf(next-1) != i {
			t.Errorf("bucket %d is of %d to %d, which are in %d and %d", i, least, next-1, bucketOf(least), bucketOf(next-1))
		}
		if next-least > max(1, least/8) {
			t.Errorf("bucket %d is of %d to %d", i, least, next-1)
		}
	}
	if last := buckets - 1; bucketOf(Least(last)) != last || bucketOf(1<<maxBits) != last || bucketOf(math.MaxUint64) != last {
		t.Errorf("the last bucket is of %#x, and the largest number is in %d", Least(last), bucketOf(math.MaxUint64))
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	if counts, sum, most := h.Read(); len(counts) != 0 || sum != 0 || most != 0 {
		t.Errorf("empty: %v, sum %d, max %d", counts, sum, most)
	}
	for _, v := range []int64{-5, 0, 3, 3, 17} {
		h.Record(v)
	}
	counts, sum, most := h.Read()
	if len(counts) != 17 || counts[0] != 2 || counts[3] != 2 || counts[16] != 1 || sum != 23 || most != 17 {
		t.Errorf("counts %v, sum %d, max %d", counts, sum, most)
	}
}

// TestTurns: a turn's callbacks are timed in groups, and the longest group counts.
func TestTurns(t *testing.T) {
	var m Meter
	turn := func(calls int, laps ...int64) {
		m.TurnBegins(1000)
		for range calls {
			if m.Calls(1) {
				m.Lap(laps[0])
				laps = laps[1:]
			}
		}
		m.TurnEnds(1000, laps[0])
	}
	turn(0, 1004)
	if counts, _, _ := m.Callback.Read(); len(counts) != 0 {
		t.Error("a turn without callbacks has a longest one")
	}
	turn(Group, 1002, 1009)
	turn(2*Group, 1002, 1003, 1003)
	turn(1, 1001)
	_, sum, most := m.Callback.Read()
	if sum != 7+2+1 || most != 7 {
		t.Errorf("longest callbacks: sum %d, max %d", sum, most)
	}
	if _, sum, most := m.Turn.Read(); sum != 4+9+3+1 || most != 9 {
		t.Errorf("turns: sum %d, max %d", sum, most)
	}
}

func TestTally(t *testing.T) {
	var tally Tally
	for _, want := range []int64{7, 7, 0} {
		tally.Show(int(want), int(want)+1, int(want)+2)
		if w, b, n := tally.OutputWaiting.Load(), tally.Buffers.Load(), tally.BufferBytes.Load(); w != want || b != want+1 || n != want+2 {
			t.Errorf("%d, %d, %d; want %d, one more and two more", w, b, n, want)
		}
	}
}

// TestSharded: each loop has a place, and all of them are read.
func TestSharded(t *testing.T) {
	var s Sharded[int]
	for loop := range 3 * Shards {
		*s.Of(loop) += loop
	}
	sum, places := 0, 0
	s.All(func(n *int) { sum += *n; places++ })
	if want := 3 * Shards * (3*Shards - 1) / 2; sum != want || places != Shards {
		t.Errorf("the sum of %d places is %d, want %d", places, sum, want)
	}
}
