package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/intset"
	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

// A set is an intset while it is small and its members are integers, and otherwise
// a store.Dict. It never goes back.

func setEncoding(it store.Item) string {
	if it.Form() == store.Node {
		return "hashtable"
	}
	return "intset"
}

// setView reads a set, or an empty one if it is zero. The slices that it yields
// are valid until the next call of each or random of a view.
type setView struct {
	ints   []byte // the intset, if there is one
	dict   store.Dict
	nested bool // dict is the set
	digits *digits
}

// viewSet returns the view of an Item, which must exist. It is valid as long as
// the Item.
func (db *database) viewSet(it store.Item) setView {
	if it.Form() == store.Node {
		return setView{dict: db.keys.Dict(it.Root()), nested: true}
	}
	return setView{ints: it.Bytes(), digits: &db.space.digits}
}

func (s *setView) len() int {
	switch {
	case s.nested:
		return s.dict.Len()
	case s.ints != nil:
		return intset.Len(s.ints)
	}
	return 0
}

func (s *setView) has(member []byte) bool {
	if s.nested {
		return s.dict.Find(member) != 0
	}
	if s.ints == nil {
		return false
	}
	n, ok := resp.ParseInt(member)
	if ok {
		_, ok = intset.Find(s.ints, n)
	}
	return ok
}

// text returns the member of the intset with an index.
func (s *setView) text(i int) []byte {
	return appendInt(s.digits[0][:0], intset.At(s.ints, i))
}

// each yields all members.
func (s *setView) each(yield func(member []byte) bool) {
	if s.nested {
		for m := range s.dict.Each {
			if !yield(s.dict.Name(m)) {
				return
			}
		}
		return
	}
	for i := range s.len() {
		if !yield(s.text(i)) {
			return
		}
	}
}

// random returns a random member.
func (s *setView) random(c *client) []byte {
	if s.nested {
		return s.dict.Name(s.dict.Random())
	}
	return s.text(c.randomIndex(s.len()))
}

// allInts reports whether the set could be an intset of up to limit members.
func (s *setView) allInts(limit int64) bool {
	if int64(s.len()) > limit {
		return false
	}
	for m := range s.each {
		if _, ok := resp.ParseInt(m); !ok {
			return false
		}
	}
	return true
}

// setEdit changes a set: its Dict, or a copy of its intset. finish or replace must
// follow.
type setEdit struct {
	setView
	c   *client
	key []byte
	it  store.Item // zero: the set is new
}

// begin begins to change a set. The Item may be zero; it must not change before
// finish.
func (e *setEdit) begin(c *client, key []byte, it store.Item) {
	e.c, e.key, e.it = c, key, it
	e.digits = &c.db.space.digits
	switch {
	case !it.Exists():
		e.ints = intset.Init(c.db.space.takeScratch())
	case it.Form() == store.Node:
		c.db.keys.Changing(it)
		e.dict, e.nested = c.db.keys.Dict(it.Root()), true
	default:
		e.ints = append(c.db.space.takeScratch(), it.Bytes()...)
	}
}

// maxInts returns how many members an intset may have.
func (c *client) maxInts() int64 { return min(c.server.config.setEntries, intset.MaxLen) }

// add adds a member, and reports whether it is new.
func (e *setEdit) add(member []byte) (added bool) {
	if !e.nested {
		n, ok := resp.ParseInt(member)
		if ok {
			e.ints, added = intset.Add(e.ints, n)
			if added && int64(e.len()) > e.c.maxInts() {
				e.convert()
			}
			return added
		}
		e.convert()
	}
	_, added = e.dict.Put(member, nil)
	return added
}

// convert makes the intset a Dict.
func (e *setEdit) convert() {
	dict := e.c.db.keys.NewDict(store.Shape{})
	for m := range e.each {
		dict.Put(m, nil)
	}
	e.c.db.space.keepScratch(e.ints)
	e.dict, e.nested, e.ints = dict, true, nil
}

// remove removes a member, and reports whether it was there.
func (e *setEdit) remove(member []byte) (removed bool) {
	if e.nested {
		return e.dict.Delete(member)
	}
	n, ok := resp.ParseInt(member)
	if ok {
		e.ints, removed = intset.Remove(e.ints, n)
	}
	return removed
}

// finish stores the set, or deletes the key if the set is empty. It reports the
// change unless changed is false.
func (e *setEdit) finish(changed bool) {
	keys := e.c.db.keys
	inPlace := e.it.Exists() && e.it.Form() == store.Node
	switch {
	case e.len() == 0:
		if e.it.Exists() {
			keys.Delete(e.it)
		}
	case changed && !inPlace:
		e.c.db.put(e.key, e.it, e.value())
	}
	e.release()
	if changed {
		e.c.changed(e.key)
	}
}

// replace stores the new set at the key, whatever that was, and publishes an event. It
// deletes the key if the set is empty.
func (e *setEdit) replace(event string) {
	keys := e.c.db.keys
	if e.len() > 0 {
		keys.Put(e.key, e.value(), store.NoDeadline)
		e.c.changed(e.key)
		e.c.notify(eventSet, event, e.key)
	} else if old := e.c.db.find(e.key); old.Exists() {
		keys.Delete(old)
		e.c.changed(e.key)
		e.c.notify(eventGeneric, "del", e.key)
	}
	if e.nested && e.len() == 0 {
		store.FreeDict(keys.Cells(), e.dict.Root(), math.MaxInt)
	}
	e.release()
}

func (e *setEdit) value() store.Value {
	if e.nested {
		return store.NodeValue(store.Set, e.dict.Root(), false)
	}
	return store.BytesValue(store.Set, e.ints, false)
}

func (e *setEdit) release() {
	if !e.nested {
		e.c.db.space.keepScratch(e.ints)
	}
}
