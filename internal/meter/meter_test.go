package meter

import (
	"math"
	"math/rand/v2"
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
		m.TurnEnds(laps[0])
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

// TestPassed: of small turns that follow each other closely some are measured, and count for the
// others. What is measured is near to what happened, and no more time than there was.
func TestPassed(t *testing.T) {
	var m Meter
	random := rand.New(rand.NewPCG(1, 2))
	var turns, calling, long, read uint64
	var worked int64
	now := int64(1)
	m.Begins(now)
	for now < 20e9 {
		m.TurnBegins(now)
		calls := random.Int32N(3)
		took := 10_000 + random.Int64N(20_000)
		switch {
		case random.IntN(50) == 0: // a large turn
			calls = small + random.Int32N(100)
			took *= int64(calls)
		case random.IntN(1000) == 0: // a slow callback
			calls, took = 1, 2e6
			long++
		}
		m.Brought(int64(calls))
		turns++
		if calls > 0 {
			calling++
		}
		worked += took
		now += took
		if !m.Passes(calls) {
			read++
			m.TurnEnds(now)
		}
		if random.IntN(3) == 0 {
			now += random.Int64N(50_000) // the loop waits
		}
	}
	counts, sum, _ := m.Turn.Read()
	if n := total(counts) + m.passed.turns; n != turns {
		t.Errorf("%d turns were counted, and %d happened", n, turns)
	}
	if read > turns/8 {
		t.Errorf("the clock was read in %d turns of %d", read, turns)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if got < 0.9*want || got > 1.1*want {
			t.Errorf("%s: measured %v, happened %v", what, got, want)
		}
	}
	near("time", float64(sum), float64(worked))
	slow := uint64(0)
	for i := bucketOf(1_900_000); i <= bucketOf(2_100_000) && i < len(counts); i++ {
		slow += counts[i]
	}
	if slow < long/2 || slow > 2*long+turns/50 { // a large turn may take as long
		t.Errorf("%d slow turns, want about %d", slow, long)
	}
	counts, sum, _ = m.Callback.Read()
	near("turns with callbacks", float64(total(counts)), float64(calling))
	if int64(sum) > now {
		t.Errorf("callbacks took %d ns of %d", sum, now)
	}
}

func total(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestPassedOutlier: turns that were passed over count as the next one that is measured, but not
// with more time than there was.
func TestPassedOutlier(t *testing.T) {
	var m Meter
	m.Begins(0)
	for i := range int64(9) { // at 0 it is measured, and passed over until Pause
		m.TurnBegins(i * Pause / 8)
		switch {
		case i == 8:
			if m.Passes(1) {
				t.Error("a turn was passed over after the pause")
			}
			m.TurnEnds(Pause + 1e9)
		case m.Passes(1) != (i > 0):
			t.Errorf("turn %d is passed over: %v", i, i <= 0)
		case i == 0:
			m.TurnEnds(10)
		}
	}
	counts, sum, most := m.Turn.Read()
	if n := total(counts); n != 9 || most != 1e9 || sum != 10+1e9+7*Pause/8 {
		t.Errorf("%d turns, %d ns, the longest %d", n, sum, most)
	}
	m.TurnBegins(5e9)
	m.Passes(0)
	m.TurnEnds(5e9 + 1)
	if counts, _, _ := m.Callback.Read(); total(counts) != 9 {
		t.Errorf("%d turns with callbacks", total(counts))
	}
	m.Begins(6e9)
	if m.passed != (passed{}) || m.calling != (passed{}) {
		t.Error("turns of before count")
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
