package store

import (
	"fmt"
	"testing"
)

// The calls that every command makes allocate nothing of Go's heap.
func TestNoAllocations(t *testing.T) {
	s := New(Options{Databases: 1})
	defer s.Close()
	db := s.DB(0)
	keys := make([][]byte, 64)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key%d", i)
		db.Put(keys[i], StringValue(keys[i]), 1_000_000)
	}
	hashes := make([]uint64, len(keys))
	value, digits, buffer := []byte("a value of some length"), []byte("12345"), make([]byte, 0, 100)
	now := int64(0)
	n := testing.AllocsPerRun(100, func() {
		now++
		s.SetNow(now)
		db.Prefetch(keys, hashes)
		for i, key := range keys {
			it := db.FindHashed(key, hashes[i])
			buffer = it.AppendTo(buffer[:0])
			db.PutHashed(key, hashes[i], StringValue(value), NoDeadline)
			db.Put(key, StringValue(digits), now+10)
			it = db.Find(key)
			number, _ := it.Int()
			it = db.Replace(it, IntValue(number+1), KeepDeadline)
			db.Delete(it)
			db.Put(key, StringValue(value), now+5)
		}
		s.Expire(1000)
		if !s.space.heap { // there an idle chunk is forgotten, and the next one allocated
			s.Tick(1000)
		}
		db.Scan(0, 10, func(Item) {})
		db.Random()
	})
	if n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}
