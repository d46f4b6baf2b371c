package inbox_test

import (
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/rondo-go/rondo/internal/inbox"
)

func TestOrderAndWakes(t *testing.T) {
	var q inbox.Queue[int]
	if wake, ok := q.Put(1); wake || !ok {
		t.Fatalf("Put to a loop that is awake: wake %v, ok %v", wake, ok)
	}
	if q.Sleep() {
		t.Fatal("Sleep with a value waiting")
	}
	if got := q.Take(); len(got) != 1 || got[0] != 1 {
		t.Fatalf("Take: %v", got)
	}
	if !q.Sleep() {
		t.Fatal("no Sleep with nothing waiting")
	}
	first, _ := q.Put(2)
	second, _ := q.Put(3)
	if !first || second {
		t.Fatalf("wakes of a sleeping loop: %v, %v; want the first only", first, second)
	}
	q.Awake()
	q.Close()
	if _, ok := q.Put(4); ok {
		t.Fatal("Put after Close")
	}
	if got := q.Take(); len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Fatalf("Take after Close: %v", got)
	}
}

// TestNoLostWake runs posters against a loop that sleeps on a channel. A lost wake
// would cause a deadlock.
func TestNoLostWake(t *testing.T) {
	const posters, each = 4, 5000
	var q inbox.Queue[int]
	wakes := make(chan struct{}, 1)
	var wg sync.WaitGroup
	for p := range posters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				if wake, _ := q.Put(p*each + i); wake {
					select {
					case wakes <- struct{}{}:
					default:
					}
				}
			}
		}()
	}
	last := [posters]int{}
	for seen := 0; seen < posters*each; {
		for _, v := range q.Take() {
			p, i := v/each, v%each+1
			if i != last[p]+1 {
				t.Fatalf("poster %d: %d came after %d", p, i, last[p])
			}
			last[p] = i
			seen++
		}
		if seen < posters*each && q.Sleep() {
			<-wakes
		}
		q.Awake()
	}
	wg.Wait()
}

// TestHandOverAllocatesNothing: the two slices swap and are reused.
func TestHandOverAllocatesNothing(t *testing.T) {
	var q inbox.Queue[func()]
	f := func() {}
	n := testing.AllocsPerRun(100, func() {
		for range 1000 {
			q.Put(f)
		}
		q.Take()
		q.Sleep()
		q.Put(f)
		q.Awake()
		q.Take()
	})
	if n != 0 {
		t.Errorf("1000 values handed over make %v allocations", n)
	}
}

func BenchmarkPutBusy(b *testing.B) {
	var q inbox.Queue[func()]
	f := func() {}
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		q.Put(f)
		if i%256 == 255 {
			q.Take()
		}
	}
}

// TestOldest: the time of the first value of each Take, while somebody measures.
func TestOldest(t *testing.T) {
	var q inbox.Queue[int]
	now := int64(0)
	put := func(n int) {
		for range n {
			now++
			q.Put(0)
		}
	}
	take := func(want int64) {
		t.Helper()
		if q.Take(); q.Oldest() != want {
			t.Errorf("the oldest was put at %d, want %d", q.Oldest(), want)
		}
	}
	put(2)
	take(0)
	q.Measure(func() int64 { return now })
	put(3)
	take(3)
	take(0)
	put(1)
	take(6)
	put(1)
	q.Measure(nil)
	put(1)
	take(7)
	put(1)
	take(0)
}

// TestForget: a loop that has used what it took holds nothing of it.
func TestForget(t *testing.T) {
	var q inbox.Queue[*[1 << 10]byte]
	var weaks [3]weak.Pointer[[1 << 10]byte]
	for i := range weaks {
		p := new([1 << 10]byte)
		weaks[i] = weak.Make(p)
		q.Put(p)
	}
	if n := len(q.Take()); n != len(weaks) {
		t.Fatalf("%d values of %d were taken", n, len(weaks))
	}
	q.Forget()
	if !q.Sleep() {
		t.Fatal("the queue is not empty")
	}
	runtime.GC()
	for i, w := range weaks {
		if w.Value() != nil {
			t.Errorf("value %d is held", i)
		}
	}
	runtime.KeepAlive(&q)
}
