package timer

import (
	"math/bits"

	"github.com/rondo-go/rondo/internal/backend"
)

// wheel is the hierarchical timing wheel that Set was compared with. It differs from a
// Set in one way: its next is a lower bound of the earliest deadline. At that time
// timers cascade even if none fires.
//
// Level l has 64 slots of 64^l ticks. A timer lies in the slot of its tick, at the
// lowest level where it shares all higher digits with the current tick. Timers of the
// current tick or an earlier one are in due, a Set, which gives the exact order within
// a tick.
type wheel struct {
	least backend.Time // as in Set
	tick  int64        // the current one
	due   Set
	slots [levels][64]wheelTimer // heads of rings
	used  [levels]uint64         // bit per slot that is not empty
	size  int
}

const (
	levels   = 8  // 6 bits each: enough for the 43 bits of a tick
	tickBits = 20 // a tick is about a millisecond
)

type wheelTimer struct {
	Timer      // in due, where the wheelTimer itself is the Owner
	at         backend.Time
	next, prev *wheelTimer // in a slot's ring; nil: in none
	level      uint8
	slot       uint8
	fire       Owner // the user's Owner
}

// Fire passes the firing of a wheelTimer in due on to the user's Owner.
func (t *wheelTimer) Fire(_ *Timer, now backend.Time) { t.fire.Fire(&t.Timer, now) }

func (w *wheel) start(t *wheelTimer, at backend.Time) {
	w.stop(t)
	t.at = max(at, w.least)
	w.size++
	w.insert(t)
}

func (w *wheel) insert(t *wheelTimer) {
	tick := int64(t.at) >> tickBits
	if tick <= w.tick {
		t.Owner = t
		w.due.least = t.at // the wheel decides
		w.due.Start(&t.Timer, t.at)
		return
	}
	level := (bits.Len64(uint64(tick^w.tick)) - 1) / 6
	slot := tick >> (6 * level) & 63
	head := &w.slots[level][slot]
	if w.used[level]&(1<<slot) == 0 {
		w.used[level] |= 1 << slot
		head.next, head.prev = head, head
	}
	t.level, t.slot = uint8(level), uint8(slot)
	t.prev, t.next = head.prev, head
	t.prev.next, head.prev = t, t
}

func (w *wheel) stop(t *wheelTimer) bool {
	if t.next == nil {
		if !w.due.Stop(&t.Timer) {
			return false
		}
		w.size--
		return true
	}
	t.prev.next, t.next.prev = t.next, t.prev
	if t.next == t.prev {
		if head := &w.slots[t.level][t.slot]; head.next == head {
			w.used[t.level] &^= 1 << t.slot
		}
	}
	t.next, t.prev = nil, nil
	w.size--
	return true
}

// next returns a lower bound of the earliest deadline. It is exact for timers of the
// current tick, and otherwise the start of the first slot in use.
func (w *wheel) next() backend.Time {
	if w.due.Len() > 0 {
		return w.due.Next()
	}
	for level := range levels {
		if u := w.used[level]; u != 0 {
			return backend.Time(w.slotStart(level, bits.TrailingZeros64(u)) << tickBits)
		}
	}
	return backend.Forever
}

// slotStart returns the first tick of a slot. Its higher digits are the current tick's,
// and all slots in use are after the current tick's digit.
func (w *wheel) slotStart(level, slot int) int64 {
	above := w.tick >> (6 * (level + 1)) << (6 * (level + 1))
	return above | int64(slot)<<(6*level)
}

func (w *wheel) expire(now backend.Time, limit int) (fired int) {
	w.least = now + 1
	for fired < limit {
		if fired += w.fireDue(now, limit-fired); fired == limit || !w.advance(int64(now)>>tickBits) {
			break
		}
	}
	return fired
}

func (w *wheel) fireDue(now backend.Time, limit int) int {
	n := 0
	for n < limit && w.due.Next() <= now && w.due.Len() > 0 {
		w.size-- // before Fire, which may start it again
		n += w.due.Expire(now, 1)
	}
	return n
}

// advance moves the current tick to the next slot in use, or to target if that comes
// first, and moves that slot's timers down. It reports whether there was a slot.
func (w *wheel) advance(target int64) bool {
	for level := range levels {
		if w.used[level] == 0 {
			continue
		}
		slot := bits.TrailingZeros64(w.used[level])
		start := w.slotStart(level, slot)
		if start > target {
			break
		}
		w.tick = start
		w.used[level] &^= 1 << slot
		head := &w.slots[level][slot]
		for t := head.next; t != head; {
			next := t.next
			t.next, t.prev = nil, nil
			w.insert(t)
			t = next
		}
		return true
	}
	w.tick = max(w.tick, target)
	return false
}
