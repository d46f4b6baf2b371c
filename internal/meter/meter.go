// Package meter counts what a loop does, for package loopstats. A loop writes to its Tally and
// its Meter without a lock, and any goroutine may read them at any time.
package meter

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// A Cause is why a connection was closed.
type Cause uint8

// The causes, in the order of package loopstats, which documents them.
const (
	PeerEnd Cause = iota
	OwnEnd
	Reset
	Failed
	Idle
	Deadline
	Linger
	Full
	Filter
	Refused
	Panic
	Aborted
	Handler

	Causes = iota // their number
)

// A Tally counts what happens seldom, so that a loop can always count it. The loop writes to
// it, and anybody reads.
type Tally struct {
	Ended         [Causes]atomic.Uint64
	OutputStops   atomic.Uint64 // full output has stopped the reading of a connection
	OutputWaiting atomic.Int64  // bytes, at the end of the last turn
	Buffers       atomic.Int64  // in use, likewise
}

// Show publishes what is there at the end of a turn.
func (t *Tally) Show(waiting, buffers int) {
	if int64(waiting) != t.OutputWaiting.Load() {
		t.OutputWaiting.Store(int64(waiting))
	}
	if int64(buffers) != t.Buffers.Load() {
		t.Buffers.Store(int64(buffers))
	}
}

// A Meter has what a loop measures while somebody wants it. The loop calls the methods, and
// anybody reads the Histograms. Times are in nanoseconds.
type Meter struct {
	Turn, Callback, Events, PostDelay, TimerDelay Histogram

	calls   int32 // callbacks in this turn
	group   int32 // those of them since lap
	lap     int64 // when the present group of callbacks began
	longest int64 // time that a group of this turn took
}

// Group is how many callbacks are timed together. The clock costs several times as much as the
// rest of what is measured for a callback.
const Group = 64

// TurnBegins begins a turn, at now.
func (m *Meter) TurnBegins(now int64) { m.calls, m.group, m.lap, m.longest = 0, 0, now, 0 }

// Calls counts n callbacks, the last of which begins. If it returns true, the loop calls Lap.
func (m *Meter) Calls(n int32) bool {
	m.calls += n
	m.group += n
	return m.group >= Group
}

// Lap ends a group of callbacks, at now.
func (m *Meter) Lap(now int64) {
	m.longest = max(m.longest, now-m.lap)
	m.lap, m.group = now, 0
}

// TurnEnds ends a turn that began at began.
func (m *Meter) TurnEnds(began, now int64) {
	m.Turn.Record(now - began)
	if m.calls > 0 {
		m.Lap(now)
		m.Callback.Record(m.longest)
	}
}

const (
	fine    = 3  // a doubling has 1<<fine buckets
	maxBits = 40 // longer numbers are in the last bucket: in nanoseconds they are 18 minutes
	buckets = (maxBits - fine + 1) << fine
)

// A Histogram counts numbers in buckets that grow with them: one of n has a width of n/8 at
// most. One goroutine records, and any may read.
type Histogram struct {
	sum, max atomic.Uint64
	counts   [buckets]atomic.Uint64
}

// Record counts v. A negative v counts as 0.
func (h *Histogram) Record(v int64) {
	n := uint64(max(v, 0))
	if n > h.max.Load() {
		h.max.Store(n)
	}
	h.sum.Add(n)
	h.counts[bucketOf(n)].Add(1) // last, see Read
}

// bucketOf returns the number of the bucket that counts n.
func bucketOf(n uint64) int {
	shift := max(bits.Len64(n)-fine-1, 0)
	return min(shift<<fine+int(n>>shift), buckets-1)
}

// Least returns the least number that a bucket counts. The last bucket has no end.
func Least(bucket int) uint64 {
	if bucket == buckets {
		return math.MaxUint64
	}
	shift := max(bucket>>fine-1, 0)
	return uint64(bucket-shift<<fine) << shift
}

// Read returns what was recorded: the counts of the buckets, without the empty ones at the end,
// and the sum and the maximum of the numbers. What is recorded meanwhile may be missing in the
// counts, which are read first; what they count is in the sum and the maximum.
func (h *Histogram) Read() (counts []uint64, sum, most uint64) {
	used := 0
	var all [buckets]uint64
	for i := range h.counts {
		if all[i] = h.counts[i].Load(); all[i] > 0 {
			used = i + 1
		}
	}
	return append(counts, all[:used]...), h.sum.Load(), h.max.Load()
}
