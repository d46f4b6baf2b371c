package redis

// chunkSize is the number of items of a chunk. At 8 to 16 bytes an item, a chunk
// takes a few pages: large enough for a small table of chunks, small enough for a
// partly used chunk to cost little.
const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// chunked is a stack with an index. To grow it allocates one chunk, and moves
// no items: doubling a slice of ten million pointers would stop the loop for
// tens of milliseconds.
type chunked[T any] struct {
	chunks [][]T // full chunks, then one that is filling, then at most one empty
	n      int
}

func (c *chunked[T]) len() int { return c.n }

// at returns the i-th item, for i below len. The pointer is valid until the
// next push or pop.
func (c *chunked[T]) at(i int) *T {
	return &c.chunks[i>>chunkBits][i&(chunkSize-1)]
}

func (c *chunked[T]) push(v T) {
	last := c.n >> chunkBits
	if last == len(c.chunks) {
		var chunk []T // the first chunk grows as an ordinary slice: most stacks are small
		if last > 0 {
			chunk = make([]T, 0, chunkSize)
		}
		c.chunks = append(c.chunks, chunk)
	}
	c.chunks[last] = append(c.chunks[last], v)
	c.n++
}

// pop drops the last item. It keeps one empty chunk, so that a length that
// moves back and forth across a boundary does not allocate each time.
func (c *chunked[T]) pop() {
	c.n--
	last, i := c.n>>chunkBits, c.n&(chunkSize-1)
	clear(c.chunks[last][i : i+1])
	c.chunks[last] = c.chunks[last][:i]
	if i == 0 && last+2 == len(c.chunks) {
		c.chunks[last+1] = nil
		c.chunks = c.chunks[:last+1]
	}
}
