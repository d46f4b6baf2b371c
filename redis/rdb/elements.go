package rdb

import (
	"strconv"

	"github.com/rondo-go/rondo/redis/intset"
	"github.com/rondo-go/rondo/redis/listpack"
)

// Len returns the number of elements, members or fields, each at least 1; and 0 for a
// String or a Stream.
func (v *Value) Len() int { return v.n }

// Bytes returns a String.
func (v *Value) Bytes() []byte { return v.str }

// Listpack returns the listpack that a small Hash or ZSet is, with its members in their
// order, or nil.
func (v *Value) Listpack() []byte {
	if !v.asIs || v.Kind == List {
		return nil
	}
	return v.pack
}

// Intset returns the intset that a Set is, or nil.
func (v *Value) Intset() []byte { return v.ints }

// Elements yields the elements of a List, the members of a Set, and the fields of a Hash,
// each followed by its value. A yielded slice is valid until the next.
func (v *Value) Elements(yield func([]byte) bool) {
	var digits [20]byte
	switch {
	case v.pack != nil:
		eachPacked(v.pack, yield)
	case v.ints != nil:
		for i := range intset.Len(v.ints) {
			if !yield(strconv.AppendInt(digits[:0], intset.At(v.ints, i), 10)) {
				return
			}
		}
	case v.typ == TypeListQuicklist || v.typ == TypeListQuicklist2:
		v.eachOfNodes(yield)
	default:
		var buf []byte
		for r := v.body; len(r.b) > 0; {
			t, _ := r.text()
			if !yield(t.bytes(&buf)) {
				return
			}
		}
	}
}

func eachPacked(lp []byte, yield func([]byte) bool) bool {
	var digits [20]byte
	for at := listpack.First(lp); at >= 0; at = listpack.Next(lp, at) {
		if !yield(listpack.At(lp, at).Bytes(digits[:])) {
			return false
		}
	}
	return true
}

// Parts yields the elements of a List, in order: listpacks, and elements that are not in one.
// A yielded slice is valid until the next.
func (v *Value) Parts(yield func(part []byte, packed bool) bool) {
	switch {
	case v.pack != nil:
		yield(v.pack, true)
	case v.typ == TypeList:
		v.Elements(func(element []byte) bool { return yield(element, false) })
	default:
		v.nodes(yield)
	}
}

// Scored yields the members of a ZSet with their scores, in any order. A yielded slice is
// valid until the next.
func (v *Value) Scored(yield func(member []byte, score float64) bool) {
	if v.pack != nil {
		var digits [20]byte
		for at := listpack.First(v.pack); at >= 0; {
			second := listpack.Next(v.pack, at)
			score, _ := packedScore(v.pack, second)
			if !yield(listpack.At(v.pack, at).Bytes(digits[:]), score) {
				return
			}
			at = listpack.Next(v.pack, second)
		}
		return
	}
	var buf []byte
	for r := v.body; len(r.b) > 0; {
		t, _ := r.text()
		score, _ := r.score(v.typ == TypeZSet)
		if !yield(t.bytes(&buf), score) {
			return
		}
	}
}

// A node is a part of a quicklist.
type node struct {
	old   bool // a ziplist
	plain bool // one element
	text
}

func (n *node) read(r *reader) (ok bool) {
	if !n.old {
		container, ok := r.length()
		if !ok || container != nodePlain && container != nodePacked {
			return false
		}
		n.plain = container == nodePlain
	}
	n.text, ok = r.text()
	return ok
}

// listpack returns the node's listpack, in one of two buffers or the bytes read. If plain is
// set it is no listpack, but the only element.
func (n *node) listpack(buf, converted *[]byte) (lp []byte, plain, ok bool) {
	b := n.bytes(buf)
	switch {
	case len(b) == 0:
		return nil, false, false
	case n.plain:
		return b, true, true
	case n.old:
		*converted, ok = fromZiplist(*converted, b)
		return *converted, false, ok
	}
	return b, false, true
}

func (v *Value) eachOfNodes(yield func([]byte) bool) {
	v.nodes(func(part []byte, packed bool) bool {
		if packed {
			return eachPacked(part, yield)
		}
		return yield(part)
	})
}

func (v *Value) nodes(yield func(part []byte, packed bool) bool) {
	var buf, converted []byte
	for r := v.body; len(r.b) > 0; {
		n := node{old: v.typ == TypeListQuicklist}
		n.read(&r)
		lp, plain, _ := n.listpack(&buf, &converted)
		if !yield(lp, !plain) {
			return
		}
	}
}
