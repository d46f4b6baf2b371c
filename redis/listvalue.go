package redis

import (
	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/quicklist"
	"github.com/rondo-go/rondo/redis/store"
)

// A short list is a listpack, which the store keeps beside the key. A longer one is a
// quicklist. OBJECT ENCODING says "quicklist" for both, as Redis 7.0 does.
const (
	// maxShort is the size of the longest listpack that a short list is, in bytes, even
	// if list-max-listpack-size allows more.
	maxShort = 8 << 10
	// shortAgain is the size below which a list that has been long becomes short.
	shortAgain = maxShort / 4
)

// listScratch is memory for a list that is being made, and for an element on its way.
type listScratch struct {
	pack    []byte
	element []byte
}

// keepScratch returns b for the next use, unless it has become large.
func keepScratch(b []byte) []byte {
	if cap(b) > spillSize {
		return nil
	}
	return b
}

// applyListSize makes later writes respect list-max-listpack-size.
func applyListSize(s *Server) { s.space.listLimit = quicklist.LimitOf(int(s.config.listSize)) }

func listEncoding(store.Item) string { return "quicklist" }

// isShort reports whether a list may be short.
func (k *keyspace) isShort(bytes, count int) bool {
	return bytes <= maxShort && k.listLimit.Allows(bytes, count)
}

// list returns a view of a list.
func (db *database) list(it store.Item) quicklist.View {
	if it.Form() == store.Node {
		return db.quicklist(it).View()
	}
	return quicklist.Short(it.Bytes())
}

func (db *database) quicklist(it store.Item) quicklist.List {
	return quicklist.Open(db.keys.Cells(), it.Root())
}

// push adds elements, one after the other, at an end of a list, and returns the number of
// elements that the list has then. If it is the zero Item, push makes the list. The values
// must not be memory of the store.
func (db *database) push(it store.Item, key []byte, front bool, values ...[]byte) int {
	bytes, count := listpack.MinSize, 0
	if it.Exists() {
		if it.Form() == store.Node {
			db.keys.Changing(it)
			return db.extend(db.quicklist(it), front, values)
		}
		bytes = len(it.Bytes())
		count = listpack.Len(it.Bytes())
	}
	old := bytes
	for _, v := range values {
		bytes += listpack.String(v).Size()
	}
	count += len(values)
	switch {
	case !db.space.isShort(bytes, count):
		db.lengthen(it, key, func(l quicklist.List) { db.extend(l, front, values) })
	case it.Exists():
		_, b := db.keys.Resize(it, bytes)
		pushPacked(b[:old], front, values)
	default:
		scratch := &db.space.lists.pack
		*scratch = pushPacked(listpack.Init(*scratch), front, values)
		db.keys.Put(key, store.BytesValue(store.List, *scratch, false), store.NoDeadline)
	}
	if !it.Exists() {
		db.ready(key)
	}
	return count
}

// pushPacked adds elements to a listpack.
func pushPacked(lp []byte, front bool, values [][]byte) []byte {
	for _, v := range values {
		if front {
			lp = listpack.Prepend(lp, listpack.String(v))
		} else {
			lp = listpack.Append(lp, listpack.String(v))
		}
	}
	return lp
}

// extend adds elements to a quicklist and returns its length.
func (db *database) extend(l quicklist.List, front bool, values [][]byte) int {
	for _, v := range values {
		l.Push(front, listpack.String(v), db.space.listLimit)
	}
	return l.Len()
}

// lengthen makes a short list, or a missing one, a quicklist, which change changes first.
func (db *database) lengthen(it store.Item, key []byte, change func(quicklist.List)) {
	if !it.Exists() {
		l := quicklist.New(db.keys.Cells(), listpack.Init(nil))
		change(l)
		db.keys.Put(key, store.NodeValue(store.List, l.Root(), false), store.NoDeadline)
		return
	}
	l := quicklist.New(db.keys.Cells(), it.Bytes())
	change(l)
	db.keys.Replace(it, store.NodeValue(store.List, l.Root(), false), store.KeepDeadline)
}

