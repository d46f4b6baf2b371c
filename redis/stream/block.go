package stream

import "github.com/rondo-go/rondo/redis/listpack"

// A block is a listpack of entries. Its elements are integers and the texts of fields and
// values:
//
//	block  count, deleted, the number of fields, the fields, 0; then the entries
//	entry  flags, two numbers to add to the block's ID;
//	       with sameFields the values, else the number of fields, fields and values;
//	       the number of elements so far, for the way back
//
// An entry's ID is greater than those of all entries before it that are not deleted. It may
// be smaller than that of a deleted one: see Stream.Rewind.
type block struct {
	lp      []byte
	id      ID
	count   int // entries that are not deleted
	deleted int
	n       int // fields of the block
	fields  int // the position of the first one
	first   int // the position of the first entry
}

// Flags of entries.
const (
	isDeleted  = 1
	sameFields = 2
)

// openBlock reads the head of a block.
func openBlock(lp []byte, id ID) block {
	b := block{lp: lp, id: id}
	at := listpack.First(lp)
	b.count, at = intAt(lp, at)
	b.deleted, at = intAt(lp, at)
	b.n, at = intAt(lp, at)
	b.fields = at
	b.first = skip(lp, at, b.n+1)
	return b
}

// intAt returns the integer at a position, and the position behind it.
func intAt(lp []byte, at int) (n, behind int) {
	v, _ := listpack.At(lp, at).ParseInt()
	return int(v), at + listpack.SizeAt(lp, at)
}

// skip returns the position behind n elements.
func skip(lp []byte, at, n int) int {
	for ; n > 0; n-- {
		at += listpack.SizeAt(lp, at)
	}
	return at
}

// An entry is one of a block.
type entry struct {
	at    int // its position
	flags int
	id    ID
	n     int // fields
	data  int // the position of the first field, or of the first value with sameFields
}

// entry reads the head of the entry at a position.
func (b *block) entry(at int) entry {
	e := entry{at: at, n: b.n}
	e.flags, at = intAt(b.lp, at)
	ms, at := int64At(b.lp, at)
	seq, at := int64At(b.lp, at)
	e.id = ID{b.id.MS + uint64(ms), b.id.Seq + uint64(seq)}
	if e.flags&sameFields == 0 {
		e.n, at = intAt(b.lp, at)
	}
	e.data = at
	return e
}

func int64At(lp []byte, at int) (n int64, behind int) {
	n, _ = listpack.At(lp, at).ParseInt()
	return n, at + listpack.SizeAt(lp, at)
}

// behind returns the position behind an entry.
func (b *block) behind(e entry) int {
	n := e.n
	if e.flags&sameFields == 0 {
		n *= 2
	}
	return skip(b.lp, e.data, n+1)
}

// before returns the position of the entry that ends at a position; ok is false for the
// first entry's.
func (b *block) before(end int) (at int, ok bool) {
	at = listpack.Prev(b.lp, end)
	n, _ := intAt(b.lp, at)
	if n == 0 {
		return 0, false
	}
	for ; n > 0; n-- {
		at = listpack.Prev(b.lp, at)
	}
	return at, true
}

// near returns the position of an entry at or before the first one with an ID of lo or more. It
// looks from the end if that is near.
func (b *block) near(lo ID) (at int) {
	if !b.id.Less(lo) {
		return b.first
	}
	last := b.last()
	behind, ahead := lo.MS-b.id.MS, last.MS-lo.MS
	if last.MS == b.id.MS {
		behind, ahead = lo.Seq-b.id.Seq, last.Seq-lo.Seq
	}
	if last.Less(lo) {
		ahead = 0
	}
	if behind/4 < ahead { // a step back costs more
		return b.first
	}
	at = listpack.End(b.lp)
	for {
		prev, ok := b.before(at)
		if !ok {
			return at
		}
		at = prev
		if e := b.entry(at); e.id.Less(lo) {
			return at
		}
	}
}

