package store

import (
	"fmt"
	"testing"
)

// deadValues makes a store with n deleted values that Tick has still to free.
func deadValues(n int) *Store {
	s := New(Options{Databases: 2})
	s.SetNodeOps(List, &chainOps{})
	db := s.DB(0)
	for range n {
		it := db.Put([]byte("k"), NodeValue(List, newChain(db.Cells(), make([]uint64, 70)), false), NoDeadline)
		db.Delete(it)
	}
	return s
}

// Values that wait to be freed stay where they are while those before them go, however many wait.
func TestWaitingValuesDoNotMove(t *testing.T) {
	const values = 1000
	s := deadValues(values)
	defer s.Close()
	if n := s.Work().Pending; n != values {
		t.Fatalf("%d values wait, want %d", n, values)
	}
	last := &s.trash.nodes[values-1]
	for s.Work().Pending > 1 {
		s.Tick(100)
	}
	if &s.trash.nodes[0] != last {
		t.Error("the last value was moved")
	}
	for s.Tick(1000) {
	}
	if w := s.Work(); w.Pending != 0 || w.Freed != values || s.trash.nodes != nil {
		t.Errorf("%+v, with room for %d values", w, cap(s.trash.nodes))
	}
	if used := s.DB(0).t.cells.bytesUsed(); used != 0 {
		t.Errorf("%d bytes are in use", used)
	}
	for range 20 {
		s.DB(1).Put([]byte("k"), StringValue([]byte("v")), NoDeadline)
		s.DB(1).Flush()
	}
	end := &s.trash.owners[len(s.trash.owners)-1]
	for s.Work().Pending > 1 {
		s.Tick(1)
	}
	if len(s.trash.owners) == 0 || &s.trash.owners[0] != end {
		t.Errorf("the last of the flushed arenas was moved: %v are left", s.trash.owners)
	}
}

// What waits of a database that is flushed goes with its memory.
func TestFlushOfWaitingValues(t *testing.T) {
	s := deadValues(100)
	defer s.Close()
	s.DB(0).Put([]byte("k"), StringValue([]byte("v")), NoDeadline)
	s.DB(0).Flush()
	for s.Tick(1000) {
	}
	if w, m := s.Work(), s.Memory(); w.Pending != 0 || m != (Memory{}) {
		t.Errorf("left are %+v, %+v", w, m)
	}
}

// BenchmarkFreeValue frees one of so many values that wait.
func BenchmarkFreeValue(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			for done := 0; done < b.N; done += n {
				b.StopTimer()
				s := deadValues(n)
				b.StartTimer()
				for s.Work().Pending > 0 {
					s.Tick(1000)
				}
				b.StopTimer()
				s.Close()
			}
		})
	}
}
