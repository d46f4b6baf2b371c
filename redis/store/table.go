package store

import "math/bits"

const (
	minLevel = 4 // the smallest table has 16 buckets

	// A table has maxLoad entries a bucket at most, and minLoad at least, on average: it
	// splits and merges one bucket at a time to keep that.
	maxLoad = 8
	minLoad = 6
)

// A table holds the keys of a DB: an arena with their entries, and a hash table of Handles
// by linear hashing. The table has 1<<level + split buckets. The buckets below split, and
// those above 1<<level, are chosen by level+1 bits of the hash, the others by level bits.
// To grow, the table splits the bucket at split, and the split moves on; so no operation
// pays for more than one bucket.
//
// A bucket is the only place that knows an entry's Handle. So an entry moves by a copy and
// a store.
type table struct {
	store *Store
	space *space
	cells arena
	over  overflow
	wheel wheel
	snap  *Snapshot // or nil
	sweep sweep

	segments []uint32 // chunks of the buckets
	level    uint
	split    uint64
	count    int
	chain    int   // buckets of the longest chain ever
	expiring int   // keys with a deadline
	dying    int64 // bytes of deleted values that are still in cells
	retired  bool  // by Flush, but a Snapshot still reads it

	restocking bool // see restock
	restockAt  uint64
	sampleAt   uint64 // see sampleDated

	moving []moving // see splitOne
	sink   byte     // see touch
}

func newTable(s *Store) *table {
	t := &table{store: s, space: s.space, level: minLevel, chain: 1}
	t.cells.init(s.space)
	t.over = overflow{space: s.space, owner: t.cells.id}
	t.newWheel()
	return t
}

// buckets returns the number of buckets.
func (t *table) buckets() uint64 { return 1<<t.level + t.split }

// at returns bucket i. The table must not be empty.
func (t *table) at(i uint64) bucket {
	mem := t.space.mem[t.segments[i>>segmentBits]]
	return bucket(mem[i&segmentMask*bucketSize:])
}

// index returns the bucket of a hash.
func (t *table) index(hash uint64) uint64 {
	i := hash & (1<<t.level - 1)
	if i < t.split {
		i = hash & (2<<t.level - 1)
	}
	return i
}

// next returns the bucket after b in its chain, or nil.
func (t *table) next(b bucket) bucket {
	if n := link(b); n != 0 {
		return t.over.at(n)
	}
	return nil
}

func (t *table) entry(h Handle) entry { return entry(t.space.bytes(h)) }

// find returns the Item of a key, also if it has expired, or the zero Item.
func (t *table) find(key []byte, hash uint64) Item {
	if t.count == 0 {
		return Item{}
	}
	tag := tagOf(hash)
	for b := t.at(t.index(hash)); b != nil; b = t.next(b) {
		for m := candidates(b, tag); m != 0; m &= m - 1 {
			slot := bits.TrailingZeros32(m)
			if k, at := t.entry(handleAt(b, slot)).key(); string(k) == string(key) {
				return Item{t, b, int32(slot), int32(at)}
			}
		}
	}
	return Item{}
}

// item returns the Item in a slot.
func (t *table) item(b bucket, slot int) Item {
	_, at := t.entry(handleAt(b, slot)).key()
	return Item{t, b, int32(slot), int32(at)}
}

// each calls visit for the slots in use of bucket i and its chain. visit may free the slot,
// and change its Handle.
func (t *table) each(i uint64, visit func(b bucket, slot int)) {
	for b := t.at(i); b != nil; b = t.next(b) {
		for slot := range slots {
			if b[slot] != 0 {
				visit(b, slot)
			}
		}
	}
}

// visit calls f for the Items of bucket i and its chain, after touching all of them: their
// cache misses overlap. f may free the Item's slot, and change its Handle.
func (t *table) visit(i uint64, f func(Item)) {
	t.each(i, func(b bucket, slot int) { t.sink |= t.entry(handleAt(b, slot))[0] })
	t.each(i, func(b bucket, slot int) { f(t.item(b, slot)) })
}

// add puts a Handle in the table, and returns its slot. The table grows before.
func (t *table) add(hash uint64, h Handle) (bucket, int) {
	if t.segments == nil {
		t.segments = append(t.segments, t.space.take(t.cells.id, chunkBuckets, true))
	}
	t.count++
	if t.count > int(t.buckets())*maxLoad {
		t.splitOne()
	}
	return t.place(t.at(t.index(hash)), tagOf(hash), h)
}

// place puts a Handle in a bucket or its chain.
func (t *table) place(b bucket, tag byte, h Handle) (bucket, int) {
	for length := 1; ; length++ {
		if slot := freeSlot(b); slot >= 0 {
			b[slot] = tag
			setHandle(b, slot, h)
			t.chain = max(t.chain, length)
			return b, slot
		}
		n := link(b)
		if n == 0 {
			n = t.over.alloc()
			setLink(b, n)
		}
		b = t.over.at(n)
	}
}

// remove frees a slot of a hash's bucket. An entry of the chain's last bucket fills it, so
// that chains stay short.
func (t *table) remove(b bucket, slot int, hash uint64) {
	b[slot] = 0
	t.count--
	root := t.at(t.index(hash))
	if link(root) != 0 {
		t.fill(root, b, slot)
	}
}

func (t *table) fill(root, b bucket, slot int) {
	before, last := root, root
	for link(last) != 0 {
		before, last = last, t.over.at(link(last))
	}
	for i := range slots {
		if last != b && last[i] != 0 {
			b[slot] = last[i]
			setHandle(b, slot, handleAt(last, i))
			last[i] = 0
			break
		}
	}
	if isEmpty(last) {
		number := link(before)
		setLink(before, 0)
		t.over.free(number)
	}
}

// bytesHeld estimates the table's memory in bytes, with that of its entries.
func (t *table) bytesHeld() int64 { return t.indexBytes() + t.cells.bytesHeld() + t.wheel.blocks.held }

// bytesUsed is bytesHeld without free cells, and without values that are being freed.
func (t *table) bytesUsed() int64 {
	return t.indexBytes() + max(0, t.cells.bytesUsed()-t.dying) + t.wheel.blocks.used
}

func (t *table) indexBytes() int64 {
	if t.segments == nil {
		return 0
	}
	return (int64(t.buckets()) + int64(t.over.used)) * bucketSize
}