// shorten deletes the key of a quicklist without elements, and makes one of few a short
// list.
func (db *database) shorten(it store.Item, l quicklist.List) {
	if l.Len() == 0 {
		db.keys.Delete(it)
		return
	}
	lp := l.Single()
	if lp == nil || len(lp) > shortAgain || !db.space.isShort(len(lp), l.Len()) {
		return
	}
	scratch := append(db.space.lists.pack[:0], lp...)
	db.keys.Replace(it, store.BytesValue(store.List, scratch, false), store.KeepDeadline)
	db.space.lists.pack = scratch
}

// take deletes one element of a list; without others it deletes the key.
func (db *database) take(it store.Item, list quicklist.View, p quicklist.Pos) {
	if list.Len() == 1 {
		db.keys.Delete(it)
		return
	}
	db.keys.Changing(it)
	if it.Form() == store.Node {
		l := db.quicklist(it)
		l.Delete(p)
		db.shorten(it, l)
		return
	}
	db.keys.Resize(it, len(listpack.Delete(p.Pack())))
}

// cut deletes n elements of a list from an index on; without others it deletes the key.
func (db *database) cut(it store.Item, start, n int) {
	switch {
	case n == 0:
	case n == db.list(it).Len():
		db.keys.Delete(it)
	case it.Form() == store.Node:
		db.keys.Changing(it)
		l := db.quicklist(it)
		if rest := l.DeleteRange(start, n); rest != 0 {
			db.keys.Discard(store.List, rest)
		}
		db.shorten(it, l)
	default:
		db.keys.Changing(it)
		lp := it.Bytes()
		db.keys.Resize(it, len(listpack.DeleteRange(lp, listpack.Seek(lp, start), n)))
	}
}

// setElement replaces an element.
func (db *database) setElement(it store.Item, index int, v listpack.Value) {
	if it.Form() == store.Node {
		db.keys.Changing(it)
		l := db.quicklist(it)
		l.Replace(l.View().Seek(index), v, db.space.listLimit)
		db.shorten(it, l)
		return
	}
	lp := it.Bytes()
	at := listpack.Seek(lp, index)
	old := len(lp)
	size := old - listpack.SizeAt(lp, at) + v.Size()
	switch {
	case !db.space.isShort(size, listpack.Len(lp)):
		db.lengthen(it, nil, func(l quicklist.List) { l.Replace(l.View().Seek(index), v, db.space.listLimit) })
	case size < old:
		db.keys.Changing(it)
		db.keys.Resize(it, len(listpack.Replace(lp, at, v)))
	default:
		_, b := db.keys.Resize(it, size)
		listpack.Replace(b[:old], at, v)
	}
}

// insertElement adds an element before or behind another one, and returns the number of
// elements.
func (db *database) insertElement(it store.Item, p quicklist.Pos, behind bool, v listpack.Value) int {
	if it.Form() == store.Node {
		db.keys.Changing(it)
		l := db.quicklist(it)
		l.Insert(p, behind, v, db.space.listLimit)
		return l.Len()
	}
	lp := it.Bytes()
	old, n := len(lp), listpack.Len(lp)+1
	_, at := p.Pack()
	if behind {
		at += listpack.SizeAt(lp, at)
	}
	if !db.space.isShort(old+v.Size(), n) {
		db.lengthen(it, nil, func(l quicklist.List) { l.InsertFirst(at, v, db.space.listLimit) })
		return n
	}
	_, b := db.keys.Resize(it, old+v.Size())
	listpack.Insert(b[:old], at, v)
	return n
}

// removeElements deletes elements equal to v, as LREM: the first n, or the last -n, or all.
// It deletes the key of an empty list.
func (db *database) removeElements(it store.Item, v listpack.Value, n int) (removed int) {
	db.keys.Changing(it)
	if it.Form() == store.Node {
		l := db.quicklist(it)
		removed = l.Remove(v, n)
		if removed > 0 {
			db.shorten(it, l)
		}
		return removed
	}
	lp, removed := listpack.Remove(it.Bytes(), v, n)
	switch {
	case removed == 0:
	case listpack.Len(lp) == 0:
		db.keys.Delete(it)
	default:
		db.keys.Resize(it, len(lp))
	}
	return removed
}
