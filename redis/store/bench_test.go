package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// benchKeys are the sizes of tables to measure. 10 million keys take 400 MB and half a
// minute to fill: go test -bench . -args -bench.keys=10000000.
var benchKeys = flag.Int("bench.keys", 1_000_000, "keys of the large table in benchmarks")

const benchBatch = 16

// benchTable is a Store with n keys of 10 bytes and values of 10 bytes.
type benchTable struct {
	s      *Store
	db     *DB
	n      int
	rng    *rand.Rand
	keys   [][]byte
	hashes []uint64
}

var benchTables = make(map[int]*benchTable)

func newBenchTable(n int) *benchTable {
	bt := benchTables[n]
	if bt == nil {
		bt = &benchTable{s: New(Options{Databases: 1}), n: n, rng: rand.New(rand.NewPCG(1, 1))}
		bt.db = bt.s.DB(0)
		for range benchBatch {
			bt.keys = append(bt.keys, make([]byte, 0, 32))
			bt.hashes = append(bt.hashes, 0)
		}
		for i := range n {
			bt.keys[0] = benchKey(bt.keys[0], i)
			bt.db.Put(bt.keys[0], benchValue, NoDeadline)
		}
		benchTables[n] = bt
	}
	return bt
}

var benchValue = BytesValue(String, []byte("0123456789"), false)

func benchKey(b []byte, i int) []byte {
	b = append(b[:0], "key0000000"...)
	digits := strconv.AppendInt(make([]byte, 0, 10), int64(i), 10)
	copy(b[len(b)-len(digits):], digits)
	return b
}

// next makes random keys of the table.
func (bt *benchTable) next() {
	for i := range bt.keys {
		bt.keys[i] = benchKey(bt.keys[i], bt.rng.IntN(bt.n))
	}
}

// run measures op with random keys: one by one, and in batches. The time to make the keys
// is included: see the benchmark "keys".
func (bt *benchTable) run(b *testing.B, op func(key []byte, hash uint64)) {
	b.Run(fmt.Sprintf("keys=%d/single", bt.n), func(b *testing.B) {
		for i := 0; i < b.N; i += benchBatch {
			bt.next()
			for _, key := range bt.keys {
				op(key, bt.db.Hash(key))
			}
		}
	})
	b.Run(fmt.Sprintf("keys=%d/batch", bt.n), func(b *testing.B) {
		for i := 0; i < b.N; i += benchBatch {
			bt.next()
			bt.db.Prefetch(bt.keys, bt.hashes)
			for j, key := range bt.keys {
				op(key, bt.hashes[j])
			}
		}
	})
}

func benchSizes(b *testing.B, run func(bt *benchTable)) {
	for _, n := range []int{1000, *benchKeys} {
		run(newBenchTable(n))
	}
}

func BenchmarkKeys(b *testing.B) {
	benchSizes(b, func(bt *benchTable) { bt.run(b, func([]byte, uint64) {}) })
}

func BenchmarkGet(b *testing.B) {
	benchSizes(b, func(bt *benchTable) {
		var buffer [64]byte
		bt.run(b, func(key []byte, hash uint64) {
			if it := bt.db.FindHashed(key, hash); !it.Exists() || len(it.AppendTo(buffer[:0])) != 10 {
				b.Fatal("wrong value")
			}
		})
	})
}

func BenchmarkOverwrite(b *testing.B) {
	benchSizes(b, func(bt *benchTable) {
		bt.run(b, func(key []byte, hash uint64) { bt.db.PutHashed(key, hash, benchValue, NoDeadline) })
	})
}

// BenchmarkDeletePut deletes a key and puts it again.
func BenchmarkDeletePut(b *testing.B) {
	benchSizes(b, func(bt *benchTable) {
		bt.run(b, func(key []byte, hash uint64) {
			bt.db.Delete(bt.db.FindHashed(key, hash))
			bt.db.PutHashed(key, hash, benchValue, NoDeadline)
		})
	})
}