// last returns the ID of the last entry, which may be deleted.
func (b *block) last() ID {
	at, ok := b.before(listpack.End(b.lp))
	if !ok {
		return ID{}
	}
	return b.entry(at).id
}

// hasFields reports whether an entry has the block's fields.
func (b *block) hasFields(pairs [][]byte) bool {
	if len(pairs) != 2*b.n {
		return false
	}
	var digits [20]byte
	at := b.fields
	for i := 0; i < len(pairs); i += 2 {
		if string(listpack.At(b.lp, at).Bytes(digits[:0])) != string(pairs[i]) {
			return false
		}
		at += listpack.SizeAt(b.lp, at)
	}
	return true
}

// intSize returns the bytes that an integer takes.
func intSize(n int) int { return listpack.Int(int64(n)).Size() }

// headBytes returns the bytes of the head of a block, for its first entry.
func headBytes(pairs [][]byte) int {
	n := listpack.MinSize + intSize(1) + intSize(0) + intSize(len(pairs)/2) + intSize(0)
	for i := 0; i < len(pairs); i += 2 {
		n += listpack.String(pairs[i]).Size()
	}
	return n
}

// elements returns the last number of an entry.
func elements(pairs [][]byte, same bool) int {
	if same {
		return len(pairs)/2 + 3
	}
	return len(pairs) + 4
}

// entryBytes returns the bytes of an entry.
func (b *block) entryBytes(id ID, pairs [][]byte, same bool) int {
	n := intSize(0) + intSize(elements(pairs, same)) +
		listpack.Int(int64(id.MS-b.id.MS)).Size() + listpack.Int(int64(id.Seq-b.id.Seq)).Size()
	if !same {
		n += intSize(len(pairs) / 2)
	}
	for i, v := range pairs {
		if !same || i%2 == 1 {
			n += listpack.String(v).Size()
		}
	}
	return n
}

// begin makes a block for a first entry in the memory of lp, without that entry.
func begin(lp []byte, id ID, pairs [][]byte) block {
	lp = listpack.Init(lp)
	for _, n := range [...]int{1, 0, len(pairs) / 2} {
		lp = listpack.Append(lp, listpack.Int(int64(n)))
	}
	for i := 0; i < len(pairs); i += 2 {
		lp = listpack.Append(lp, listpack.String(pairs[i]))
	}
	return block{lp: listpack.Append(lp, listpack.Int(0)), id: id}
}

// append adds an entry, for which there is room.
func (b *block) append(id ID, pairs [][]byte, same bool) {
	flags := 0
	if same {
		flags = sameFields
	}
	lp := listpack.Append(b.lp, listpack.Int(int64(flags)))
	lp = listpack.Append(lp, listpack.Int(int64(id.MS-b.id.MS)))
	lp = listpack.Append(lp, listpack.Int(int64(id.Seq-b.id.Seq)))
	if !same {
		lp = listpack.Append(lp, listpack.Int(int64(len(pairs)/2)))
	}
	for i, v := range pairs {
		if !same || i%2 == 1 {
			lp = listpack.Append(lp, listpack.String(v))
		}
	}
	b.lp = listpack.Append(lp, listpack.Int(int64(elements(pairs, same))))
}

// countBytes returns by how much the block becomes longer with other counts.
func (b *block) countBytes(count, deleted int) int {
	return intSize(count) - intSize(b.count) + intSize(deleted) - intSize(b.deleted)
}

// setCounts changes the counts. There must be room for them.
func (b *block) setCounts(count, deleted int) {
	at := listpack.First(b.lp)
	b.lp = listpack.Replace(b.lp, at, listpack.Int(int64(count)))
	b.lp = listpack.Replace(b.lp, listpack.Next(b.lp, at), listpack.Int(int64(deleted)))
	b.count, b.deleted = count, deleted
}

// mark marks an entry as deleted.
func (b *block) mark(e entry) {
	b.lp = listpack.Replace(b.lp, e.at, listpack.Int(int64(e.flags|isDeleted)))
}
