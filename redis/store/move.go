package store

// move gives the value of an Item to another key, of the same table or another one, and
// deletes the Item's key.
func (t *table) move(it Item, hash uint64, to *table, key []byte, toHash uint64) Item {
	t.changing(hash)
	h, deadline := t.clone(it, to, key), it.e().deadline()
	if to != t {
		t.handOver(to.entry(h), to)
	}
	t.unlink(it, hash)
	return to.admit(h, toHash, deadline)
}

// copyTo gives a copy of an Item's value to another key.
func (t *table) copyTo(it Item, to *table, key []byte, toHash uint64) Item {
	h, deadline := t.clone(it, to, key), it.e().deadline()
	e := to.entry(h)
	_, at := e.key()
	switch e.form() {
	case Large:
		n := e.largeLen(at)
		old := e.handleAt(at)
		large := to.cells.alloc(max(n, maxSmall+1))
		copy(to.cells.bytes(large), t.cells.bytes(old)[:n])
		e.setHandleAt(at, large)
	case Node:
		e.setHandleAt(at, t.store.ops[it.Type()].Copy(t.nodes(), e.handleAt(at), to.nodes()))
	}
	return to.admit(h, toHash, deadline)
}

// clone returns a cell of another table with an entry like an Item's, under another key.
// Both name the same Large or Node value.
func (t *table) clone(it Item, to *table, key []byte) Handle {
	old := it.e()
	head := prefix(old[0])
	payload := old.payload(int(it.at))
	h := to.cells.alloc(head + varintSize(len(key)) + len(key) + payload)
	e := to.entry(h)
	copy(e[:head], old)
	at := head + putLen(e[head:], len(key))
	at += copy(e[at:], key)
	copy(e[at:], old[it.at:int(it.at)+payload])
	return h
}

// handOver makes the value of an entry of another table that table's.
func (t *table) handOver(e entry, to *table) {
	_, at := e.key()
	h := e.handleAt(at)
	switch e.form() {
	case Large:
		m := &t.space.meta[h>>offsetBits]
		bytes := int64(m.top) * int64(pageSize)
		t.cells.large -= bytes
		to.cells.large += bytes
		m.owner = to.cells.id
	case Node:
		typ := Type(e[0] & typeMask)
		e.setHandleAt(at, t.store.ops[typ].Copy(t.nodes(), h, to.nodes()))
		t.store.trash.node(t, typ, h)
	}
}

// admit adds a complete entry to the table.
func (t *table) admit(h Handle, hash uint64, deadline int64) Item {
	t.changing(hash)
	b, slot := t.add(hash, h)
	it := t.item(b, slot)
	if deadline != 0 {
		t.expiring++
		t.schedule(it, hash, 0, deadline)
	}
	return it
}
