package store

import (
	"math"
	"math/bits"
)

// DictNodes are the NodeOps of a Type whose values are Dicts.
type DictNodes struct{}

// Free implements NodeOps.
func (DictNodes) Free(c *Cells, root Handle, budget int) Handle { return FreeDict(c, root, budget) }

// Copy implements NodeOps.
func (DictNodes) Copy(c *Cells, root Handle, to *Cells) Handle { return CopyDict(c, root, to, nil) }

// Defrag implements NodeOps.
func (DictNodes) Defrag(c *Cells, root Handle) Handle { return DefragDict(c, root, nil) }

// DefragSlice implements SlicedDefrag.
func (DictNodes) DefragSlice(c *Cells, root Handle, cursor uint64, budget int) (now Handle, next uint64, work int) {
	return DefragDictSlice(c, root, cursor, budget, nil)
}

// Size implements NodeOps.
func (DictNodes) Size(c *Cells, root Handle) int { return SizeDict(c, root) }

// FreeDict is NodeOps.Free for a Dict.
func FreeDict(c *Cells, root Handle, budget int) (rest Handle) {
	d := dictAt(c, root)
	for budget > 0 {
		var before bucket
		b := d.bucket(d.buckets() - 1)
		for next := d.next(b); next != nil; next = d.next(b) {
			before, b = b, next
		}
		for slot := range slots {
			if b[slot] == 0 {
				continue
			}
			c.Free(handleAt(b, slot))
			b[slot] = 0
			if budget--; budget == 0 {
				return root
			}
		}
		budget--
		switch {
		case before != nil:
			c.Free(handleAt(before, slots-1))
			before[slots-1] = 0
		case d.buckets() > 1:
			d.curtail()
		default:
			c.Free(d.index())
			c.Free(root)
			return 0
		}
	}
	return root
}

// CopyDict is NodeOps.Copy for a Dict. It calls copied for each field, unless that is nil.
func CopyDict(c *Cells, root Handle, to *Cells, copied func(old, copy Handle)) Handle {
	from := dictAt(c, root)
	d := newDict(to, Shape{Payload: from.head[dictPayloadAt], Values: from.hasValues()})
	for d.buckets() < from.buckets() {
		d.extend()
	}
	d.addLen(from.Len())
	d.head[dictChainAt] = from.head[dictChainAt]
	for i := range from.buckets() {
		for b, target := from.bucket(i), d.bucket(i); b != nil; b, target = from.next(b), d.next(target) {
			*target = *b
			for slot := range slots {
				switch h := handleAt(b, slot); {
				case b[slot] == linkTag:
					setHandle(target, slot, to.Alloc(bucketSize))
				case b[slot] != 0:
					field := duplicate(c, h, from.fieldSize(h), to)
					setHandle(target, slot, field)
					if copied != nil {
						copied(h, field)
					}
				}
			}
		}
	}
	return d.root
}

// duplicate copies n bytes of a cell to a new one.
func duplicate(c *Cells, h Handle, n int, to *Cells) Handle {
	h2 := to.Alloc(n)
	copy(to.Bytes(h2)[:n], c.Bytes(h))
	return h2
}

// DefragDict is NodeOps.Defrag for a Dict. It calls moved for each field that gets another
// Handle, unless that is nil.
func DefragDict(c *Cells, root Handle, moved func(old, now Handle)) Handle {
	root, _, _ = DefragDictSlice(c, root, 0, math.MaxInt, moved)
	return root
}

// DefragDictSlice is SlicedDefrag.DefragSlice for a Dict. It calls moved for each field that
// gets another Handle, unless that is nil.
func DefragDictSlice(c *Cells, root Handle, cursor uint64, budget int, moved func(old, now Handle)) (now Handle, next uint64, work int) {
	root = defragCell(c, root)
	d := dictAt(c, root)
	d.setIndex(defragCell(c, d.index()))
	for ; cursor < d.buckets(); cursor++ {
		if work >= budget {
			return root, cursor, work
		}
		if i := cursor >> dictSegmentBits; cursor%dictSegment == 0 && d.buckets() > dictSegment {
			d.setSegment(i, defragCell(c, d.segment(i)))
		}
		work++
		for b := d.bucket(cursor); b != nil; b = d.next(b) {
			for slot := range slots {
				if b[slot] == 0 || !c.Sparse(handleAt(b, slot)) {
					continue
				}
				old := handleAt(b, slot)
				field := defragCell(c, old)
				setHandle(b, slot, field)
				if b[slot] != linkTag && moved != nil {
					moved(old, field)
				}
				work += workMove + c.Size(field)/512
			}
		}
	}
	return root, 0, work
}

// defragCell moves a cell if it lies in a sparse chunk.
func defragCell(c *Cells, h Handle) Handle {
	if !c.Sparse(h) {
		return h
	}
	moved := duplicate(c, h, c.Size(h), c)
	c.Free(h)
	return moved
}

// SizeDict is NodeOps.Size for a Dict. It looks at some buckets.
func SizeDict(c *Cells, root Handle) int {
	const sample = 32
	d := dictAt(c, root)
	buckets := d.buckets()
	n := c.Size(root)
	if buckets > dictSegment {
		n += c.Size(d.index()) + int((buckets-1)>>dictSegmentBits+1)*dictSegment*bucketSize
	} else {
		n += bucketSize << bits.Len64(buckets-1)
	}
	var looked, chained, fields, size uint64
	for i := uint64(0); i < buckets; i += max(1, buckets/sample) {
		looked++
		for b := d.bucket(i); b != nil; b = d.next(b) {
			for slot := range slots {
				if b[slot] > linkTag {
					fields++
					size += uint64(c.Size(handleAt(b, slot)))
				}
			}
			if b[slots-1] == linkTag {
				chained++
			}
		}
	}
	n += int(chained * buckets / looked * bucketSize)
	if fields > 0 {
		n += int(size * uint64(d.Len()) / fields)
	}
	return n
}
