package store

import (
	"bytes"
	"strconv"
	"testing"
)

// FuzzEntry writes an entry with every optional field, and reads it back.
func FuzzEntry(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), uint64(1), int64(5))
	f.Add([]byte(""), []byte("-12"), uint64(0), int64(0))
	f.Add(bytes.Repeat([]byte("k"), 127), bytes.Repeat([]byte("v"), 128), uint64(3), int64(1)<<62)
	f.Add(bytes.Repeat([]byte("k"), 40000), bytes.Repeat([]byte("v"), 40000), uint64(9), int64(1))
	s := New(Options{Databases: 2, Poison: true, Seed: 1})
	f.Fuzz(func(t *testing.T, key, value []byte, flags uint64, deadline int64) {
		defer s.Flush()
		db := s.DB(0)
		s.Track(Tracking(flags % 3))
		deadline &= Never
		v := StringValue(value)
		if flags&4 != 0 {
			v = BytesValue(Hash, value, flags&8 != 0)
		}
		it := db.Put(key, v, deadline)
		check := func(it Item, want []byte) {
			t.Helper()
			if !it.Exists() || !bytes.Equal(it.Key(), key) || !bytes.Equal(it.AppendTo(nil), want) {
				t.Fatalf("%q: got %q, want %q", key, it.AppendTo(nil), want)
			}
			if it.Len() != len(want) || it.Deadline() != deadline || it.Type() != v.Type {
				t.Fatalf("%q: length %d, deadline %d, type %v", key, it.Len(), it.Deadline(), it.Type())
			}
		}
		check(it, value)
		check(db.Peek(key), value)
		if it.Alt() != v.Alt {
			t.Fatal("Alt was lost")
		}
		check(db.Copy(db.Peek(key), s.DB(1), key), value)
		deadline = 0
		check(db.Persist(db.Peek(key)), value)
	})
}

// An integer is stored as one exactly if its digits come back.
func TestIntegers(t *testing.T) {
	s := New(Options{Databases: 1})
	defer s.Close()
	db := s.DB(0)
	for _, c := range []struct {
		text string
		form Form
	}{
		{"0", Integer}, {"-1", Integer}, {"127", Integer}, {"9223372036854775807", Integer},
		{"-9223372036854775808", Integer}, {"9223372036854775808", Embedded}, {"00", Embedded}, {"-0", Embedded},
		{"+1", Embedded}, {" 1", Embedded}, {"", Embedded}, {"1a", Embedded}, {"-", Embedded},
	} {
		it := db.Put([]byte("k"), StringValue([]byte(c.text)), NoDeadline)
		if it.Form() != c.form || string(it.AppendTo(nil)) != c.text || it.Len() != len(c.text) {
			t.Errorf("%q is stored as %d: %q, length %d", c.text, it.Form(), it.AppendTo(nil), it.Len())
		}
		n, ok := it.Int()
		if want, err := strconv.ParseInt(c.text, 10, 64); c.form == Integer && (!ok || err != nil || n != want) {
			t.Errorf("%q is the integer %d", c.text, n)
		}
	}
	if it := db.Put([]byte("k"), BytesValue(String, []byte("12"), true), NoDeadline); it.Form() != Embedded || !it.Alt() {
		t.Error("BytesValue was converted")
	} else if n, ok := it.Int(); n != 12 || !ok {
		t.Error("the digits are no integer")
	}
}

// The entries of short keys and values are as small as measured.
func TestEntriesAreSmall(t *testing.T) {
	s := New(Options{Databases: 1})
	defer s.Close()
	db := s.DB(0)
	for _, c := range []struct {
		key, value, size int
		deadline         int64
		tracking         Tracking
	}{
		{10, 10, 24, 0, TrackNothing}, {10, 10, 32, 0, TrackLRU}, {10, 10, 32, 1, TrackNothing},
		{16, 100, 120, 0, TrackNothing},
	} {
		s.Track(c.tracking)
		it := db.Put(bytes.Repeat([]byte("k"), c.key), StringValue(bytes.Repeat([]byte("v"), c.value)), c.deadline)
		if got := db.t.cells.size(handleAt(it.b, int(it.slot))); got != c.size {
			t.Errorf("%d+%d bytes take %d, want %d", c.key, c.value, got, c.size)
		}
		db.Delete(it)
	}
}

// A large value is written in place, kept without a copy, and counted.
func TestLargeValues(t *testing.T) {
	s := New(Options{Databases: 2, Poison: true})
	defer s.Close()
	db, key := s.DB(0), []byte("k")
	text := bytes.Repeat([]byte("0123456789"), 10000)
	it := db.Put(key, KeptString(text), NoDeadline)
	if it.Form() != Large || &it.Bytes()[0] != &text[0] {
		t.Error("the kept string was copied")
	}
	it = db.Put(key, BytesValue(String, text[:60000], false), NoDeadline)
	first := &it.Bytes()[0]
	if first != &text[0] || it.Len() != 60000 {
		t.Error("the value was not overwritten in place")
	}
	it = db.Move(it, s.DB(1), key)
	if &it.Bytes()[0] != first || db.Used() > 2000 || s.DB(1).Used() < 100_000 {
		t.Errorf("Move copied, or the accounts are wrong: %d and %d bytes", db.Used(), s.DB(1).Used())
	}
	s.DB(1).Delete(it)
	if s.DB(1).t.cells.large != 0 {
		t.Error("large bytes are left")
	}
	it = db.Put(key, StringValue(nil), NoDeadline)
	it, b := db.Resize(it, 1<<20)
	b[1<<20-1] = 1
	if it.Form() != Large || it.Size() < 1<<20 || it.Size() > 1<<20+200 {
		t.Errorf("a string of 1 MiB has form %d and takes %d bytes", it.Form(), it.Size())
	}
}

// A kept string that outgrows its slice has zeros behind it, whatever the spare capacity of
// the slice holds.
func TestKeptStringGrows(t *testing.T) {
	for _, heap := range []bool{false, true} {
		s := New(Options{GoHeap: heap})
		const n = 50_000
		text := bytes.Repeat([]byte("x"), n+100)
		it := s.DB(0).Put([]byte("k"), KeptString(text[:n]), NoDeadline)
		for _, size := range []int{n + 10, n + 5000} {
			var b []byte
			if it, b = s.DB(0).Resize(it, size); !bytes.Equal(b[n:], make([]byte, size-n)) {
				t.Errorf("heap %t: %d bytes end with %q", heap, size, b[size-8:])
			}
		}
		s.Close()
	}
}
