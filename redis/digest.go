package redis

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
	"github.com/rondo-go/rondo/redis/zset"
)

// digest is what DEBUG DIGEST and DEBUG DIGEST-VALUE compute of values, the same as Redis: a
// SHA-1 that does not depend on how values are stored, or on an order that they do not have.
type digest [sha1.Size]byte

// xor adds bytes whose order does not matter.
func (d *digest) xor(b []byte) {
	for i, x := range sha1.Sum(b) {
		d[i] ^= x
	}
}

// mix adds bytes whose order matters.
func (d *digest) mix(b []byte) {
	d.xor(b)
	*d = sha1.Sum(d[:])
}

func (d *digest) mixNumber(n int) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	d.mix(b[:])
}

// xorPair adds a field with its value, or a member with its score.
func (d *digest) xorPair(first, second []byte) {
	var pair digest
	pair.mix(first)
	pair.mix(second)
	d.xor(pair[:])
}

// mixValue adds the value of an Item, and whether it expires.
func (d *digest) mixValue(db *database, it store.Item) {
	typ := int(it.Type())
	if it.Type() == store.Stream {
		typ++ // for Redis, values of modules come before
	}
	d.mixNumber(typ)
	switch it.Type() {
	case store.String:
		if it.Form() == store.Integer {
			d.mix(it.AppendTo(nil))
		} else {
			d.mix(it.Bytes())
		}
	case store.List:
		list := db.list(it)
		for p := list.Seek(0); p.Exists(); p = list.Next(p) {
			d.mix(p.Value().Bytes(nil))
		}
	case store.Set:
		s := db.viewSet(it)
		for member := range s.each {
			d.xor(member)
		}
	case store.Hash:
		h := db.viewHash(it)
		for field, value := range h.each {
			d.xorPair(field, value)
		}
	case store.Stream:
		d.mixStream(db.stream(it))
	default:
		s := zset.Open(db.keys, it)
		var buf [32]byte
		for member, score := range s.From(0) {
			d.xorPair(member, zset.AppendScore(buf[:0], score))
		}
	}
	if it.Deadline() != 0 {
		d.xor([]byte("!!expire!!"))
	}
}

// mixStream adds the entries of a stream, and not its groups.
func (d *digest) mixStream(s stream.Stream) {
	var it stream.Iter
	for s.Range(&it, stream.ID{}, stream.MaxID, false); it.Next(); {
		id := strconv.AppendUint(nil, it.ID().MS, 10)
		d.mix(strconv.AppendUint(append(id, '.'), it.ID().Seq, 10))
		for range it.Fields() {
			field, value := it.Pair()
			d.mix(field.Bytes(nil))
			d.mix(value.Bytes(nil))
		}
	}
}

// debugDigest replies with the digest of all keys.
func (c *client) debugDigest() {
	var all digest
	for i := range c.server.space.dbs {
		db := &c.server.space.dbs[i]
		if db.len() == 0 {
			continue
		}
		all.mixNumber(i)
		db.keys.Each(func(it store.Item) {
			var one digest
			one.mix(it.Key())
			one.mixValue(db, it)
			all.xor(one[:])
		})
	}
	c.Simple(hex.EncodeToString(all[:]))
}

// debugDigestValues replies with the digests of the values of keys, of nothing 0.
func (c *client) debugDigestValues(keys [][]byte) {
	c.Array(len(keys))
	for _, key := range keys {
		var d digest
		if it := c.db.peek(key); it.Exists() {
			d.mixValue(c.db, it)
		}
		c.Simple(hex.EncodeToString(d[:]))
	}
}
