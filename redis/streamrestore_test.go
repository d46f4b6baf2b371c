package redis

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/rdb"
)

// sealedStream is a payload for RESTORE, of a stream that groups adds groups to.
func sealedStream(groups func(e *rdb.Encoder)) string {
	var e rdb.Encoder
	e.Type(rdb.TypeStream2)
	for range 9 { // no blocks, and numbers and IDs that are 0
		e.Len(0)
	}
	groups(&e)
	e.Seal()
	return string(e.B)
}

// RESTORE takes groups and consumers in any order, but none twice.
func TestRestoreOfGroupsInAnyOrder(t *testing.T) {
	b := newBench(t, &Server{})
	payload := func(names ...string) string {
		return sealedStream(func(e *rdb.Encoder) {
			e.Len(uint64(len(names)))
			for _, name := range names {
				e.String([]byte(name))
				for range 4 { // the last ID, entries read, pending entries
					e.Len(0)
				}
				e.Len(uint64(len(names)))
				for _, name := range names {
					e.String([]byte(name))
					e.StreamTime(1)
					e.Len(0)
				}
			}
		})
	}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("name", i*37%100))
	}
	if got := b.do("a", "RESTORE", "s", "0", payload(names...)); got != "+OK" {
		t.Fatal(got)
	}
	for _, name := range names {
		for _, consumer := range names {
			if got := b.do("a", "XGROUP", "CREATECONSUMER", "s", name, consumer); got != ":0" {
				t.Fatalf("consumer %s of group %s: %s", consumer, name, got)
			}
		}
	}
	if got := b.do("a", "XGROUP", "CREATECONSUMER", "s", "name50", "name0x"); got != ":1" {
		t.Error(got)
	}
	slices.Sort(names)
	groups := b.reply("XINFO", "GROUPS", "s").Elems
	for i, g := range groups {
		if got := string(g.Elems[1].Str); got != names[i] {
			t.Errorf("group %d is %s, want %s", i, got, names[i])
		}
	}
	const bad = "-ERR Bad data format"
	for _, names := range [][]string{{"a", "b", "a"}, {"a", "a"}, {"", ""}} {
		if got := b.do("a", "RESTORE", "t", "0", payload(names...)); got != bad {
			t.Errorf("%q: %s", names, got)
		}
	}
	b.do("a", "DEL", "s")
	b.drain()
	if used := b.s.space.store.Memory(); used.Used > 4000 {
		t.Errorf("%+v", used)
	}
}

// A payload with entries that are not in order is refused: the reply to XRANGE would announce
// more entries than it has. Deleted entries may be anywhere, as XSETID permits.
func TestRestoreOfEntriesOutOfOrder(t *testing.T) {
	b := newBench(t, &Server{})
	for _, x := range []struct {
		ids  []int64 // of entries in one block, to be added to 10-1; a deleted one is negative
		want string
	}{
		{[]int64{0, 1, 2}, "+OK"}, {[]int64{0, 5, 3}, "-ERR Bad data format"}, {[]int64{0, 0}, "-ERR Bad data format"},
		{[]int64{0, -5, 3}, "+OK"}, {[]int64{4, -4}, "-ERR Bad data format"}, {[]int64{-5, -3, 2}, "+OK"}, {[]int64{-5}, "+OK"},
	} {
		lp := listpack.Init(nil)
		count := 0
		for _, id := range x.ids {
			if id >= 0 {
				count++
			}
		}
		number := func(all ...int64) {
			for _, n := range all {
				lp = listpack.Append(lp, listpack.Int(n))
			}
		}
		number(int64(count), int64(len(x.ids)-count), 1)
		lp = listpack.Append(lp, listpack.String([]byte("f")))
		number(0)
		for _, id := range x.ids {
			flags := int64(2)
			if id < 0 {
				flags, id = 3, -id
			}
			number(flags, id, 0, 7, 4) // 7 is the value
		}
		var e rdb.Encoder
		e.Type(rdb.TypeStream2)
		e.Len(1)
		e.StreamBlock(rdb.StreamID{MS: 10, Seq: 1}, lp)
		for _, n := range []uint64{uint64(count), 20, 0, 0, 0, 0, 0, 1, 0} {
			e.Len(n)
		}
		e.Seal()
		if got := b.do("a", "RESTORE", "s", "0", string(e.B), "REPLACE"); got != x.want {
			t.Errorf("%v: %s, want %s", x.ids, got, x.want)
		}
	}
}

// A payload may have flags in more bytes than necessary. It is refused: what is behind them would
// move when the entry is deleted.
func TestRestoreOfWideFlags(t *testing.T) {
	b := newBench(t, &Server{})
	lp := listpack.Init(nil)
	for _, n := range []int64{5, 0, 1} {
		lp = listpack.Append(lp, listpack.Int(n))
	}
	lp = listpack.Append(lp, listpack.String([]byte("f")))
	lp = listpack.Append(lp, listpack.Int(0))
	for i := range int64(5) {
		lp = listpack.Append(lp, listpack.Int(math.MinInt64))
		wide := lp[len(lp)-1-10 : len(lp)-1] // 64 bits, and the byte for the way back
		binary.LittleEndian.PutUint64(wide[1:], 2)
		for _, n := range []int64{i, 0, 7, 4} {
			lp = listpack.Append(lp, listpack.Int(n))
		}
	}
	var e rdb.Encoder
	e.Type(rdb.TypeStream2)
	e.Len(1)
	e.StreamBlock(rdb.StreamID{MS: 1, Seq: 1}, lp)
	for _, n := range []uint64{5, 9, 0, 1, 1, 0, 0, 5, 0} {
		e.Len(n)
	}
	e.Seal()
	if got := b.do("a", "RESTORE", "s", "0", string(e.B)); got != "-ERR Bad data format" {
		t.Error(got)
	}
}
