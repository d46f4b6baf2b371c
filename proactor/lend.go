package proactor

import "sync/atomic"

// slabSize is the size of a slab, if Options.Lend has room for several.
const slabSize = 64 << 10

// A slab is memory from which reads without a buffer get pieces. It is used
// again once all pieces have been returned.
type slab struct {
	shard *shard
	bytes []byte
	used  int
	refs  atomic.Int32 // lent pieces, plus one while it is the shard's current slab
}

// lend copies the beginning of in, or all of it, to lent memory and returns
// that. It returns nil if all memory is lent.
func (s *shard) lend(in []byte) ([]byte, *slab) {
	b := s.current
	if b != nil && b.refs.Load() == 1 {
		b.used = 0
	}
	if b == nil || len(b.bytes)-b.used < min(len(in), len(b.bytes)) {
		if next := s.slab(); next != nil {
			if b != nil {
				b.unref()
			}
			b, s.current = next, next
		}
	}
	if b == nil || b.used == len(b.bytes) {
		return nil, nil
	}
	start := b.used
	b.used += copy(b.bytes[start:], in)
	b.refs.Add(1)
	return b.bytes[start:b.used:b.used], b
}

// slab returns a free slab. If there is none it returns nil, and the loop is
// posted once there is one.
func (s *shard) slab() *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, size := s.queue.lending()
	var b *slab
	switch n := len(s.slabs); {
	case n > 0:
		b = s.slabs[n-1]
		s.slabs = s.slabs[:n-1]
	case s.made < most:
		s.made++
		b = &slab{shard: s, bytes: make([]byte, size)}
	default:
		s.waitsForData = true
		return nil
	}
	b.used = 0
	b.refs.Store(1)
	return b
}

// unref drops a reference to the slab. Any goroutine may call it.
func (b *slab) unref() {
	left := b.refs.Add(-1)
	if left > 1 {
		return
	}
	s := b.shard
	s.mu.Lock()
	if left == 0 {
		s.slabs = append(s.slabs, b)
	}
	post := s.waitsForData && !s.posted
	s.posted = s.posted || s.waitsForData
	s.waitsForData = false
	s.mu.Unlock()
	if post {
		s.post(nil)
	}
}

// feed resumes the streams that wait for memory.
func (s *shard) feed() {
	if len(s.waiting) == 0 {
		return
	}
	waiting := s.waiting
	s.waiting = nil
	for _, st := range waiting {
		if st.reading == starving {
			st.reading = idle
			st.arm()
		}
	}
}
