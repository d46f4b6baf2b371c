package rdb

import (
	"bytes"
	"errors"
	"math"

	"github.com/rondo-go/rondo/redis/intset"
	"github.com/rondo-go/rondo/redis/listpack"
)

// ErrFormat reports bytes that are not a value, or one of a type that is not known.
var ErrFormat = errors.New("rdb: bad data format")

// Kind is what a value is for Redis's clients.
type Kind uint8

const (
	String Kind = iota
	List
	Set
	ZSet
	Hash
	Stream
)

// A Value is a value that Parse has checked. It aliases the bytes that it was read from.
type Value struct {
	Kind Kind

	typ  Type
	n    int    // elements, fields or members
	str  []byte // a String
	pack []byte // the listpack that it is, if it is one
	ints []byte // the intset
	asIs bool   // pack is a value of its Kind
	body reader // of the elements that are not in pack or ints
}

// Parse checks the value at the start of b. It accepts further bytes behind it, as Redis
// does. limit is the length of the longest string that may have been compressed.
//
// What Parse does not check: that the members of a TypeSet, the fields of a TypeHash and the
// members of a TypeZSet or TypeZSet2 are different. Those of other types are. Nor does it
// check that the parts of a stream fit together.
func Parse(b []byte, limit int) (*Value, error) {
	if len(b) == 0 {
		return nil, ErrFormat
	}
	v := &Value{typ: Type(b[0])}
	r := reader{b[1:], limit}
	if !v.parse(&r) {
		return nil, ErrFormat
	}
	return v, nil
}

func (v *Value) parse(r *reader) bool {
	switch v.typ {
	case TypeString:
		v.Kind = String
		t, ok := r.text()
		if ok {
			v.str = t.bytes(new([]byte))
		}
		return ok
	case TypeList, TypeListZiplist, TypeListQuicklist, TypeListQuicklist2:
		v.Kind = List
	case TypeSet, TypeSetIntset:
		v.Kind = Set
	case TypeZSet, TypeZSet2, TypeZSetZiplist, TypeZSetListpack:
		v.Kind = ZSet
	case TypeHash, TypeHashZipmap, TypeHashZiplist, TypeHashListpack:
		v.Kind = Hash
	case TypeStream, TypeStream2:
		v.Kind = Stream
		return v.checkStream(r)
	default:
		return false
	}
	check := v.parsePack
	switch v.typ {
	case TypeList, TypeSet, TypeHash, TypeZSet, TypeZSet2:
		check = v.parseMany
	case TypeListQuicklist, TypeListQuicklist2:
		check = v.parseNodes
	case TypeSetIntset:
		check = v.parseInts
	}
	return check(r) && v.n > 0
}

// parseMany checks a number of strings, or pairs.
func (v *Value) parseMany(r *reader) bool {
	n, ok := r.length()
	if !ok || n > uint64(len(r.b)) {
		return false
	}
	v.body, v.n = *r, int(n)
	for range v.n {
		if _, ok := r.text(); !ok {
			return false
		}
		switch v.typ {
		case TypeHash:
			_, ok = r.text()
		case TypeZSet, TypeZSet2:
			_, ok = r.score(v.typ == TypeZSet)
		}
		if !ok {
			return false
		}
	}
	v.body.b = v.body.b[:len(v.body.b)-len(r.b)]
	return true
}

// parseNodes checks the nodes of a quicklist.
func (v *Value) parseNodes(r *reader) bool {
	nodes, ok := r.length()
	if !ok || nodes > uint64(len(r.b)) {
		return false
	}
	v.body = *r
	var buf, converted []byte
	for range nodes {
		n := node{old: v.typ == TypeListQuicklist}
		if !n.read(r) {
			return false
		}
		lp, plain, ok := n.listpack(&buf, &converted)
		switch {
		case !ok:
			return false
		case plain:
			v.n++
		default:
			count, ok := listpack.Valid(lp)
			if !ok {
				return false
			}
			v.n += count
		}
	}
	v.body.b = v.body.b[:len(v.body.b)-len(r.b)]
	return true
}

func (v *Value) parseInts(r *reader) bool {
	t, ok := r.text()
	if !ok {
		return false
	}
	v.ints = t.bytes(new([]byte))
	if !intset.Valid(v.ints) {
		return false
	}
	v.n = intset.Len(v.ints)
	return true
}

// parsePack checks a value that is one listpack, or was one's predecessor.
func (v *Value) parsePack(r *reader) bool {
	t, ok := r.text()
	if !ok {
		return false
	}
	v.pack, v.asIs = t.bytes(new([]byte)), true
	switch v.typ {
	case TypeListZiplist, TypeZSetZiplist, TypeHashZiplist:
		v.pack, ok = fromZiplist(nil, v.pack)
	case TypeHashZipmap:
		v.pack, ok = fromZipmap(v.pack)
		v.asIs = false // nobody has checked its strings' lengths
	}
	if !ok {
		return false
	}
	if v.n, ok = listpack.Valid(v.pack); !ok {
		return false
	}
	if v.Kind == List {
		return true
	}
	if v.n%2 != 0 {
		return false
	}
	v.n /= 2
	return v.checkPairs()
}

// checkPairs checks that the first elements of the listpack's pairs differ, and that the
// second ones of a sorted set are scores.
func (v *Value) checkPairs() bool {
	seen := make(map[string]struct{}, min(v.n, 1024))
	var last []byte
	lastScore, pairs := math.Inf(-1), 0
	for at := listpack.First(v.pack); at >= 0; {
		var digits [20]byte
		first := listpack.At(v.pack, at).Bytes(digits[:])
		second := listpack.Next(v.pack, at)
		if v.Kind == ZSet {
			score, ok := packedScore(v.pack, second)
			if !ok {
				return false
			}
			if score < lastScore || score == lastScore && len(seen) > 0 && bytes.Compare(first, last) <= 0 {
				v.asIs = false // it has another order than that of sorted sets
			}
			last, lastScore = append(last[:0], first...), score
		}
		if seen[string(first)] = struct{}{}; len(seen) <= pairs {
			return false
		}
		pairs++
		at = listpack.Next(v.pack, second)
	}
	return true
}

// packedScore returns the score at a position of a listpack.
func packedScore(lp []byte, at int) (f float64, ok bool) {
	e := listpack.At(lp, at)
	if n, ok := e.Int(); ok {
		return float64(n), true
	}
	return parseScore(e.Bytes(nil))
}
