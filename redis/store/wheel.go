package store

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Never is a deadline that does not come.
const Never int64 = math.MaxInt64

// A wheel orders the keys that expire by their deadlines, with 8 bytes a key. It has a
// level for each byte of a time in milliseconds, and a level has a slot for each value of
// that byte. An item is at the level of the highest byte in which its time differs from
// the wheel's time, so the earliest items are in the first slot in use of the lowest
// level. When the wheel's time reaches a slot above level 0, the items of the slot move to
// lower levels. That happens in pieces, within a budget.
//
// An item is no owner of its key: it names a bucket and a tag, so that entries may move.
// After its key was deleted, or got another deadline, it is stale. It is dropped when its
// time comes. See table.schedule for how a key that gets later and later deadlines has one
// item, and restock for what bounds the stale ones.
type wheel struct {
	blocks arena
	time   int64 // no item is earlier, but in taken
	slots  *[wheelLevels][wheelSlots]Handle
	used   [wheelLevels][wheelSlots / 64]uint64
	items  int

	// The slot whose items are being moved or fired.
	taken      Handle
	takenLevel int
	takenStart int64
}

const (
	wheelLevels = 8
	wheelSlots  = 256
	slotMask    = wheelSlots - 1
)

// An item is 8 bytes: the tag of a key's hash, the hash's low 32 bits, and the low 24 bits
// of the item's time. At level 3 and below, the rest of the time is known from the slot. An
// item at a higher level asks the entry.
type item uint64

const (
	itemSize     = 8
	itemTimeBits = 24
	itemTimeMask = 1<<itemTimeBits - 1
	exactLevels  = 4
)

func newItem(tag byte, low uint32, time int64) item {
	return item(tag)<<56 | item(low)<<itemTimeBits | item(time&itemTimeMask)
}

func (i item) tag() byte   { return byte(i >> 56) }
func (i item) low() uint32 { return uint32(i >> itemTimeBits) }

// A block is a cell with items, in the chain of a slot: a head of 8 bytes (the Handle of
// the next block, the number of items, whether the block is a big one) and the items. A
// chain ends with a small block, since most slots have few items.
const (
	blockHead  = 8
	smallBlock = 64
	bigBlock   = 512
	smallItems = (smallBlock - blockHead) / itemSize
	bigItems   = (bigBlock - blockHead) / itemSize

	blockCount = 5 // positions in the head
	blockBig   = 6
)

func (w *wheel) block(h Handle) []byte { return w.blocks.bytes(h) }

func nextBlock(b []byte) Handle { return Handle(binary.LittleEndian.Uint64(b) & handleMask) }

// add adds an item for a key of a hash.
func (w *wheel) add(tag byte, low uint32, time int64) {
	if w.slots == nil {
		w.slots = new([wheelLevels][wheelSlots]Handle)
	}
	time = max(time, w.time)
	level := 0
	if differs := uint64(time ^ w.time); differs != 0 {
		level = (bits.Len64(differs) - 1) / 8
	}
	slot := time >> (8 * level) & slotMask
	w.used[level][slot/64] |= 1 << (slot % 64)
	w.items++
	w.push(&w.slots[level][slot], newItem(tag, low, time))
}

// push adds an item to a chain.
func (w *wheel) push(head *Handle, i item) {
	var b []byte
	count, room := 0, 0
	if *head != 0 {
		b = w.block(*head)
		count, room = int(b[blockCount]), smallItems
		if b[blockBig] != 0 {
			room = bigItems
		}
	}
	if count == room {
		size, big := smallBlock, byte(0)
		if *head != 0 {
			size, big = bigBlock, 1
		}
		h := w.blocks.alloc(size)
		b = w.block(h)
		binary.LittleEndian.PutUint64(b, uint64(*head))
		b[blockBig] = big
		count = 0
		*head = h
	}
	binary.LittleEndian.PutUint64(b[blockHead+count*itemSize:], uint64(i))
	b[blockCount] = byte(count + 1)
}

// pop takes an item from a chain that is not empty.
func (w *wheel) pop(head *Handle) item {
	b := w.block(*head)
	count := int(b[blockCount]) - 1
	i := readItem(b, count)
	b[blockCount] = byte(count)
	if count == 0 {
		h := *head
		*head = nextBlock(b)
		w.blocks.free(h)
	}
	return i
}

func readItem(b []byte, n int) item {
	return item(binary.LittleEndian.Uint64(b[blockHead+n*itemSize:]))
}

// first returns the level, slot and beginning of the first slot in use. ok is false if
// there is none.
func (w *wheel) first() (level, slot int, start int64, ok bool) {
	for level := range w.used {
		for i, word := range w.used[level] {
			if word != 0 {
				slot := i*64 + bits.TrailingZeros64(word)
				above := uint(8 * (level + 1))
				return level, slot, w.time>>above<<above | int64(slot)<<(8*level), true
			}
		}
	}
	return 0, 0, 0, false
}

// next returns a time before which the wheel has nothing to do, or Never.
func (w *wheel) next() int64 {
	if w.taken != 0 {
		return w.time
	}
	if _, _, start, ok := w.first(); ok {
		return max(start, w.time)
	}
	return Never
}

// turn takes the first slot, if its time has come. It reports whether there are items in
// taken.
func (w *wheel) turn(now int64) bool {
	if w.taken != 0 {
		return true
	}
	level, slot, start, ok := w.first()
	if !ok || start > now {
		w.time = max(w.time, now)
		return false
	}
	w.time = max(w.time, start)
	w.taken, w.takenLevel, w.takenStart = w.slots[level][slot], level, start
	w.slots[level][slot] = 0
	w.used[level][slot/64] &^= 1 << (slot % 64)
	return true
}

// take takes an item from the slot. exact is false if the item does not know its time.
func (w *wheel) take() (i item, time int64, exact bool) {
	w.items--
	i = w.pop(&w.taken)
	if w.takenLevel >= exactLevels {
		return i, 0, false
	}
	return i, w.takenStart&^itemTimeMask | int64(i&itemTimeMask), true
}
