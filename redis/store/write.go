package store

import "fmt"

// changing is called before a change of the keys of a hash's bucket, or of their values.
func (t *table) changing(hash uint64) {
	if t.snap != nil {
		t.snap.before(t.index(hash))
	}
}

// changingItem is changing for a key whose hash is not known: it is needed only while there
// is a snapshot.
func (t *table) changingItem(it Item) {
	if t.snap != nil {
		t.changing(t.store.hasher.hash(it.Key()))
	}
}

// insert adds a key that does not exist.
func (t *table) insert(key []byte, hash uint64, v *Value, deadline int64) Item {
	if len(key) > maxKey {
		panic(fmt.Sprintf("store: a key has %d bytes: the limit is %d", len(key), maxKey))
	}
	t.changing(hash)
	header := byte(v.Type)
	if deadline != NoDeadline {
		header |= deadlineBit
	}
	if t.store.tracking != TrackNothing {
		header |= accessBit
	}
	head := prefix(header) + varintSize(len(key)) + len(key)
	form, size := v.place(head)
	h := t.cells.alloc(head + size)
	e := t.entry(h)
	e[0] = header
	if header&accessBit != 0 {
		e.setAccess(t.store.firstAccess())
	}
	at := prefix(header)
	at += putLen(e[at:], len(key))
	at += copy(e[at:], key)
	b, slot := t.add(hash, h)
	it := Item{t, b, int32(slot), int32(at)}
	t.put(it, v, form)
	if deadline != NoDeadline {
		t.expiring++
		t.schedule(it, hash, 0, deadline)
	}
	return it
}

// place decides how an entry whose key ends at head holds the value, and how many bytes
// that takes.
func (v *Value) place(head int) (Form, int) {
	switch v.form {
	case Integer:
		return Integer, zigzagSize(int64(v.num))
	case Node:
		return Node, nodeSize
	}
	size := varintSize(len(v.bytes)) + len(v.bytes)
	if head+size <= maxEmbedded {
		return Embedded, size
	}
	return Large, largeSize
}

// put writes a value into an entry that has room for it.
func (t *table) put(it Item, v *Value, form Form) {
	e, at := it.e(), int(it.at)
	e[0] = e[0]&(deadlineBit|accessBit) | byte(v.Type) | byte(form)<<formShift
	if v.Alt {
		e[0] |= altBit
	}
	switch form {
	case Embedded:
		e.putBytes(at, v.bytes)
	case Integer:
		e.putInt(at, int64(v.num))
	case Node:
		e.setHandleAt(at, Handle(v.num))
	case Large:
		var h Handle
		if v.kept {
			h = t.cells.adopt(v.bytes)
		} else {
			h = t.cells.alloc(max(len(v.bytes), maxSmall+1))
			copy(t.cells.bytes(h), v.bytes)
		}
		e.setHandleAt(at, h)
		e.setLargeLen(at, len(v.bytes))
	}
}

// replace gives a key another value. deadline may be KeepDeadline.
func (t *table) replace(it Item, hash uint64, v *Value, deadline int64) Item {
	t.changing(hash)
	form, size := v.place(int(it.at))
	if form == Large && t.overwrite(it, v) {
		return t.redate(it, hash, deadline)
	}
	t.freeValue(it)
	e := it.e()
	old, header := e.dated(), e[0]
	switch {
	case deadline == NoDeadline:
		header &^= deadlineBit
	case deadline != KeepDeadline:
		header |= deadlineBit
	}
	it = t.recast(it, header, int(it.at)-prefix(e[0]), size)
	t.put(it, v, form)
	t.dated(it, hash, old, deadline)
	return it
}

// overwrite writes a value to the cell of the Item's Large value, if it has one that fits.
func (t *table) overwrite(it Item, v *Value) bool {
	e, at := it.e(), int(it.at)
	if e.form() != Large || v.kept {
		return false
	}
	h := e.handleAt(at)
	if !t.cells.fits(h, len(v.bytes)) {
		return false
	}
	m := t.cells.bytes(h)
	copy(m, v.bytes)
	if old := e.largeLen(at); old > len(v.bytes) {
		clear(m[len(v.bytes):old])
	}
	e[0] = e[0]&^(typeMask|altBit) | byte(v.Type)
	if v.Alt {
		e[0] |= altBit
	}
	e.setLargeLen(at, len(v.bytes))
	return true
}

// recast gives an entry another header, and room for extra bytes behind the first keep
// bytes of key and value. It writes the entry in place if its cell has the right size.
// Deadline and access field stay, and are undefined if they are new.
func (t *table) recast(it Item, header byte, keep, extra int) Item {
	old := it.e()
	e := old
	deadline, access := old.dated(), uint32(0)
	if old[0]&accessBit != 0 {
		access = old.access()
	}
	from, to := prefix(old[0]), prefix(header)
	h := handleAt(it.b, int(it.slot))
	if t.cells.fits(h, to+keep+extra) {
		if from != to {
			copy(old[to:to+keep], old[from:from+keep])
		}
	} else {
		moved := t.cells.alloc(to + keep + extra)
		e = t.entry(moved)
		copy(e[to:to+keep], old[from:])
		setHandle(it.b, int(it.slot), moved)
		t.cells.free(h)
	}
	e[0] = header
	if header&deadlineBit != 0 {
		e.setRawDeadline(deadline)
	}
	if header&accessBit != 0 {
		e.setAccess(access)
	}
	it.at += int32(to - from)
	return it
}

// dated counts and schedules a deadline that the entry has room for. old is what
// entry.dated returned before; deadline may be NoDeadline or KeepDeadline.
func (t *table) dated(it Item, hash uint64, old uint64, deadline int64) {
	switch {
	case deadline == KeepDeadline:
	case deadline == NoDeadline:
		if old != 0 {
			t.expiring--
		}
	default:
		if old == 0 {
			t.expiring++
		}
		t.schedule(it, hash, old, deadline)
	}
}

// redate gives an entry another deadline; it may be NoDeadline or KeepDeadline.
func (t *table) redate(it Item, hash uint64, deadline int64) Item {
	e := it.e()
	old, header := e.dated(), e[0]
	switch deadline {
	case KeepDeadline:
		return it
	case NoDeadline:
		header &^= deadlineBit
	default:
		header |= deadlineBit
	}
	if header != e[0] {
		it = t.recast(it, header, int(it.at)-prefix(e[0])+e.payload(int(it.at)), 0)
	}
	t.dated(it, hash, old, deadline)
	return it
}

// delete deletes a key.
func (t *table) delete(it Item, hash uint64) {
	t.changing(hash)
	t.freeValue(it)
	t.unlink(it, hash)
}

// unlink removes an entry and frees its cell, but not those that its value names.
func (t *table) unlink(it Item, hash uint64) {
	if it.e()[0]&deadlineBit != 0 {
		t.expiring--
	}
	h := handleAt(it.b, int(it.slot))
	t.remove(it.b, int(it.slot), hash)
	t.cells.free(h)
	t.shrink()
}

// freeValue frees the cells that a value names.
func (t *table) freeValue(it Item) {
	switch e := it.e(); e.form() {
	case Large:
		t.cells.free(e.handleAt(int(it.at)))
	case Node:
		t.store.trash.node(t, it.Type(), it.Root())
	}
}
