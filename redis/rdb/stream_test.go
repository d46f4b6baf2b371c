package rdb

import (
	"bytes"
	"testing"
)

// encodeAgain is a StreamVisitor that encodes what it gets as a TypeStream2. The numbers of
// parts are not known before, so it keeps the parts of each kind.
type encodeAgain struct {
	blocks, groups            parts
	state                     Encoder
	group                     Encoder
	pending, consumers, owned parts
	consumer                  Encoder
	endConsumer               bool
}

type parts struct {
	n int
	Encoder
}

func (p *parts) appendTo(e *Encoder) {
	e.Len(uint64(p.n))
	e.B = append(e.B, p.B...)
	*p = parts{}
}

func (x *encodeAgain) Block(first StreamID, lp []byte) bool {
	x.blocks.n++
	x.blocks.StreamBlock(first, lp)
	return true
}

func (x *encodeAgain) State(s StreamState) bool {
	for _, n := range []uint64{s.Len, s.Last.MS, s.Last.Seq, s.First.MS, s.First.Seq, s.Erased.MS, s.Erased.Seq, s.Added} {
		x.state.Len(n)
	}
	return true
}

func (x *encodeAgain) Group(g StreamGroup) bool {
	x.groups.n++
	x.group.String(g.Name)
	for _, n := range []uint64{g.Last.MS, g.Last.Seq, uint64(g.Read)} {
		x.group.Len(n)
	}
	return true
}

func (x *encodeAgain) Pending(id StreamID, time int64, count uint64) bool {
	x.pending.n++
	x.pending.StreamID(id)
	x.pending.StreamTime(time)
	x.pending.Len(count)
	return true
}

func (x *encodeAgain) Consumer(name []byte, seen int64) bool {
	x.closeConsumer()
	x.consumers.n++
	x.consumer.String(name)
	x.consumer.StreamTime(seen)
	x.endConsumer = true
	return true
}

func (x *encodeAgain) closeConsumer() {
	if x.endConsumer {
		x.owned.appendTo(&x.consumer)
		x.consumers.B = append(x.consumers.B, x.consumer.B...)
		x.consumer.B, x.endConsumer = nil, false
	}
}

func (x *encodeAgain) Owned(id StreamID) bool {
	x.owned.n++
	x.owned.StreamID(id)
	return true
}

func (x *encodeAgain) EndGroup() bool {
	x.closeConsumer()
	x.pending.appendTo(&x.group)
	x.consumers.appendTo(&x.group)
	x.groups.B = append(x.groups.B, x.group.B...)
	x.group.B = nil
	return true
}

func (x *encodeAgain) bytes() []byte {
	var e Encoder
	e.Type(TypeStream2)
	x.blocks.appendTo(&e)
	e.B = append(e.B, x.state.B...)
	x.groups.appendTo(&e)
	return e.B
}

// someStream returns a stream with two blocks, two groups and some consumers.
func someStream(typ Type) []byte {
	var e Encoder
	numbers := func(all ...uint64) {
		for _, n := range all {
			e.Len(n)
		}
	}
	e.Type(typ)
	e.Len(2)
	e.StreamBlock(StreamID{1, 1}, packed("1", "0", "1", "f", "0", "2", "0", "0", "v", "4"))
	e.StreamBlock(StreamID{1 << 60, 2}, packed("1", "0", "1", "f", "0", "2", "0", "0", "w", "4"))
	numbers(2, 1<<60, 2)
	if typ == TypeStream2 {
		numbers(1, 1, 0, 0, 2)
	}
	e.Len(2)
	for _, name := range []string{"a group", "12"} {
		e.String([]byte(name))
		numbers(1, 1)
		if typ == TypeStream2 {
			e.Len(1<<64 - 1)
		}
		e.Len(1)
		e.StreamID(StreamID{1, 1})
		e.StreamTime(-1)
		numbers(5, 2)
		for i, consumer := range []string{"alice", "bob"} {
			e.String([]byte(consumer))
			e.StreamTime(1)
			e.Len(uint64(1 - i))
			if i == 0 {
				e.StreamID(StreamID{1, 1})
			}
		}
	}
	return e.B
}

// checkAgain encodes a stream, reads it and encodes it again.
func checkAgain(t *testing.T, b []byte, v *Value) {
	t.Helper()
	var x, y encodeAgain
	if !v.Stream(&x) {
		t.Fatalf("%x is a stream, and is not", b)
	}
	again := x.bytes()
	if !mustParse(t, again).Stream(&y) || !bytes.Equal(y.bytes(), again) {
		t.Fatalf("%x became %x", b, again)
	}
}

func TestStream(t *testing.T) {
	b := someStream(TypeStream2)
	v := mustParse(t, b)
	var x encodeAgain
	if v.Kind != Stream || !v.HasCounts() || !v.Stream(&x) || !bytes.Equal(x.bytes(), b) {
		t.Errorf("%x became %x", b, x.bytes())
	}
	old := mustParse(t, someStream(TypeStream))
	if old.HasCounts() {
		t.Error("the old type has counts")
	}
	checkAgain(t, nil, old)
	for n := range b {
		if _, err := Parse(b[:n], 1<<16); err == nil {
			t.Errorf("%d of %d bytes are taken for a stream", n, len(b))
		}
	}
	bad := bytes.Clone(b)
	bad[2] = 15
	if _, err := Parse(bad, 1<<16); err == nil {
		t.Error("an ID of 15 bytes is accepted")
	}
}
