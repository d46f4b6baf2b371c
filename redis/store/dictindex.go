package store

import (
	"encoding/binary"
	"math/bits"
)

// The index of a Dict is a table by linear hashing, like that of a DB, but small if the
// Dict is: it begins with one bucket. The buckets lie in segments of 16 KiB. The first one
// begins with a bucket and doubles; from the second one on there is a directory of Handles.
//
// A bucket has no room for the Handle of an overflow bucket. If there is one, its Handle
// stands in the last slot, whose tag is linkTag.
const (
	linkTag = 1 // no field has it; see tagOf

	dictSegmentBits = 8
	dictSegment     = 1 << dictSegmentBits // buckets
	leastDirectory  = 8                    // segments that the smallest directory has room for
)

func (d Dict) index() Handle     { return Handle(binary.LittleEndian.Uint64(d.head[dictIndexAt:])) }
func (d Dict) setIndex(h Handle) { binary.LittleEndian.PutUint64(d.head[dictIndexAt:], uint64(h)) }
func (d Dict) level() uint       { return uint(d.head[dictLevelAt]) }
func (d Dict) split() uint64     { return uint64(binary.LittleEndian.Uint32(d.head[dictSplitAt:])) }
func (d Dict) chain() int        { return int(d.head[dictChainAt]) }

// buckets returns the number of buckets.
func (d Dict) buckets() uint64 { return 1<<d.level() + d.split() }

// setBuckets sets level and split.
func (d Dict) setBuckets(n uint64) {
	level := bits.Len64(n) - 1
	d.head[dictLevelAt] = byte(level)
	binary.LittleEndian.PutUint32(d.head[dictSplitAt:], uint32(n-1<<level))
}

// bucketOf returns the number of a hash's bucket.
func (d Dict) bucketOf(hash uint64) uint64 {
	level := d.level()
	i := hash & (1<<level - 1)
	if i < d.split() {
		i = hash & (2<<level - 1)
	}
	return i
}

// bucket returns bucket i.
func (d Dict) bucket(i uint64) bucket {
	segment := d.index()
	if d.buckets() > dictSegment {
		segment = d.segment(i >> dictSegmentBits)
	}
	return bucket(d.c.Bytes(segment)[i&(dictSegment-1)*bucketSize:])
}

// segment returns segment i of the directory.
func (d Dict) segment(i uint64) Handle {
	return Handle(binary.LittleEndian.Uint64(d.c.Bytes(d.index())[8*i:]))
}

func (d Dict) setSegment(i uint64, h Handle) {
	binary.LittleEndian.PutUint64(d.c.Bytes(d.index())[8*i:], uint64(h))
}

// next returns the bucket after b in its chain, or nil.
func (d Dict) next(b bucket) bucket {
	if b[slots-1] == linkTag {
		return bucket(d.c.Bytes(handleAt(b, slots-1)))
	}
	return nil
}

// place puts a Handle in a bucket or its chain.
func (d Dict) place(b bucket, tag byte, h Handle) {
	for length := 1; ; length++ {
		if slot := freeSlot(b); slot >= 0 {
			b[slot] = tag
			setHandle(b, slot, h)
			d.head[dictChainAt] = byte(max(d.chain(), min(length, 255)))
			return
		}
		if b[slots-1] != linkTag {
			d.lengthen(b)
		}
		b = d.next(b)
	}
}

// lengthen adds an overflow bucket to a full one.
func (d Dict) lengthen(b bucket) {
	n := d.c.Alloc(bucketSize)
	added := bucket(d.c.Bytes(n))
	*added = [bucketSize]byte{b[slots-1]}
	setHandle(added, 0, handleAt(b, slots-1))
	b[slots-1] = linkTag
	setHandle(b, slots-1, n)
}

