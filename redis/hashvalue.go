package redis

import (
	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// A hash is a listpack of fields, each followed by its value, while it is small,
// and otherwise a store.Dict. It never goes back.

// hashShape is the Shape of a hash as a Dict.
var hashShape = store.Shape{Values: true}

func hashEncoding(it store.Item) string {
	if it.Form() == store.Node {
		return "hashtable"
	}
	return "listpack"
}

// typed reports whether a command may use an Item, which may be zero, as a value
// of a type. If not it replies with an error.
func (c *client) typed(it store.Item, t store.Type) bool {
	if it.Exists() && it.Type() != t {
		c.fail(errWrongType)
		return false
	}
	return true
}

// hashView reads a hash. The slices that it returns and yields are valid until
// the next call of a view.
type hashView struct {
	lp     []byte // nil: dict is the hash
	dict   store.Dict
	digits *digits
}

// viewHash returns the view of an Item, which must exist. It is valid as long as
// the Item.
func (db *database) viewHash(it store.Item) hashView {
	if it.Form() == store.Node {
		return hashView{dict: db.keys.Dict(it.Root())}
	}
	return hashView{lp: it.Bytes(), digits: &db.space.digits}
}

func (h *hashView) len() int {
	if h.lp == nil {
		return h.dict.Len()
	}
	return listpack.Len(h.lp) / 2
}

// get returns the value of a field.
func (h *hashView) get(field []byte) (value []byte, ok bool) {
	if h.lp == nil {
		f := h.dict.Find(field)
		if f == 0 {
			return nil, false
		}
		return h.dict.Value(f), true
	}
	at := findField(h.lp, field)
	if at < 0 {
		return nil, false
	}
	return listpack.At(h.lp, listpack.Next(h.lp, at)).Bytes(h.digits[1][:]), true
}

// findField returns the position of a field in a hash's listpack, or -1.
func findField(lp, field []byte) int {
	return listpack.Find(lp, listpack.First(lp), listpack.String(field), 1)
}

// each yields all fields with their values.
func (h *hashView) each(yield func(field, value []byte) bool) {
	if h.lp == nil {
		for f := range h.dict.Each {
			if !yield(h.dict.Name(f), h.dict.Value(f)) {
				return
			}
		}
		return
	}
	for at := listpack.First(h.lp); at >= 0; {
		value := listpack.Next(h.lp, at)
		if !yield(listpack.At(h.lp, at).Bytes(h.digits[0][:]), listpack.At(h.lp, value).Bytes(h.digits[1][:])) {
			return
		}
		at = listpack.Next(h.lp, value)
	}
}

// random calls use with a random field.
func (h *hashView) random(c *client, use func(field, value []byte)) {
	if h.lp == nil {
		f := h.dict.Random()
		use(h.dict.Name(f), h.dict.Value(f))
		return
	}
	at := listpack.Seek(h.lp, 2*c.randomIndex(h.len()))
	value := listpack.Next(h.lp, at)
	use(listpack.At(h.lp, at).Bytes(h.digits[0][:]), listpack.At(h.lp, value).Bytes(h.digits[1][:]))
}

// hashEdit changes a hash: its Dict, or a copy of its listpack. finish must follow.
type hashEdit struct {
	hashView
	c   *client
	key []byte
	it  store.Item // zero: the hash is new
}

// editHash begins to change a hash. The Item may be zero; it must not change
// before finish.
func (c *client) editHash(key []byte, it store.Item) hashEdit {
	e := hashEdit{c: c, key: key, it: it}
	e.digits = &c.db.space.digits
	switch {
	case !it.Exists():
		e.lp = listpack.Init(c.db.space.takeScratch())
	case it.Form() == store.Node:
		c.db.keys.Changing(it)
		e.dict = c.db.keys.Dict(it.Root())
	default:
		e.lp = append(c.db.space.takeScratch(), it.Bytes()...)
	}
	return e
}

// set sets a field, and reports whether it is new.
func (e *hashEdit) set(field, value []byte) (created bool) {
	limits := &e.c.server.config
	if e.lp != nil && (int64(max(len(field), len(value))) > limits.hashValue ||
		len(e.lp)+len(field)+len(value)+20 > listpack.MaxSize) {
		e.convert()
	}
	if e.lp == nil {
		_, created = e.dict.Put(field, value)
		return created
	}
	if at := findField(e.lp, field); at >= 0 {
		e.lp = listpack.Replace(e.lp, listpack.Next(e.lp, at), listpack.String(value))
	} else {
		e.lp = listpack.Append(e.lp, listpack.String(field))
		e.lp = listpack.Append(e.lp, listpack.String(value))
		created = true
	}
	if int64(e.len()) > limits.hashEntries {
		e.convert()
	}
	return created
}

// convert makes the listpack a Dict.
func (e *hashEdit) convert() {
	dict := e.c.db.keys.NewDict(hashShape)
	for field, value := range e.each {
		dict.Put(field, value)
	}
	e.c.db.space.keepScratch(e.lp)
	e.dict, e.lp = dict, nil
}

// delete deletes a field, and reports whether it was there.
func (e *hashEdit) delete(field []byte) bool {
	if e.lp == nil {
		return e.dict.Delete(field)
	}
	at := findField(e.lp, field)
	if at >= 0 {
		e.lp = listpack.DeleteRange(e.lp, at, 2)
	}
	return at >= 0
}

// finish stores the hash, or deletes the key if the hash is empty. It reports the
// change unless changed is false.
func (e *hashEdit) finish(changed bool) {
	keys := e.c.db.keys
	inPlace := e.it.Exists() && e.it.Form() == store.Node
	switch {
	case e.len() == 0:
		if e.it.Exists() {
			keys.Delete(e.it)
		}
	case e.lp == nil && !inPlace:
		e.c.db.put(e.key, e.it, store.NodeValue(store.Hash, e.dict.Root(), false))
	case e.lp != nil && changed:
		e.c.db.putBytes(e.key, e.it, store.Hash, e.lp)
	}
	if e.lp != nil {
		e.c.db.space.keepScratch(e.lp)
	}
	if changed {
		e.c.changed(e.key)
	}
}

// put sets a key to a value. The Item is the key's, or zero. The key keeps its
// deadline.
func (db *database) put(key []byte, it store.Item, v store.Value) {
	if it.Exists() {
		db.keys.Replace(it, v, store.KeepDeadline)
	} else {
		db.keys.Put(key, v, store.NoDeadline)
	}
}

// putBytes is put for bytes. They replace those of the Item in place if they are as many: a
// field's new value is often as long as the old one.
func (db *database) putBytes(key []byte, it store.Item, t store.Type, b []byte) {
	if !it.Exists() || it.Form() == store.Node || it.Len() != len(b) {
		db.put(key, it, store.BytesValue(t, b, false))
		return
	}
	db.keys.Changing(it)
	copy(it.Bytes(), b)
}
