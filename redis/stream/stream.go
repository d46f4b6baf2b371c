package stream

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// A Stream is the stream of a key.
type Stream struct {
	c    *store.Cells
	root store.Handle
}

// Offsets in the root's cell, and its size.
const (
	rootBlocks = 0
	rootGroups = rootBlocks + treeSize
	rootLen    = rootGroups + tableSize
	rootAdded  = rootLen + 8
	rootLast   = rootAdded + 8
	rootFirst  = rootLast + idSize
	rootErased = rootFirst + idSize // the greatest ID that was deleted
	rootSweep  = rootErased + idSize
	rootMoves  = rootSweep + idSize // how often entries have moved within a block or to another
	rootSize   = rootMoves + 8
)

// Limits say when a block is full: stream-node-max-bytes and stream-node-max-entries. 0
// stands for no limit.
type Limits struct{ Bytes, Entries int }

// MaxEntry is the most bytes of an entry's fields and values.
const MaxEntry = 1 << 30

// New makes an empty Stream.
func New(c *store.Cells) Stream {
	s := Stream{c, c.Alloc(rootSize)}
	clear(c.Bytes(s.root)[:rootSize])
	return s
}

// Open returns the Stream at a root.
func Open(c *store.Cells, root store.Handle) Stream { return Stream{c, root} }

// Root returns the Handle that the store keeps for the key.
func (s Stream) Root() store.Handle { return s.root }

func (s Stream) blocks() Tree { return Tree{s.c, s.root, rootBlocks, 8} }

func (s Stream) bytes() []byte { return s.c.Bytes(s.root) }

func (s Stream) number(at int) int { return int(binary.LittleEndian.Uint64(s.bytes()[at:])) }

func (s Stream) setNumber(at, n int) { binary.LittleEndian.PutUint64(s.bytes()[at:], uint64(n)) }

// moves returns a number that moved changes. It is never 0.
func (s Stream) moves() uint32 { return uint32(s.number(rootMoves)) | 1<<31 }

// moved is called when the entries of a block move within it, or when an ID gets another block.
func (s Stream) moved() { s.setNumber(rootMoves, s.number(rootMoves)+1) }

// Len returns the number of entries.
func (s Stream) Len() int { return s.number(rootLen) }

// Added returns how many entries were ever added, as far as is known.
func (s Stream) Added() int64 { return int64(binary.LittleEndian.Uint64(s.bytes()[rootAdded:])) }

// SetAdded sets what Added returns.
func (s Stream) SetAdded(n int64) {
	binary.LittleEndian.PutUint64(s.bytes()[rootAdded:], uint64(n))
}

// Last returns the last ID that was given, also to an entry that is deleted now.
func (s Stream) Last() ID { return getID(s.bytes()[rootLast:]) }

// SetLast sets what Last returns, to a greater ID.
func (s Stream) SetLast(id ID) { putID(s.bytes()[rootLast:], id) }

// Rewind sets what Last returns to any ID that is not before an entry. Behind it there may be
// blocks of deleted entries: they go, because an entry to come may belong before them.
func (s Stream) Rewind(id ID) {
	var x Cursor
	for s.blocks().Last(&x); x.Ok() && id.Less(x.ID()); s.blocks().Last(&x) {
		s.dropBlock(&x)
	}
	s.SetLast(id)
}

// First returns the ID of the first entry, or 0-0.
func (s Stream) First() ID { return getID(s.bytes()[rootFirst:]) }

// SetFirst sets what First returns, for a stream whose blocks are added as they are.
func (s Stream) SetFirst(id ID) { putID(s.bytes()[rootFirst:], id) }

// Erased returns the greatest ID of the entries that Erase has deleted.
func (s Stream) Erased() ID { return getID(s.bytes()[rootErased:]) }

// SetErased sets what Erased returns.
func (s Stream) SetErased(id ID) { putID(s.bytes()[rootErased:], id) }

// Blocks returns the number of blocks.
func (s Stream) Blocks() int { return s.blocks().Len() }

// pack returns a block's listpack, with the capacity that its cell has.
func (s Stream) pack(h store.Handle) []byte {
	b := s.c.Bytes(h)
	return b[:binary.LittleEndian.Uint32(b):s.c.Size(h)]
}

func handleOf(value []byte) store.Handle {
	return store.Handle(binary.LittleEndian.Uint64(value))
}

func setHandle(value []byte, h store.Handle) { binary.LittleEndian.PutUint64(value, uint64(h)) }

