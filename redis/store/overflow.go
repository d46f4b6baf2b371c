package store

const (
	segmentBits = chunkBits - 6 // log2 of the buckets in 1 MiB
	segmentSize = 1 << segmentBits
	segmentMask = segmentSize - 1
)

// overflow is a table's overflow buckets. Their numbers count from 1 and fit in 32 bits:
// a chunk of the table, and the bucket in it.
type overflow struct {
	space  *space
	owner  uint32
	chunks []overflowChunk
	used   int // buckets
	room   int // no chunk below has a free bucket
}

type overflowChunk struct {
	chunk uint32
	free  uint32 // the first free bucket, plus 1; its link is the next one
	top   uint32 // buckets ever used
	used  uint32
}

func (o *overflow) at(number uint32) bucket {
	mem := o.space.mem[o.chunks[number>>segmentBits].chunk]
	return bucket(mem[number&segmentMask*bucketSize:])
}

// alloc returns the number of an empty bucket, in the first chunk with room: so the last
// chunks become empty when the table shrinks.
func (o *overflow) alloc() uint32 {
	for ; ; o.room++ {
		if o.room == len(o.chunks) {
			o.add()
		}
		c := &o.chunks[o.room]
		base := uint32(o.room) << segmentBits
		switch {
		case c.free != 0:
			number := base | (c.free - 1)
			b := o.at(number)
			c.free = link(b)
			setLink(b, 0)
			c.used++
			o.used++
			return number
		case c.top < segmentSize:
			c.top++
			c.used++
			o.used++
			return base | (c.top - 1)
		}
	}
}

func (o *overflow) add() {
	c := overflowChunk{chunk: o.space.take(o.owner, chunkBuckets, true)}
	if len(o.chunks) == 0 {
		c.top = 1 // number 0 means none
	}
	o.chunks = append(o.chunks, c)
}

// free frees a bucket.
func (o *overflow) free(number uint32) {
	i := int(number >> segmentBits)
	c := &o.chunks[i]
	b := o.at(number)
	*b = [bucketSize]byte{}
	setLink(b, c.free)
	c.free = number&segmentMask + 1
	c.used--
	o.used--
	o.room = min(o.room, i)
	for last := len(o.chunks) - 1; last >= 0 && o.chunks[last].used == 0; last-- {
		o.space.release(o.chunks[last].chunk)
		o.chunks = o.chunks[:last]
	}
}

// spare reports whether the buckets of the last chunk would fit in the others.
func (o *overflow) spare() bool {
	return len(o.chunks) > 1 && o.used < (len(o.chunks)-1)*segmentSize*7/8
}
