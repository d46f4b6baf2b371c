package quicklist

// A Limit says when a listpack is full.
type Limit struct {
	bytes int
	count int // 0: any
}

const (
	smallest = 4 << 10 // of the limits in bytes
	sizes    = 5       // each twice the one before
	safe     = 8 << 10 // limit in bytes where there is one of elements
)

// LimitOf returns the Limit that Redis's parameter list-max-listpack-size stands for: a
// number of elements, within 8 KiB, or -1 to -5 for 4, 8, 16, 32 and 64 KiB. A node with
// such a listpack fills a cell.
func LimitOf(size int) Limit {
	if size < 0 {
		return Limit{bytes: smallest<<(min(-size, sizes)-1) - nodePack}
	}
	return Limit{bytes: safe - nodePack, count: max(size, 1)}
}

// Allows reports whether a listpack may have so many bytes and elements.
func (l Limit) Allows(bytes, count int) bool {
	return bytes <= l.bytes && (l.count == 0 || count <= l.count)
}
