package store

// moving is an entry whose bucket is split.
type moving struct {
	handle Handle
	tag    byte
}

// splitOne moves about half of the entries of one bucket to a new one.
func (t *table) splitOne() {
	from := t.split
	to := from + 1<<t.level
	if int(to>>segmentBits) == len(t.segments) {
		t.segments = append(t.segments, t.space.take(t.cells.id, chunkBuckets, true))
	}
	if t.snap != nil {
		t.snap.splits(from, to)
	}
	bit := uint64(1) << t.level
	t.split++
	if t.split == bit {
		t.split = 0
		t.level++
	}
	t.empty(from)
	for i := range t.moving {
		t.sink |= t.entry(t.moving[i].handle)[0] // the cache misses overlap
	}
	source, target := t.at(from), t.at(to)
	for i := range t.moving {
		m := &t.moving[i]
		key, _ := t.entry(m.handle).key()
		if t.store.hasher.hash(key)&bit != 0 {
			t.place(target, m.tag, m.handle)
		} else {
			t.place(source, m.tag, m.handle)
		}
	}
}

// empty moves the Handles of bucket i and its chain to t.moving, and frees the chain.
func (t *table) empty(i uint64) {
	t.moving = t.moving[:0]
	b, number := t.at(i), uint32(0)
	for {
		for slot := range slots {
			if b[slot] != 0 {
				t.moving = append(t.moving, moving{handleAt(b, slot), b[slot]})
			}
		}
		next := link(b)
		if number == 0 {
			*b = [bucketSize]byte{}
		} else {
			t.over.free(number)
		}
		if next == 0 {
			return
		}
		b, number = t.over.at(next), next
	}
}

// shrink merges a bucket if the table has too many.
func (t *table) shrink() {
	if t.count < int(t.buckets())*minLoad && t.buckets() > 1<<minLevel {
		t.mergeOne()
	}
}

// mergeOne undoes the last split.
func (t *table) mergeOne() {
	if t.split == 0 {
		t.level--
		t.split = 1 << t.level
	}
	t.split--
	to := t.split
	from := to + 1<<t.level
	if t.snap != nil {
		t.snap.merges(to, from)
	}
	t.empty(from)
	target := t.at(to)
	for _, m := range t.moving {
		t.place(target, m.tag, m.handle)
	}
	if from&segmentMask == 0 {
		last := len(t.segments) - 1
		t.space.release(t.segments[last])
		t.segments = t.segments[:last]
	}
}
