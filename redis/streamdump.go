package redis

import (
	"github.com/rondo-go/rondo/redis/rdb"
	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
)

func encodeStream(e *rdb.Encoder, s stream.Stream) {
	e.Type(rdb.TypeStream2)
	e.Len(uint64(s.Blocks()))
	s.EachBlock(func(id stream.ID, lp []byte) bool {
		e.StreamBlock(rdb.StreamID(id), lp)
		return true
	})
	e.Len(uint64(s.Len()))
	for _, id := range [...]stream.ID{s.Last(), s.First(), s.Erased()} {
		e.Len(id.MS)
		e.Len(id.Seq)
	}
	e.Len(uint64(s.Added()))
	e.Len(uint64(s.Groups()))
	for i := range s.Groups() {
		encodeGroup(e, s.GroupAt(i))
	}
}

func encodeGroup(e *rdb.Encoder, g stream.Group) {
	e.String(g.Name())
	e.Len(g.Last().MS)
	e.Len(g.Last().Seq)
	e.Len(uint64(g.Read()))
	e.Len(uint64(g.Pending().Len()))
	var at stream.Cursor
	for g.Pending().First(&at); at.Ok(); at.Next() {
		p := stream.Pending(at.Value())
		e.StreamID(rdb.StreamID(at.ID()))
		e.StreamTime(p.Time())
		e.Len(uint64(p.Count()))
	}
	e.Len(uint64(g.Consumers()))
	for i := range g.Consumers() {
		x := g.ConsumerAt(i)
		e.String(x.Name())
		e.StreamTime(x.Seen())
		e.Len(uint64(x.Pending().Len()))
		for x.Pending().First(&at); at.Ok(); at.Next() {
			e.StreamID(rdb.StreamID(at.ID()))
		}
	}
}

// makeStream makes a stream of a payload. ok is false if its parts do not fit together.
func (db *database) makeStream(v *rdb.Value) (m *madeValue, ok bool) {
	x := streamMaker{s: stream.New(db.keys.Cells()), counts: v.HasCounts()}
	m = nodeMade(store.Stream, x.s.Root())
	if !v.Stream(&x) || !x.s.SortGroups() {
		m.drop(db)
		return nil, false
	}
	return m, true
}

// streamMaker is an rdb.StreamVisitor that makes a stream.
type streamMaker struct {
	s        stream.Stream
	counts   bool
	entries  int
	blocks   int
	block    stream.ID // the last one's
	last     stream.ID // the last entry's
	group    stream.Group
	consumer stream.Consumer
	owned    int // pending entries of the group that have a consumer
}

func (x *streamMaker) Block(first rdb.StreamID, lp []byte) bool {
	id := stream.ID(first)
	n, last, ok := stream.Valid(id, lp)
	if !ok || x.blocks > 0 && !x.block.Less(id) || x.entries > 0 && !x.last.Less(id) {
		return false
	}
	x.s.AddBlock(id, lp)
	x.block = id
	x.blocks++
	if n > 0 {
		x.last = last
	}
	x.entries += n
	return true
}

func (x *streamMaker) State(s rdb.StreamState) bool {
	if s.Len != uint64(x.entries) || stream.ID(s.Last).Less(x.last) {
		return false
	}
	x.s.SetLen(x.entries)
	x.s.Rewind(stream.ID(s.Last))
	if x.counts {
		x.s.SetFirst(stream.ID(s.First))
		x.s.SetErased(stream.ID(s.Erased))
		x.s.SetAdded(int64(s.Added))
	} else {
		x.s.RenewFirst()
		x.s.SetAdded(int64(x.entries))
	}
	return true
}

func (x *streamMaker) Group(g rdb.StreamGroup) bool {
	last, read := stream.ID(g.Last), g.Read
	if !x.counts {
		read = x.s.Distance(last)
	}
	x.group = x.s.AppendGroup(g.Name, last, read)
	x.owned = 0
	return true
}

func (x *streamMaker) Pending(id rdb.StreamID, time int64, count uint64) bool {
	if x.group.Find(stream.ID(id)) != nil {
		return false
	}
	p := x.group.Force(stream.ID(id))
	p.SetTime(time)
	p.SetCount(int64(count))
	return true
}

func (x *streamMaker) Consumer(name []byte, seen int64) bool {
	x.consumer = x.group.AppendConsumer(name, seen)
	return true
}

func (x *streamMaker) Owned(id rdb.StreamID) bool {
	p := x.group.Find(stream.ID(id))
	if p == nil {
		return false
	}
	if _, ok := x.group.Owner(p); ok {
		return false
	}
	x.group.Assign(stream.ID(id), p, x.consumer)
	x.owned++
	return true
}

func (x *streamMaker) EndGroup() bool {
	return x.owned == x.group.Pending().Len() && x.group.SortConsumers()
}
