package store

import "strconv"

// resize makes a string n bytes long; see DB.Resize.
func (t *table) resize(it Item, n int) (Item, []byte) {
	t.changingItem(it)
	e := it.e()
	head := int(it.at) - prefix(e[0])
	fits := int(it.at)+varintSize(n)+n <= maxEmbedded
	var old int
	switch form := e.form(); {
	case form == Integer:
		var text [20]byte
		digits := strconv.AppendInt(text[:0], e.intAt(int(it.at)), 10)
		it = t.recast(it, e[0], head, varintSize(len(digits))+len(digits))
		t.put(it, &Value{Type: it.Type(), bytes: digits}, Embedded)
		return t.resize(it, n)
	case form == Large:
		old = t.resizeLarge(it, n)
	case fits:
		it, old = t.resizeEmbedded(it, head, n)
	default:
		it, old = t.outgrow(it, head, n)
	}
	it.e()[0] |= altBit
	b := it.Bytes()
	if old < n {
		clear(b[old:])
	}
	return it, b
}

// resizeEmbedded returns the Item, and how many of its bytes are what they should be.
func (t *table) resizeEmbedded(it Item, head, n int) (Item, int) {
	e, at := it.e(), int(it.at)
	old := len(e.bytesAt(at))
	kept := min(old, n)
	was, is := varintSize(old), varintSize(n)
	if is < was {
		copy(e[at+is:], e[at+was:at+was+kept])
		was = is
	}
	it = t.recast(it, e[0], head+was+kept, is-was+n-kept)
	e = it.e()
	if is > was {
		copy(e[at+is:at+is+kept], e[at+was:])
	}
	putLen(e[at:], n)
	return it, kept
}

// outgrow moves an embedded value to a cell of its own.
func (t *table) outgrow(it Item, head, n int) (Item, int) {
	h := t.cells.allocLarge(max(n, maxSmall+1))
	e, at := it.e(), int(it.at)
	copy(t.cells.bytes(h), e.bytesAt(at))
	it = t.recast(it, e[0], head, largeSize)
	e = it.e()
	e[0] = e[0]&^(formMask<<formShift) | byte(Large)<<formShift
	e.setHandleAt(at, h)
	e.setLargeLen(at, n)
	return it, n // the rest of a new mapping is zero
}

func (t *table) resizeLarge(it Item, n int) int {
	e, at := it.e(), int(it.at)
	old := e.largeLen(at)
	h := e.handleAt(at)
	if n < old {
		// What lies behind the value stays zero: it may grow again.
		clear(t.cells.bytes(h)[n:old])
	}
	h = t.cells.enlarge(h, min(old, n), n)
	e.setHandleAt(at, h)
	e.setLargeLen(at, n)
	if t.space.meta[h>>offsetBits].state == chunkAdopted {
		return min(old, n) // the slice's spare capacity may hold anything
	}
	return n
}
