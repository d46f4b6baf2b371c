package rdb

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/redis/listpack"
)

// A StreamID is an ID of a stream's entry.
type StreamID struct{ MS, Seq uint64 }

// StreamState is what a stream has beside entries and groups. Of a type of Redis before 7.0
// only Len and Last are known.
type StreamState struct {
	Len                 uint64
	Last, First, Erased StreamID
	Added               uint64
}

// StreamGroup is what a consumer group has beside pending entries and consumers. Of a type of
// Redis before 7.0 Read is not known.
type StreamGroup struct {
	Name []byte
	Last StreamID
	Read int64
}

// A StreamVisitor gets the parts of a stream, in the order of its methods: all pending
// entries of a group, then each of its consumers, and the IDs that are pending for it. A
// method that returns false ends the visit. Slices are valid until the method returns.
type StreamVisitor interface {
	Block(first StreamID, lp []byte) bool // lp is a valid listpack
	State(s StreamState) bool
	Group(g StreamGroup) bool
	Pending(id StreamID, time int64, count uint64) bool
	Consumer(name []byte, seen int64) bool
	Owned(id StreamID) bool
	// EndGroup is called behind the last consumer of a group.
	EndGroup() bool
}

// Stream has a Stream's parts visited. It reports false if the visitor has ended that.
func (v *Value) Stream(x StreamVisitor) bool {
	s := streamReader{reader: v.body, old: !v.HasCounts(), x: x}
	return s.stream()
}

// HasCounts reports whether all of StreamState and StreamGroup is known.
func (v *Value) HasCounts() bool { return v.typ != TypeStream }

// streamReader reads a stream.
type streamReader struct {
	reader
	old bool // TypeStream
	x   StreamVisitor
	buf []byte
}

func (r *streamReader) stream() bool {
	blocks, ok := r.length()
	for ; ok && blocks > 0; blocks-- {
		ok = r.block()
	}
	if !ok || !r.state() {
		return false
	}
	groups, ok := r.length()
	for ; ok && groups > 0; groups-- {
		ok = r.group()
	}
	return ok
}

// bytes reads a string.
func (r *streamReader) bytes() (b []byte, ok bool) {
	t, ok := r.text()
	if !ok {
		return nil, false
	}
	return t.bytes(&r.buf), true
}

// numbers reads lengths.
func (r *streamReader) numbers(to ...*uint64) (ok bool) {
	for _, n := range to {
		if *n, ok = r.length(); !ok {
			return false
		}
	}
	return true
}

func (r *streamReader) block() bool {
	t, ok := r.text()
	var digits []byte
	if !ok || len(t.bytes(&digits)) != streamIDSize {
		return false
	}
	id := streamID(t.bytes(&digits))
	lp, ok := r.bytes()
	if !ok {
		return false
	}
	_, ok = listpack.Valid(lp)
	return ok && r.x.Block(id, lp)
}

func (r *streamReader) state() bool {
	var s StreamState
	if !r.numbers(&s.Len, &s.Last.MS, &s.Last.Seq) {
		return false
	}
	if !r.old && !r.numbers(&s.First.MS, &s.First.Seq, &s.Erased.MS, &s.Erased.Seq, &s.Added) {
		return false
	}
	return r.x.State(s)
}

func (r *streamReader) group() bool {
	name, ok := r.bytes()
	g, read := StreamGroup{Name: name}, uint64(0)
	if !ok || !r.numbers(&g.Last.MS, &g.Last.Seq) || !r.old && !r.numbers(&read) {
		return false
	}
	if g.Read = int64(read); !r.x.Group(g) {
		return false
	}
	pending, ok := r.length()
	for ; ok && pending > 0; pending-- {
		ok = r.pending()
	}
	if !ok {
		return false
	}
	consumers, ok := r.length()
	for ; ok && consumers > 0; consumers-- {
		ok = r.consumer()
	}
	return ok && r.x.EndGroup()
}

func (r *streamReader) pending() bool {
	b, ok := r.take(streamIDSize + timeSize)
	if !ok {
		return false
	}
	count, ok := r.length()
	return ok && r.x.Pending(streamID(b), streamTime(b[streamIDSize:]), count)
}

func (r *streamReader) consumer() bool {
	name, ok := r.bytes()
	if !ok {
		return false
	}
	b, ok := r.take(timeSize)
	if !ok || !r.x.Consumer(name, streamTime(b)) {
		return false
	}
	owned, ok := r.length()
	for ; ok && owned > 0; owned-- {
		if b, ok = r.take(streamIDSize); ok {
			ok = r.x.Owned(streamID(b))
		}
	}
	return ok
}

const (
	streamIDSize = 16
	timeSize     = 8
)

func streamID(b []byte) StreamID {
	return StreamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func streamTime(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// StreamID appends the ID of an entry.
func (e *Encoder) StreamID(id StreamID) {
	e.B = binary.BigEndian.AppendUint64(e.B, id.MS)
	e.B = binary.BigEndian.AppendUint64(e.B, id.Seq)
}

// StreamBlock appends a listpack of entries, and the ID of the first one.
func (e *Encoder) StreamBlock(first StreamID, lp []byte) {
	e.Len(streamIDSize)
	e.StreamID(first)
	e.String(lp)
}

// StreamTime appends a time in milliseconds since 1970.
func (e *Encoder) StreamTime(ms int64) { e.B = binary.LittleEndian.AppendUint64(e.B, uint64(ms)) }

// checkStream checks the form of a stream, but not what its parts have to do with each
// other.
func (v *Value) checkStream(r *reader) bool {
	v.body = *r
	return v.Stream(anyStream{})
}

// anyStream is a StreamVisitor that does nothing.
type anyStream struct{}

func (anyStream) Block(StreamID, []byte) bool          { return true }
func (anyStream) State(StreamState) bool               { return true }
func (anyStream) Group(StreamGroup) bool               { return true }
func (anyStream) Pending(StreamID, int64, uint64) bool { return true }
func (anyStream) Consumer([]byte, int64) bool          { return true }
func (anyStream) Owned(StreamID) bool                  { return true }
func (anyStream) EndGroup() bool                       { return true }