// Add adds an entry behind all others: its ID must be greater than Last. pairs are fields,
// each followed by its value.
func (s Stream) Add(id ID, pairs [][]byte, l Limits) {
	var x Cursor
	s.blocks().Last(&x)
	room := 0
	if x.Ok() {
		if s.extend(&x, id, pairs, l) {
			s.added(id)
			return
		}
		room = s.fit(x.Value(), l)
	}
	s.start(id, pairs, room)
	s.added(id)
}

// added counts a new entry.
func (s Stream) added(id ID) {
	n := s.Len() + 1
	s.setNumber(rootLen, n)
	s.SetAdded(s.Added() + 1)
	s.SetLast(id)
	if n == 1 {
		s.SetFirst(id)
	}
}

// most returns the limit of a block in bytes.
func (l Limits) most() int {
	if l.Bytes == 0 || l.Bytes > listpack.MaxSize {
		return listpack.MaxSize
	}
	return l.Bytes
}

// extend adds an entry to the last block, unless that is full.
func (s Stream) extend(x *Cursor, id ID, pairs [][]byte, l Limits) bool {
	lp := s.pack(handleOf(x.Value()))
	size := len(lp)
	for _, v := range pairs {
		size += len(v)
	}
	if size >= l.most() {
		return false
	}
	b := openBlock(lp, x.ID())
	if l.Entries > 0 && b.count+b.deleted >= l.Entries {
		return false
	}
	same := b.hasFields(pairs)
	need := len(lp) + b.entryBytes(id, pairs, same) + b.countBytes(b.count+1, b.deleted)
	b.lp = s.grow(x.Value(), need, l)
	b.setCounts(b.count+1, b.deleted)
	b.append(id, pairs, same)
	return true
}

// grow returns a block's listpack, with room for size bytes. It leaves room for more within
// the limit.
func (s Stream) grow(value []byte, size int, l Limits) []byte {
	h := handleOf(value)
	if s.c.Size(h) < size {
		s.resize(value, l.room(size))
		h = handleOf(value)
	}
	return s.pack(h)
}

// room returns the size of a cell for a block of size bytes that grows. A block that may become
// very large must not be copied for each few entries.
func (l Limits) room(size int) int {
	more := min(size/2, max(2*maxFit-size, size/8))
	return max(size, min(size+more, l.most()))
}

// maxFit is the most room that a new block gets for entries to come. It is the default of
// stream-node-max-bytes.
const maxFit = 4096

// resize moves a block to a cell of a size.
func (s Stream) resize(value []byte, size int) {
	old := handleOf(value)
	h := s.c.Alloc(size)
	copy(s.c.Bytes(h)[:size], s.pack(old))
	s.c.Free(old)
	setHandle(value, h)
}

// fit gives a block that is full a cell of its size, and returns the room for the next one.
func (s Stream) fit(value []byte, l Limits) int {
	n := len(s.pack(handleOf(value)))
	if s.c.Size(handleOf(value)) > n/7*8 && !s.c.Fits(handleOf(value), n) {
		s.resize(value, n)
	}
	return min(n, l.most(), maxFit)
}

// start adds a block with its first entry, and some room.
func (s Stream) start(id ID, pairs [][]byte, room int) {
	head := block{id: id}
	size := headBytes(pairs) + head.entryBytes(id, pairs, true)
	h := s.c.Alloc(max(size, room))
	b := begin(s.c.Bytes(h)[:0:s.c.Size(h)], id, pairs)
	b.append(id, pairs, true)
	value, _ := s.blocks().Insert(id)
	setHandle(value, h)
}

// AddBlock adds a block as it is, which Valid has checked, behind all others. It does not
// count its entries.
func (s Stream) AddBlock(id ID, lp []byte) {
	h := s.c.Alloc(len(lp))
	copy(s.c.Bytes(h), lp)
	value, _ := s.blocks().Insert(id)
	setHandle(value, h)
}

// SetLen sets the number of entries, for a stream whose blocks are added as they are.
func (s Stream) SetLen(n int) { s.setNumber(rootLen, n) }

// EachBlock calls visit for the blocks, in order, until it returns false.
func (s Stream) EachBlock(visit func(id ID, lp []byte) bool) {
	var x Cursor
	for s.blocks().First(&x); x.Ok() && visit(x.ID(), s.pack(handleOf(x.Value()))); x.Next() {
	}
}
