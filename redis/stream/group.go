package stream

import (
	"encoding/binary"
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

// A Group is a consumer group of a stream.
type Group struct {
	s Stream
	h store.Handle
}

// Offsets in a group's cell.
const (
	groupLast      = 0
	groupRead      = groupLast + idSize
	groupPending   = groupRead + 8
	groupConsumers = groupPending + treeSize
	groupPlace     = groupConsumers + tableSize // where the entry of groupLast is: a place
	groupName      = groupPlace + idSize + 8
)

func (s Stream) groups() table { return table{s.c, s.root, rootGroups, groupName} }

// Groups returns the number of groups.
func (s Stream) Groups() int { return s.groups().len() }

// GroupAt returns a group by its index in the order of the names.
func (s Stream) GroupAt(i int) Group {
	t := s.groups()
	return Group{s, t.member(t.numberAt(i))}
}

// Group returns the group of a name.
func (s Stream) Group(name []byte) (g Group, ok bool) {
	i, ok := s.groups().find(name)
	if ok {
		g = s.GroupAt(i)
	}
	return g, ok
}

// AddGroup adds a group; ok is false if there is one of the name. name must not be memory
// of the store.
func (s Stream) AddGroup(name []byte, last ID, read int64) (g Group, ok bool) {
	i, exists := s.groups().find(name)
	if exists {
		return g, false
	}
	_, h := s.groups().add(i, groupName, name)
	g = Group{s, h}
	g.SetLast(last)
	g.SetRead(read)
	return g, true
}

// AppendGroup adds a group without looking for its name, and without bringing it into the
// order: SortGroups must follow before groups are looked up or changed. So very many groups
// take no more time for each than a few.
func (s Stream) AppendGroup(name []byte, last ID, read int64) Group {
	_, h := s.groups().add(s.Groups(), groupName, name)
	g := Group{s, h}
	g.SetLast(last)
	g.SetRead(read)
	return g
}

// SortGroups orders what AppendGroup has added. It reports false if two groups have the same
// name: then the Stream can only be freed.
func (s Stream) SortGroups() bool { return s.groups().sort() }

// freeAtOnce is how many cells RemoveGroup frees.
const freeAtOnce = 256

// RemoveGroup removes a group; ok is false if there is none. If the group has many cells it
// does not free them, but returns the root of a stream that consists of it.
func (s Stream) RemoveGroup(name []byte) (rest store.Handle, ok bool) {
	i, ok := s.groups().find(name)
	if !ok {
		return 0, false
	}
	h := s.groups().remove(i)
	budget := freeAtOnce
	if (Group{s, h}).release(&budget) {
		return 0, true
	}
	away := New(s.c)
	away.groups().put(0, h)
	return away.root, true
}

func (g Group) bytes() []byte { return g.s.c.Bytes(g.h) }

// Name returns the group's name.
func (g Group) Name() []byte { return g.s.groups().nameOf(g.h) }

// Last returns the last ID that the group has got.
func (g Group) Last() ID { return getID(g.bytes()[groupLast:]) }

// SetLast sets what Last returns. The place that Reached has noted holds no longer: it may be
// behind the entries that Unread must find.
func (g Group) SetLast(id ID) {
	b := g.bytes()
	putID(b[groupLast:], id)
	binary.LittleEndian.PutUint32(b[groupPlace+idSize+4:], 0)
}

// Unknown is the value of Group.Read if the number is not known.
const Unknown = -1

// Read returns how many entries of the stream the group has got, or Unknown.
func (g Group) Read() int64 { return int64(binary.LittleEndian.Uint64(g.bytes()[groupRead:])) }

// SetRead sets what Read returns.
func (g Group) SetRead(n int64) { binary.LittleEndian.PutUint64(g.bytes()[groupRead:], uint64(n)) }

// Pending returns the group's pending entries. The values are of type Pending.
func (g Group) Pending() Tree { return Tree{g.s.c, g.h, groupPending, pendingSize} }

// A Pending is a pending entry: the value of an ID in Group.Pending.
type Pending []byte

// pendingSize is the size of a Pending: the consumer's number in 4 bytes, the time and the
// count in 8 each.
const pendingSize = 20

// Nobody is the consumer of a new Pending.
const Nobody = math.MaxUint32

// Time returns when the entry was delivered last, in milliseconds since 1970.
func (p Pending) Time() int64 { return int64(binary.LittleEndian.Uint64(p[4:])) }

// SetTime sets what Time returns.
func (p Pending) SetTime(ms int64) { binary.LittleEndian.PutUint64(p[4:], uint64(ms)) }

// Count returns how often the entry was delivered.
func (p Pending) Count() int64 { return int64(binary.LittleEndian.Uint64(p[12:])) }

// SetCount sets what Count returns.
func (p Pending) SetCount(n int64) { binary.LittleEndian.PutUint64(p[12:], uint64(n)) }

func (p Pending) consumer() uint32 { return binary.LittleEndian.Uint32(p) }

func (p Pending) setConsumer(number uint32) { binary.LittleEndian.PutUint32(p, number) }

// A Consumer is one of a group.
type Consumer struct {
	g      Group
	number uint32
	h      store.Handle
}

// Offsets in a consumer's cell.
const (
	consumerSeen    = 0
	consumerPending = consumerSeen + 8
	consumerName    = consumerPending + treeSize
)

func (g Group) consumers() table { return table{g.s.c, g.h, groupConsumers, consumerName} }

// Consumers returns the number of consumers.
func (g Group) Consumers() int { return g.consumers().len() }

// ConsumerAt returns a consumer by its index in the order of the names.
func (g Group) ConsumerAt(i int) Consumer { return g.numbered(g.consumers().numberAt(i)) }

func (g Group) numbered(number uint32) Consumer {
	return Consumer{g, number, g.consumers().member(number)}
}

// Consumer returns the consumer of a name.
func (g Group) Consumer(name []byte) (x Consumer, ok bool) {
	i, ok := g.consumers().find(name)
	if ok {
		x = g.ConsumerAt(i)
	}
	return x, ok
}

// AddConsumer adds a consumer; added is false if there is one of the name. name must not be
// memory of the store.
func (g Group) AddConsumer(name []byte, seen int64) (x Consumer, added bool) {
	i, exists := g.consumers().find(name)
	if exists {
		return g.ConsumerAt(i), false
	}
	number, h := g.consumers().add(i, consumerName, name)
	x = Consumer{g, number, h}
	x.SetSeen(seen)
	return x, true
}

// AppendConsumer is to consumers what Stream.AppendGroup is to groups.
func (g Group) AppendConsumer(name []byte, seen int64) Consumer {
	number, h := g.consumers().add(g.Consumers(), consumerName, name)
	x := Consumer{g, number, h}
	x.SetSeen(seen)
	return x
}

// SortConsumers is to consumers what Stream.SortGroups is to groups.
func (g Group) SortConsumers() bool { return g.consumers().sort() }

// RemoveConsumer removes a consumer with its pending entries, and returns how many these
// were.
func (g Group) RemoveConsumer(name []byte) (pending int, ok bool) {
	i, ok := g.consumers().find(name)
	if !ok {
		return 0, false
	}
	x := g.ConsumerAt(i)
	all := g.Pending()
	var at Cursor
	for x.Pending().First(&at); at.Ok(); at.Next() {
		all.Remove(at.ID())
	}
	pending = x.Pending().Len()
	g.consumers().remove(i)
	budget := math.MaxInt
	x.release(&budget)
	return pending, true
}

// Name returns the consumer's name.
func (x Consumer) Name() []byte { return x.g.consumers().nameOf(x.h) }

// Seen returns when the consumer was seen, in milliseconds since 1970.
func (x Consumer) Seen() int64 {
	return int64(binary.LittleEndian.Uint64(x.g.s.c.Bytes(x.h)[consumerSeen:]))
}

// SetSeen sets what Seen returns.
func (x Consumer) SetSeen(ms int64) {
	binary.LittleEndian.PutUint64(x.g.s.c.Bytes(x.h)[consumerSeen:], uint64(ms))
}

// Pending returns the IDs of the consumer's pending entries.
func (x Consumer) Pending() Tree { return Tree{x.g.s.c, x.h, consumerPending, 0} }

// Find returns the pending entry of an ID, or nil.
func (g Group) Find(id ID) Pending { return Pending(g.Pending().Find(id)) }

// Owner returns the consumer of a pending entry.
func (g Group) Owner(p Pending) (x Consumer, ok bool) {
	if p.consumer() == Nobody {
		return x, false
	}
	return g.numbered(p.consumer()), true
}

// Force returns the pending entry of an ID. If there is none it adds one that no consumer
// has: Assign must follow.
func (g Group) Force(id ID) Pending {
	v, added := g.Pending().Insert(id)
	if added {
		Pending(v).setConsumer(Nobody)
	}
	return v
}

// Assign gives a pending entry to a consumer.
func (g Group) Assign(id ID, p Pending, x Consumer) {
	if p.consumer() == x.number {
		return
	}
	if old, ok := g.Owner(p); ok {
		old.Pending().Remove(id)
	}
	p.setConsumer(x.number)
	x.Pending().Insert(id)
}

// Deliver makes an entry pending for a consumer, as one that is delivered for the first
// time.
func (g Group) Deliver(id ID, x Consumer, now int64) {
	p := g.Force(id)
	g.Assign(id, p, x)
	p.SetTime(now)
	p.SetCount(1)
}

// Ack ends that an entry is pending, and reports whether it was.
func (g Group) Ack(id ID) bool {
	p := g.Find(id)
	if p == nil {
		return false
	}
	if x, ok := g.Owner(p); ok {
		x.Pending().Remove(id)
	}
	g.Pending().Remove(id)
	return true
}

// Unread makes an Iter read the entries behind Last. If Last is the entry that Reached has
// noted, they are found without a search in their block.
func (g Group) Unread(it *Iter) {
	from, ok := g.Last().Next()
	to := MaxID
	if !ok {
		from, to = to, from // nothing is behind the greatest ID
	}
	b := g.bytes()[groupPlace:]
	g.s.rangeFrom(it, from, to, false, place{
		getID(b), int(binary.LittleEndian.Uint32(b[idSize:])), binary.LittleEndian.Uint32(b[idSize+4:]),
	})
}

// Reached notes that the Iter is at the entry of Last.
func (g Group) Reached(it *Iter) {
	p, b := it.place(), g.bytes()[groupPlace:]
	putID(b, p.block)
	binary.LittleEndian.PutUint32(b[idSize:], uint32(p.offset))
	binary.LittleEndian.PutUint32(b[idSize+4:], p.moves)
}

// Advance notes that the group has got the entry of an ID, which is greater than Last.
func (g Group) Advance(id ID) {
	switch {
	case g.Read() != Unknown && !g.s.gaps(id):
		g.SetRead(g.Read() + 1)
	case g.s.Added() != 0:
		g.SetRead(g.s.Distance(id))
	}
	g.SetLast(id)
}

// gaps reports whether an entry may have been erased behind an ID.
func (s Stream) gaps(id ID) bool {
	erased := s.Erased()
	return s.Len() > 0 && !erased.IsZero() && !erased.Less(s.First()) && !erased.Less(id)
}

// Distance returns how many entries were ever added up to an ID, or Unknown. It is known at
// both ends of the stream, as long as nothing was erased in between.
func (s Stream) Distance(id ID) int64 {
	last := s.Last()
	switch {
	case s.Added() == 0:
		return 0
	case s.Len() == 0 && !last.Less(id), id == last:
		return s.Added()
	case last.Less(id):
		return Unknown
	}
	if erased := s.Erased(); erased.IsZero() || erased.Less(s.First()) {
		switch id.Compare(s.First()) {
		case -1:
			return s.Added() - int64(s.Len())
		case 0:
			return s.Added() - int64(s.Len()) + 1
		}
	}
	return Unknown
}

// Lag returns how many entries the group has not got yet; ok is false if that is not known.
func (g Group) Lag() (lag int64, ok bool) {
	added := g.s.Added()
	if added == 0 {
		return 0, true
	}
	if read := g.Read(); read != Unknown && !g.s.gaps(g.Last()) {
		return added - read, true
	}
	read := g.s.Distance(g.Last())
	return added - read, read != Unknown
}
