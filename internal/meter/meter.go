// Package meter counts what a loop does, for package loopstats. A loop writes to its Tally and
// its Meter without a lock, and any goroutine may read them at any time.
package meter

import (
	"math"
	"math/bits"

	"github.com/rondo-go/rondo/internal/share"
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
	Shed

	Causes = iota // their number
)

// A Failure is why a TLS handshake failed.
type Failure uint8

// The failures, in the order of package loopstats, which documents them.
const (
	Late Failure = iota
	Gone
	NotTLS
	Alert
	Certificate
	Handshake

	Failures = iota // their number
)

// A Tally counts what happens seldom, so that a loop can always count it. The loop writes to
// it, and anybody reads.
type Tally struct {
	Ended         [Causes]share.Uint64
	Handshakes    share.Uint64 // of TLS, that were done
	NoHandshakes  [Failures]share.Uint64
	OutputStops   share.Uint64 // full output has stopped the reading of a connection
	OutputWaiting share.Int64  // bytes, at the end of the last turn
	Buffers       share.Int64  // in use, likewise
	BufferBytes   share.Int64  // of these
}

// Show publishes what is there at the end of a turn.
func (t *Tally) Show(waiting, buffers, bytes int) {
	if int64(waiting) != t.OutputWaiting.Load() {
		t.OutputWaiting.Store(int64(waiting))
	}
	if int64(buffers) != t.Buffers.Load() {
		t.Buffers.Store(int64(buffers))
	}
	if int64(bytes) != t.BufferBytes.Load() {
		t.BufferBytes.Store(int64(bytes))
	}
}

// Shards is how many places a Sharded has.
const Shards = 8

// A Sharded has the counts of things that several loops serve, of a type C with atomic numbers.
// Loops mostly have a place each: if all counted in one, its memory would travel between the
// processors. Anybody may read the sum.
type Sharded[C any] struct{ places [Shards]padded[C] }

// padded keeps the places in different lines of the caches.
type padded[C any] struct {
	c C
	_ [128]byte
}

// Of returns the place of a loop with that number.
func (s *Sharded[C]) Of(loop int) *C { return &s.places[uint(loop)%Shards].c }

// All calls f with each place.
func (s *Sharded[C]) All(f func(*C)) {
	for i := range s.places {
		f(&s.places[i].c)
	}
}

// A Meter has what a loop measures while somebody wants it. The loop calls the methods, and
// anybody reads the Histograms. Times are in nanoseconds.
type Meter struct {
	Turn, Callback, Events, PostDelay, TimerDelay Histogram

	began   int64 // of this turn
	calls   int32 // callbacks in this turn
	lap     int64 // when the present group of callbacks began
	longest int64 // time that a group of this turn took
	events  int64 // that this turn's wait brought

	next    int64 // small turns that begin before are passed over
	large   int64 // time of all turns that were not small
	passed  passed
	calling passed // those of passed that made callbacks
}

// Group is how many callbacks are timed together. The clock costs several times as much as the
// rest of what is measured for a callback.
const Group = 64

const (
	// small is how many callbacks a turn makes that pays for its measuring by itself.
	small = 8
	// Pause is the least time between the beginnings of two smaller turns that are measured.
	// It holds many small turns of a loop that is busy, and few of one that is not.
	Pause = 1_000_000
)

// passed are small turns that were not measured since the last one that was. They count as the
// next one.
type passed struct {
	turns uint64
	since int64 // when the first one began, less the time of all large turns before
}

// add adds a turn that began at since.
func (p *passed) add(since int64) {
	if p.turns == 0 {
		p.since = since
	}
	p.turns++
}

// record records v for a turn, and for those that were passed over. Their sum cannot be more
// than the time in which they happened, which ends at until.
func (p *passed) record(h *Histogram, v, until int64) {
	rest := int64(0)
	if p.turns > 0 {
		rest = min(v*int64(p.turns), until-p.since)
	}
	h.add(v, 1+p.turns, v+rest)
	p.turns = 0
}

// Begins begins to measure, in a turn that has begun at now.
func (m *Meter) Begins(now int64) {
	m.passed, m.calling = passed{}, passed{}
	m.TurnBegins(now)
}

// TurnBegins begins a turn, at now.
func (m *Meter) TurnBegins(now int64) { m.began, m.lap, m.longest, m.calls = now, now, 0, 0 }

// Calls counts n callbacks, up to Group, the last of which begins. If it returns true, the loop
// calls Lap.
func (m *Meter) Calls(n int32) bool {
	before := m.calls
	m.calls += n
	return before/Group != m.calls/Group
}

// Lap ends a group of callbacks, at now.
func (m *Meter) Lap(now int64) {
	m.longest = max(m.longest, now-m.lap)
	m.lap = now
}

// Brought says how many events the wait before this turn brought.
func (m *Meter) Brought(events int64) { m.events = events }

// Passes ends a turn, after n more callbacks, without the time: it reports whether the turn need
// not be measured. Otherwise the loop calls TurnEnds. What a turn does decides nothing but whether
// it is small, and of the small turns only the time of their beginning. So what is measured stands
// for the others.
func (m *Meter) Passes(n int32) bool {
	m.calls += n
	if m.calls >= small || m.began >= m.next {
		return false
	}
	since := m.began - m.large
	m.passed.add(since)
	if m.calls > 0 {
		m.calling.add(since)
	}
	return true
}

// TurnEnds ends a turn, at now.
func (m *Meter) TurnEnds(now int64) {
	if m.calls >= small {
		m.large += now - m.began
		m.Turn.Record(now - m.began)
		m.Events.Record(m.events)
		m.Lap(now)
		m.Callback.Record(m.longest)
		return
	}
	m.next = m.began + Pause
	until := m.began - m.large
	turns := 1 + m.passed.turns
	m.Events.add(m.events, turns, m.events*int64(turns))
	m.passed.record(&m.Turn, now-m.began, until)
	if m.calls > 0 {
		m.Lap(now)
		m.calling.record(&m.Callback, m.longest, until)
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
	sum, max share.Uint64
	counts   [buckets]share.Uint64
}

// Record counts v. A negative v counts as 0.
func (h *Histogram) Record(v int64) { h.add(v, 1, v) }

// add counts v so many times, with a sum of all of them.
func (h *Histogram) add(v int64, times uint64, sum int64) {
	n := uint64(max(v, 0))
	if n > h.max.Load() {
		h.max.Store(n)
	}
	h.sum.Add(uint64(max(sum, 0)))
	h.counts[bucketOf(n)].Add(times) // last, see Read
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
