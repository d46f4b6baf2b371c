package buf_test

import (
	"runtime"
	"testing"

	"github.com/rondo-go/rondo/internal/buf"
)

func TestGetHoldsWhatIsAskedAndLittleMore(t *testing.T) {
	var p buf.Pool
	for n := 0; n <= buf.MaxPooled+1; n++ {
		b := p.Get(n)
		if len(b) != 0 || cap(b) < n || n > 64 && cap(b) >= 2*n {
			t.Fatalf("Get(%d): len %d, cap %d", n, len(b), cap(b))
		}
		p.Put(b)
	}
}

func TestLastPutIsFirstOut(t *testing.T) {
	var p buf.Pool
	a, b := p.Get(100), p.Get(100)
	p.Put(a)
	p.Put(b)
	if got := p.Get(128); &got[:1][0] != &b[:1][0] {
		t.Fatal("Get did not return the last buffer put back")
	}
}

func TestPoolIsBounded(t *testing.T) {
	var p buf.Pool
	for range 100 {
		p.Put(make([]byte, 0, buf.MaxPooled))
	}
	seen := 0
	for testing.AllocsPerRun(1, func() { p.Get(buf.MaxPooled) }) == 0 {
		if seen += 2; seen > 50 {
			t.Fatal("the pool kept over 3 MiB of one size")
		}
	}
}

func TestGetPutAllocatesNothing(t *testing.T) {
	var p buf.Pool
	for _, size := range []int{1, 64, 4096, buf.MaxPooled} {
		if n := testing.AllocsPerRun(100, func() { p.Put(p.Get(size)) }); n != 0 {
			t.Errorf("buffers of %d bytes, used again: %v allocations", size, n)
		}
	}
}

func BenchmarkGetPut(b *testing.B) {
	var p buf.Pool
	b.ReportAllocs()
	for range b.N {
		p.Put(p.Get(4096))
	}
}

// TestSleepGivesTheBuffersAway: the garbage collector may free the buffers while the
// owner sleeps, and only then.
func TestSleepGivesTheBuffersAway(t *testing.T) {
	var p buf.Pool
	p.Sleep()
	p.Wake()
	p.Put(p.Get(1000))
	runtime.GC()
	first := p.Get(1000)
	p.Put(first)
	if again := p.Get(1000); &again[:1][0] != &first[:1][0] {
		t.Error("a buffer was lost")
	}
	p.Put(first)
	p.Sleep()
	p.Wake()
	if again := p.Get(1000); &again[:1][0] != &first[:1][0] {
		t.Error("a buffer was lost by a short sleep")
	}

	freed := make(chan bool, 1)
	large := new([1 << 16]byte)
	runtime.AddCleanup(large, func(c chan bool) { c <- true }, freed)
	p.Put(large[:0])
	large = nil
	p.Sleep()
	runtime.GC()
	<-freed
	p.Wake()
	if b := p.Get(1 << 16); cap(b) != 1<<16 {
		t.Errorf("a buffer of %d bytes", cap(b))
	}
}

// TestHeld: the bytes of what is given out are counted, and Get tells when they are too many.
func TestHeld(t *testing.T) {
	var p buf.Pool
	told := 0
	p.Limit(1000, func() { told++ })
	a, b := p.Get(500), p.Get(300) // 512 each
	if p.Held() != 1024 || told != 1 {
		t.Errorf("%d bytes are held, told %d times; want 1024 and once", p.Held(), told)
	}
	p.Limit(2000, func() { t.Error("told of less than the limit") })
	p.Get(1)
	p.Put(a)
	p.Put(append(b, "some bytes"...))
	if p.Held() != 64 {
		t.Errorf("%d bytes are held, want 64", p.Held())
	}
}

// TestOut: what is given out and not put back is counted, of all sizes.
func TestOut(t *testing.T) {
	var p buf.Pool
	var all [][]byte
	for _, n := range []int{0, 1, 64, 5000, buf.MaxPooled + 1} {
		all = append(all, p.Get(n))
		if p.Out() != len(all) {
			t.Fatalf("%d buffers are out, want %d", p.Out(), len(all))
		}
	}
	for i, b := range all {
		p.Sleep()
		p.Put(b)
		p.Put(nil)
		p.Wake()
		if want := len(all) - i - 1; p.Out() != want {
			t.Fatalf("%d buffers are out, want %d", p.Out(), want)
		}
	}
}
