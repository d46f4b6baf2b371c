package store

import "math/bits"

// Each calls yield for every field, until it returns false: for h := range d.Each. The Dict
// must not change meanwhile.
func (d Dict) Each(yield func(Handle) bool) {
	for i := range d.buckets() {
		for b := d.bucket(i); b != nil; b = d.next(b) {
			for slot := range slots {
				if b[slot] > linkTag && !yield(handleAt(b, slot)) {
					return
				}
			}
		}
	}
}

// Scan calls visit for at least count fields, beginning at a cursor: 0 at first, later the
// result of the previous call. It returns the next cursor, or 0 at the end. visit must not
// change the Dict. What DB.Scan says about keys that come and go holds for fields.
func (d Dict) Scan(cursor uint64, count int, visit func(Handle)) uint64 {
	for seen, looked := 0, 0; seen < count && looked/10 < count; looked++ {
		width := d.level()
		i := cursor & (1<<width - 1)
		if i < d.split() {
			width++
			i = cursor & (1<<width - 1)
		}
		for b := d.bucket(i); b != nil; b = d.next(b) {
			for slot := range slots {
				if b[slot] > linkTag {
					seen++
					visit(handleAt(b, slot))
				}
			}
		}
		// Add 1 to the highest bit of the bucket's number, with the carry to the lower ones.
		if cursor = bits.Reverse64(bits.Reverse64(i|^uint64(0)<<width) + 1); cursor == 0 {
			break
		}
	}
	return cursor
}

// Random returns the Handle of a random field, or 0 if there is none. All fields have the
// same probability.
func (d Dict) Random() Handle {
	if d.Len() == 0 {
		return 0
	}
	rng := d.store.rng
	for {
		// A slot of any chain, as if all were as long as the longest: most hits are on free
		// slots, but each slot in use is as likely as any other.
		b := d.bucket(rng.Uint64N(d.buckets()))
		slot := rng.IntN(d.chain() * slots)
		for ; b != nil && slot >= slots; slot -= slots {
			b = d.next(b)
		}
		if b != nil && b[slot] > linkTag {
			return handleAt(b, slot)
		}
	}
}
