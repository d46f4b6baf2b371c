package store

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestSizeClasses(t *testing.T) {
	last := 0
	for class, size := range classSizes {
		step := int(size) - last
		if last = int(size); step > 8 && step*8 > int(size) || size%8 != 0 {
			t.Errorf("class %d has %d bytes, %d more than the one before", class, size, step)
		}
	}
	if last != maxSmall {
		t.Errorf("the last class has %d bytes, want %d", last, maxSmall)
	}
	for n := 1; n <= maxSmall; n++ {
		class := classOf(n)
		if int(classSizes[class]) < n || class > 0 && int(classSizes[class-1]) >= n {
			t.Fatalf("%d bytes are of class %d of %d bytes", n, class, classSizes[class])
		}
	}
}

// cells are what an arena should hold.
type cells map[Handle][]byte

func (c cells) add(t *testing.T, a *arena, rng *rand.Rand, n int) {
	h := a.alloc(n)
	if h == 0 || h > handleMask || c[h] != nil {
		t.Fatalf("alloc returned %x, which is in use", h)
	}
	data := bytes.Repeat([]byte{byte(rng.Uint32())}, n)
	copy(a.bytes(h), data)
	c[h] = data
}

func (c cells) check(t *testing.T, a *arena) {
	t.Helper()
	used := int64(0)
	for h, data := range c {
		if !bytes.Equal(a.bytes(h)[:len(data)], data) {
			t.Fatalf("cell %x of %d bytes was overwritten", h, len(data))
		}
		if len(data) <= maxSmall {
			used += int64(a.size(h))
		}
	}
	if a.used != used {
		t.Fatalf("%d bytes are used, the account says %d", used, a.used)
	}
}

func TestCellsDoNotOverlap(t *testing.T) {
	for _, heap := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		s := newSpace(heap, true)
		var a arena
		a.init(s)
		c := make(cells)
		for step := range 60000 {
			switch grow := step/10000%2 == 0; {
			case rng.IntN(3) > 0 == grow || len(c) == 0:
				n := 1 + rng.IntN(200)
				if rng.IntN(100) == 0 {
					n = 1 + rng.IntN(100_000)
				}
				c.add(t, &a, rng, n)
			default:
				for h := range c {
					a.free(h)
					delete(c, h)
					break
				}
			}
			if step%20000 == 0 {
				c.check(t, &a)
				s.tidy(1 << 30)
			}
		}
		c.check(t, &a)
		for h := range c {
			a.free(h)
		}
		s.tidy(1 << 30)
		if a.used != 0 || a.held != 0 || a.large != 0 || s.waiting() != 0 {
			t.Errorf("at the end %d used, %d held, %d large, %d waiting", a.used, a.held, a.large, s.waiting())
		}
		s.unmap()
	}
}

// Memory of one size serves another one after it was freed.
func TestChunksServeEveryClass(t *testing.T) {
	s := newSpace(false, false)
	defer s.unmap()
	var a arena
	a.init(s)
	for _, size := range []int{24, 1000, 24, 32768} {
		var all []Handle
		for range (8 << 20) / size {
			all = append(all, a.alloc(size))
		}
		for _, h := range all {
			a.free(h)
		}
		s.tidy(1 << 30)
	}
	if n := len(s.mem); n > 2+slabChunks {
		t.Errorf("%d chunks were made for 8 MiB at a time", n)
	}
}

// A very large cell is freed piece by piece.
func TestLargeCellsAreFreedInSlices(t *testing.T) {
	s := newSpace(false, false)
	if s.heap {
		t.Skip("the memory is Go's")
	}
	defer s.unmap()
	var a arena
	a.init(s)
	h := a.alloc(30 << 20)
	a.free(h)
	steps := 0
	for ; s.waiting() > 0; steps++ {
		if rest := s.tidy(1); rest < -slice/chunkSize*workDrop-1 {
			t.Fatalf("a step took %d units", 1-rest)
		}
	}
	if steps < 7 {
		t.Errorf("30 MiB were freed in %d steps", steps)
	}
}

// A large cell grows without losing bytes, and what is new is zero.
func TestLargeCellsGrow(t *testing.T) {
	for _, heap := range []bool{false, true} {
		s := newSpace(heap, true)
		var a arena
		a.init(s)
		h := a.alloc(100_000)
		data := bytes.Repeat([]byte("x"), 100_000)
		copy(a.bytes(h), data)
		for n := 200_000; n < 10_000_000; n *= 2 {
			h = a.enlarge(h, len(data), n)
			data = append(data, make([]byte, n-len(data))...)
			if !bytes.Equal(a.bytes(h)[:n], data) {
				t.Fatalf("wrong bytes after growing to %d", n)
			}
		}
		a.free(h)
		if a.large != 0 {
			t.Errorf("%d bytes are left", a.large)
		}
		s.unmap()
	}
}