// remove frees a slot in the chain of root. A field of the chain's last bucket fills it.
func (d Dict) remove(root, b bucket, slot int) {
	b[slot] = 0
	before, last := root, root
	for next := d.next(root); next != nil; next = d.next(next) {
		before, last = last, next
	}
	for i := range slots {
		if last != b && last[i] != 0 {
			b[slot] = last[i]
			setHandle(b, slot, handleAt(last, i))
			last[i] = 0
			break
		}
	}
	if last != root && isEmpty(last) {
		d.c.Free(handleAt(before, slots-1))
		before[slots-1] = 0
	}
}

// splitOne moves about half of the fields of one bucket to a new one.
func (d Dict) splitOne() {
	from, bit := d.split(), uint64(1)<<d.level()
	d.extend()
	var room [4 * slots]moving
	all := d.empty(from, room[:0])
	source, target := d.bucket(from), d.bucket(from+bit)
	for _, m := range all {
		if d.store.hasher.hash(d.Name(m.handle))&bit != 0 {
			d.place(target, m.tag, m.handle)
		} else {
			d.place(source, m.tag, m.handle)
		}
	}
}

// mergeOne undoes the last split.
func (d Dict) mergeOne() {
	from := d.buckets() - 1
	to := from &^ (1 << (bits.Len64(from) - 1))
	var room [4 * slots]moving
	target := d.bucket(to)
	for _, m := range d.empty(from, room[:0]) {
		d.place(target, m.tag, m.handle)
	}
	d.curtail()
}

// empty appends the Handles of bucket i and its chain to all, and frees the chain.
func (d Dict) empty(i uint64, all []moving) []moving {
	b, number := d.bucket(i), Handle(0)
	for {
		for slot := range slots {
			if b[slot] > linkTag {
				all = append(all, moving{handleAt(b, slot), b[slot]})
			}
		}
		next := Handle(0)
		if b[slots-1] == linkTag {
			next = handleAt(b, slots-1)
		}
		if number == 0 {
			*b = [bucketSize]byte{}
		} else {
			d.c.Free(number)
		}
		if next == 0 {
			return all
		}
		b, number = bucket(d.c.Bytes(next)), next
	}
}

// extend adds an empty bucket at the end.
func (d Dict) extend() {
	n := d.buckets()
	switch {
	case n < dictSegment:
		if n&(n-1) == 0 {
			d.setIndex(d.resized(d.index(), int(n)*bucketSize, 2*int(n)*bucketSize))
		}
	case n%dictSegment == 0:
		segment := d.c.Alloc(dictSegment * bucketSize)
		clear(d.c.Bytes(segment)[:dictSegment*bucketSize])
		i := n >> dictSegmentBits
		switch {
		case i == 1:
			first := d.index()
			d.setIndex(d.c.Alloc(8 * leastDirectory))
			d.setSegment(0, first)
		case i >= leastDirectory && i&(i-1) == 0:
			d.setIndex(d.resized(d.index(), 8*int(i), 16*int(i)))
		}
		d.setSegment(i, segment)
	}
	d.setBuckets(n + 1)
}

// curtail removes the last bucket, which is empty.
func (d Dict) curtail() {
	n := d.buckets() - 1
	switch {
	case n < dictSegment:
		if n&(n-1) == 0 {
			d.setIndex(d.resized(d.index(), int(n)*bucketSize, int(n)*bucketSize))
		}
	case n%dictSegment == 0:
		i := n >> dictSegmentBits
		d.c.Free(d.segment(i))
		switch {
		case i == 1:
			directory := d.index()
			d.setIndex(d.segment(0))
			d.c.Free(directory)
		case i >= leastDirectory && i&(i-1) == 0:
			d.setIndex(d.resized(d.index(), 8*int(i), 8*int(i)))
		}
	}
	d.setBuckets(n)
}

// resized moves the first keep bytes of a cell to one of size bytes. The rest is zero.
func (d Dict) resized(h Handle, keep, size int) Handle {
	moved := d.c.Alloc(size)
	b := d.c.Bytes(moved)[:size]
	clear(b[copy(b, d.c.Bytes(h)[:keep]):])
	d.c.Free(h)
	return moved
}
