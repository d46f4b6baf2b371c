package zset

import (
	"iter"
	"math"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// Sets makes Sets.
type Sets struct {
	// Entries and Value are the most members of a listpack, and the length of the longest
	// one.
	Entries, Value int

	scratch []byte
	set     Set // that is open for changes: a copy of so many words costs as much as the change
}

// A Set is the sorted set of a key, for the time of a command. It may be read until the
// store changes. To change it, open it by Edit or Create, and call Commit at the end; of
// the Sets of one store, only one at a time may be open for changes.
type Set struct {
	sets *Sets
	db   *store.DB
	key  []byte
	it   store.Item // zero: the key has no set yet

	small   []byte // a listpack, if isLarge is not set
	large   large
	isLarge bool
	changed bool
}

// Open returns the Set of an Item, to read. The zero Item gives an empty Set.
func Open(db *store.DB, it store.Item) (s Set) {
	s.open(db, it)
	return s
}

func (s *Set) open(db *store.DB, it store.Item) {
	s.db, s.it = db, it
	switch {
	case !it.Exists():
		s.small = empty
	case it.Form() == store.Node:
		s.large, s.isLarge = openLarge(db, it.Root()), true
	default:
		s.small = it.Bytes()
	}
}

var empty = listpack.Init(nil)

// Edit returns the Set of a key and its Item, to change. The zero Item stands for a key
// that does not exist. key must not be memory of the store. The Set is valid until the next
// call of Edit or Create.
func (x *Sets) Edit(db *store.DB, key []byte, it store.Item) *Set {
	s := &x.set
	*s = Set{sets: x, key: key}
	s.open(db, it)
	if !s.isLarge {
		x.scratch = append(x.scratch[:0], s.small...)
		s.small = x.scratch
	}
	return s
}

// Create returns an empty Set, which Commit gives to a key in the place of what it has. It
// is for members of whose number, and greatest length, something is known: if these are
// above the thresholds, the Set is a table and a Tree from the beginning.
func (x *Sets) Create(db *store.DB, key []byte, members, longest int) *Set {
	s := x.Edit(db, key, store.Item{})
	if members > x.Entries || longest > x.Value {
		s.enlarge()
	}
	return s
}

// maxScratch bounds the memory that waits for the next Set.
const maxScratch = 64 << 10

// Commit ends the changes of a Set. A key whose Set is empty is deleted.
func (s *Set) Commit() {
	if s.sets != nil && !s.isLarge {
		s.sets.scratch = s.small
		if cap(s.small) > maxScratch {
			s.sets.scratch = nil
		}
	}
	stored := s.it.Exists() && s.it.Form() == store.Node
	switch {
	case !s.changed:
	case s.Len() == 0:
		if s.isLarge && !stored {
			Nodes{}.Free(s.db.Cells(), s.large.root, math.MaxInt)
		}
		if s.it.Exists() {
			s.db.Delete(s.it)
		}
	case s.isLarge && stored:
	case s.it.Exists():
		s.db.Replace(s.it, s.value(), store.KeepDeadline)
	default:
		s.db.Put(s.key, s.value(), store.NoDeadline)
	}
}

// Take ends the changes of a Set that Create has made, and returns it as a value for a key,
// with the root of its cells, or 0. The value is valid until another Set is edited.
func (s *Set) Take() (v store.Value, root store.Handle) {
	if s.isLarge {
		return s.value(), s.large.root
	}
	s.sets.scratch = s.small
	return s.value(), 0
}

func (s *Set) value() store.Value {
	if s.isLarge {
		return store.NodeValue(store.ZSet, s.large.root, false)
	}
	return store.BytesValue(store.ZSet, s.small, false)
}

// IsLarge reports whether the Set is a table and a Tree, and not a listpack.
func (s *Set) IsLarge() bool { return s.isLarge }

// Len returns the number of members.
func (s *Set) Len() int {
	if s.isLarge {
		return s.large.len()
	}
	return listpack.Len(s.small) / 2
}

// Score returns a member's score; ok is false if there is no such member.
func (s *Set) Score(member []byte) (score float64, ok bool) {
	if s.isLarge {
		if h := s.large.find(member); h != 0 {
			return s.large.score(h), true
		}
		return 0, false
	}
	if at := findMember(s.small, member); at >= 0 {
		return scoreAt(s.small, at), true
	}
	return 0, false
}

// Rank returns the number of members before a Bound.
func (s *Set) Rank(b Bound) int {
	if s.isLarge {
		return s.large.tree.Rank(b)
	}
	_, rank := seekPlace(s.small, &b)
	return rank
}

// From returns members and their scores from a rank on, in their order. A member is valid
// until the next one comes. The Set must not change meanwhile.
func (s *Set) From(rank int) iter.Seq2[[]byte, float64] {
	return func(yield func([]byte, float64) bool) { s.Each(rank, false, yield) }
}

// Back returns members and their scores from a rank on down to the first one. What From
// says holds.
func (s *Set) Back(rank int) iter.Seq2[[]byte, float64] {
	return func(yield func([]byte, float64) bool) { s.Each(rank, true, yield) }
}

// Each calls visit as From and Back do their loops, until it returns false. Unlike these,
// it does not allocate.
func (s *Set) Each(rank int, backwards bool, visit func(member []byte, score float64) bool) {
	if rank < 0 {
		return
	}
	if s.isLarge {
		s.large.tree.each(rank, backwards, func(score float64, h store.Handle) bool {
			return visit(s.large.tree.dict.Name(h), score)
		})
		return
	}
	var buf [20]byte
	lp := s.small
	for at := listpack.Seek(lp, 2*rank); at >= 0; {
		if !visit(listpack.At(lp, at).Bytes(buf[:0]), scoreAt(lp, at)) {
			return
		}
		if !backwards {
			at = listpack.Next(lp, listpack.Next(lp, at))
		} else if at = listpack.Prev(lp, at); at >= 0 {
			at = listpack.Prev(lp, at)
		}
	}
}

// At returns the member of a rank, which must exist, and its score. The member is valid
// until the Set changes.
func (s *Set) At(rank int) (member []byte, score float64) {
	s.Each(rank, false, func(m []byte, f float64) bool {
		member, score = m, f
		return false
	})
	return member, score
}

// Scan calls visit for at least count members and the texts of their scores, beginning at a
// cursor: 0 at first, later the result of the previous call. It returns the next cursor, or
// 0 at the end. What DB.Scan says about keys holds for members. A listpack is visited at
// once.
func (s *Set) Scan(cursor uint64, count int, visit func(member, score []byte)) uint64 {
	var buf [32]byte
	if s.isLarge {
		return s.large.tree.dict.Scan(cursor, count, func(h store.Handle) {
			visit(s.large.tree.dict.Name(h), AppendScore(buf[:0], s.large.score(h)))
		})
	}
	var member [20]byte
	lp := s.small
	for at := listpack.First(lp); at >= 0; {
		score := listpack.Next(lp, at)
		visit(listpack.At(lp, at).Bytes(member[:0]), listpack.At(lp, score).Bytes(buf[:0]))
		at = listpack.Next(lp, score)
	}
	return 0
}

// Set gives a member a score, and adds it if it does not exist. member must not be memory
// of the store.
func (s *Set) Set(member []byte, score float64) {
	s.changing()
	if !s.isLarge {
		if at := findMember(s.small, member); at >= 0 {
			s.small = addMember(listpack.DeleteRange(s.small, at, 2), member, score)
			return
		}
		if s.fits(member) {
			s.small = addMember(s.small, member, score)
			return
		}
		s.enlarge()
	}
	s.large.set(member, score)
	s.large.save()
}

// Append adds a member that comes after all others.
func (s *Set) Append(member []byte, score float64) {
	s.changing()
	if !s.isLarge {
		if s.fits(member) {
			var buf [32]byte
			s.small = listpack.Append(s.small, listpack.String(member))
			s.small = listpack.Append(s.small, scoreValue(score, buf[:]))
			return
		}
		s.enlarge()
	}
	s.large.append(member, score)
	s.large.save()
}

// fits reports whether the listpack may have another member.
func (s *Set) fits(member []byte) bool {
	return s.Len() < s.sets.Entries && len(member) <= s.sets.Value && len(s.small)+len(member) < maxListpack
}

// maxListpack leaves room for what an element takes beside its bytes.
const maxListpack = listpack.MaxSize - 1024

// enlarge turns a listpack into a table and a Tree.
func (s *Set) enlarge() {
	l := newLarge(s.db)
	for member, score := range s.From(0) {
		l.append(member, score)
	}
	l.save()
	s.sets.scratch = s.small[:0]
	s.small, s.large, s.isLarge = nil, l, true
}

// Remove removes a member, and reports whether there was one.
func (s *Set) Remove(member []byte) bool {
	if s.isLarge {
		h := s.large.find(member)
		if h != 0 {
			s.changing()
			s.large.remove(h)
			s.large.save()
		}
		return h != 0
	}
	at := findMember(s.small, member)
	if at >= 0 {
		s.changing()
		s.small = listpack.DeleteRange(s.small, at, 2)
	}
	return at >= 0
}

// RemoveRanks removes count members, which there must be, from a rank on.
func (s *Set) RemoveRanks(rank, count int) {
	if count == 0 {
		return
	}
	s.changing()
	if s.isLarge {
		s.large.removeRanks(rank, count)
		s.large.save()
		return
	}
	s.small = removeMembers(s.small, rank, count)
}

// changing is called before each change.
func (s *Set) changing() {
	if !s.changed && s.isLarge && s.it.Exists() {
		s.db.Changing(s.it)
	}
	s.changed = true
}
