package netconn

import "sync"

// blocks is a queue of bytes in pooled memory. The zero blocks are empty, and an empty queue
// holds no memory.
type blocks struct {
	first, last *block
	size        int
}

// A block is a piece of pooled memory, of smallBlock or largeBlock bytes.
type block struct {
	next       *block
	start, end int // the queued bytes
	bytes      []byte
}

const (
	smallBlock = 2 << 10
	largeBlock = 32 << 10
)

var (
	smallBlocks = sync.Pool{New: func() any { return &block{bytes: make([]byte, smallBlock)} }}
	largeBlocks = sync.Pool{New: func() any { return &block{bytes: make([]byte, largeBlock)} }}
)

// release puts the block back into its pool.
func (b *block) release() {
	b.next, b.start, b.end = nil, 0, 0
	if len(b.bytes) == smallBlock {
		smallBlocks.Put(b)
	} else {
		largeBlocks.Put(b)
	}
}

// add appends a copy of p.
func (q *blocks) add(p []byte) {
	for len(p) > 0 {
		b := q.last
		if b == nil || b.end == len(b.bytes) {
			b = q.grow(len(p))
		}
		n := copy(b.bytes[b.end:], p)
		b.end += n
		q.size += n
		p = p[n:]
	}
}

// grow appends an empty block: a large one if the queue or n is long.
func (q *blocks) grow(n int) *block {
	pool := &smallBlocks
	if n > smallBlock || q.size >= smallBlock {
		pool = &largeBlocks
	}
	b := pool.Get().(*block)
	if q.last == nil {
		q.first = b
	} else {
		q.last.next = b
	}
	q.last = b
	return b
}

// front returns the first block's bytes, or nothing if the queue is empty. They are valid
// until drop removes them.
func (q *blocks) front() []byte {
	if q.first == nil {
		return nil
	}
	return q.first.bytes[q.first.start:q.first.end]
}

// drop removes the first n bytes, no more than front returned.
func (q *blocks) drop(n int) {
	if n == 0 {
		return
	}
	b := q.first
	b.start += n
	q.size -= n
	if b.start == b.end {
		q.pop().release()
	}
}

// pop removes and returns the first block.
func (q *blocks) pop() *block {
	b := q.first
	if q.first = b.next; q.first == nil {
		q.last = nil
	}
	q.size -= b.end - b.start
	return b
}

// read moves the first bytes to p.
func (q *blocks) read(p []byte) (n int) {
	for n < len(p) && q.size > 0 {
		k := copy(p[n:], q.front())
		q.drop(k)
		n += k
	}
	return n
}

// clear drops everything.
func (q *blocks) clear() {
	for q.size > 0 {
		q.drop(len(q.front()))
	}
}

// take moves everything from from to q, which must be empty.
func (q *blocks) take(from *blocks) {
	*q = *from
	*from = blocks{}
}
