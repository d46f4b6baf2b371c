package redis

// expiryHeap orders the keys that expire by their deadlines. It is a heap with
// four children a node: half as deep as a binary heap, with the children of a
// node side by side in memory.
//
// Redis samples keys at random instead, because its dictionary of deadlines has
// no order: expired keys linger, and the sampling never stops. With the order,
// the server knows when the next key expires, sleeps until then, and deletes
// exactly the expired keys. A new deadline is usually later than most; adding
// it costs one comparison.
type expiryHeap struct {
	items chunked[expiry]
}

type expiry struct {
	at int64 // milliseconds since 1970
	e  *entry
}

const heapWidth = 4

func (h *expiryHeap) len() int { return h.items.len() }

// deadline returns the deadline of an entry in the heap.
func (h *expiryHeap) deadline(e *entry) int64 { return h.items.at(int(e.expiry) - 1).at }

// first returns the entry with the earliest deadline, or nil if the heap is
// empty.
func (h *expiryHeap) first() (*entry, int64) {
	if h.items.len() == 0 {
		return nil, never
	}
	x := h.items.at(0)
	return x.e, x.at
}

// set adds an entry to the heap, or changes its deadline.
func (h *expiryHeap) set(e *entry, at int64) {
	if e.expiry == 0 {
		h.items.push(expiry{at, e})
		h.up(h.items.len()-1, expiry{at, e})
		return
	}
	h.place(int(e.expiry)-1, expiry{at, e})
}

// remove removes an entry, which must be in the heap.
func (h *expiryHeap) remove(e *entry) {
	i, last := int(e.expiry)-1, h.items.len()-1
	e.expiry = 0
	moved := *h.items.at(last)
	h.items.pop()
	if i != last {
		h.place(i, moved)
	}
}

// place fills the hole at i with x, and moves x up or down to its place.
func (h *expiryHeap) place(i int, x expiry) {
	if i > 0 && h.items.at((i-1)/heapWidth).at > x.at {
		h.up(i, x)
		return
	}
	h.down(i, x)
}

func (h *expiryHeap) put(i int, x expiry) {
	*h.items.at(i) = x
	x.e.expiry = uint32(i + 1)
}

func (h *expiryHeap) up(i int, x expiry) {
	for i > 0 {
		parent := (i - 1) / heapWidth
		p := *h.items.at(parent)
		if p.at <= x.at {
			break
		}
		h.put(i, p)
		i = parent
	}
	h.put(i, x)
}

func (h *expiryHeap) down(i int, x expiry) {
	n := h.items.len()
	for {
		least, child := x.at, -1
		for c := heapWidth*i + 1; c <= heapWidth*i+heapWidth && c < n; c++ {
			if at := h.items.at(c).at; at < least {
				least, child = at, c
			}
		}
		if child < 0 {
			break
		}
		h.put(i, *h.items.at(child))
		i = child
	}
	h.put(i, x)
}