// BenchmarkFill puts new keys into a table that grows, and reports the memory of a key and
// the longest call.
func BenchmarkFill(b *testing.B) {
	for _, size := range []struct{ key, value int }{{10, 10}, {16, 100}} {
		b.Run(fmt.Sprintf("bytes=%d+%d", size.key, size.value), func(b *testing.B) {
			s := New(Options{Databases: 1})
			defer s.Close()
			db := s.DB(0)
			key := make([]byte, 0, 32)
			value := BytesValue(String, make([]byte, size.value), false)
			var slowest time.Duration
			b.ResetTimer()
			for i := range b.N {
				key = benchKey(key, i)
				for len(key) < size.key {
					key = append(key, 'k')
				}
				if i%64 == 0 {
					start := time.Now()
					db.Put(key, value, NoDeadline)
					slowest = max(slowest, time.Since(start))
				} else {
					db.Put(key, value, NoDeadline)
				}
			}
			b.ReportMetric(float64(s.Memory().Held)/float64(b.N), "B/key")
			b.ReportMetric(float64(slowest.Microseconds()), "worst-us")
		})
	}
}

// BenchmarkExpire puts keys that expire after a second, at 400,000 a second of the Store's
// clock, and expires them.
func BenchmarkExpire(b *testing.B) {
	s := New(Options{Databases: 1})
	defer s.Close()
	db := s.DB(0)
	key := make([]byte, 0, 32)
	now, most := int64(1_700_000_000_000), 0
	for i := range b.N {
		if i%400 == 0 {
			now++
			s.SetNow(now)
			for s.Expire(5000) {
			}
			most = max(most, db.Len())
		}
		key = benchKey(key, i)
		db.Put(key, benchValue, now+1000)
	}
	b.ReportMetric(float64(most), "most-keys")
}

// BenchmarkCollection measures a forced garbage collection beside a large table.
func BenchmarkCollection(b *testing.B) {
	newBenchTable(*benchKeys)
	b.ResetTimer()
	for range b.N {
		runtime.GC()
	}
}

// BenchmarkSnapshot reads a table through a Snapshot.
func BenchmarkSnapshot(b *testing.B) {
	bt := newBenchTable(*benchKeys)
	b.ResetTimer()
	n := 0
	for n < b.N {
		snap := bt.db.Snapshot(func(it Item) { n++ })
		for n < b.N && snap.Next(100) {
		}
		snap.Close()
	}
}

// BenchmarkTickPause measures the longest Tick of a budget while a flushed table is freed
// and while one is defragmented.
func BenchmarkTickPause(b *testing.B) {
	for range b.N {
		s := New(Options{Databases: 1})
		s.SetDefrag(10)
		db := s.DB(0)
		fill(db, *benchKeys, 10)
		rng := rand.New(rand.NewPCG(1, 1))
		key := make([]byte, 0, 32)
		for i := range *benchKeys {
			if rng.IntN(2) == 0 {
				key = benchKey(key, i)
				db.Delete(db.Find(key))
			}
		}
		b.ReportMetric(pause(s), "defrag-worst-us")
		b.ReportMetric(float64(s.Memory().Held)/float64(*benchKeys), "B/key-half-deleted")
		start := time.Now()
		db.Flush()
		b.ReportMetric(float64(time.Since(start).Microseconds()), "flush-us")
		start = time.Now()
		b.ReportMetric(pause(s), "free-worst-us")
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "free-ms")
		s.Close()
	}
}

// pause calls Tick until there is no more to do, and returns the longest call.
func pause(s *Store) float64 {
	var slowest time.Duration
	for more := true; more; {
		start := time.Now()
		more = s.Tick(4000)
		slowest = max(slowest, time.Since(start))
	}
	return float64(slowest.Microseconds())
}

// BenchmarkEvict puts a key and evicts one, by LRU.
func BenchmarkEvict(b *testing.B) {
	s := New(Options{Databases: 16})
	defer s.Close()
	s.Track(TrackLRU)
	s.SetDefrag(10)
	db := s.DB(0)
	fill(db, *benchKeys, 10)
	key := make([]byte, 0, 32)
	b.ResetTimer()
	for i := range b.N {
		s.SetNow(int64(i))
		key = benchKey(key, *benchKeys+i)
		db.Put(key, benchValue, NoDeadline)
		from, it := s.Victim(AllKeysLRU, 5)
		from.Delete(it)
	}
}
