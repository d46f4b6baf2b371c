package store

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// chainOps are a type for tests: a chain of cells, each with the Handle of the next one and
// a number.
type chainOps struct{ freed int }

func newChain(c *Cells, numbers []uint64) (root Handle) {
	for _, n := range slices.Backward(numbers) {
		h := c.Alloc(16)
		b := c.Bytes(h)
		binary.LittleEndian.PutUint64(b, uint64(root))
		binary.LittleEndian.PutUint64(b[8:], n)
		root = h
	}
	return root
}

func nextOf(c *Cells, h Handle) Handle { return Handle(binary.LittleEndian.Uint64(c.Bytes(h))) }

func chainNumbers(c *Cells, root Handle) (all []uint64) {
	for h := root; h != 0; h = nextOf(c, h) {
		all = append(all, binary.LittleEndian.Uint64(c.Bytes(h)[8:]))
	}
	return all
}

func (o *chainOps) Free(c *Cells, root Handle, budget int) Handle {
	for ; root != 0 && budget > 0; budget-- {
		next := nextOf(c, root)
		c.Free(root)
		root = next
		o.freed++
	}
	return root
}

func (o *chainOps) Copy(c *Cells, root Handle, to *Cells) Handle {
	return newChain(to, chainNumbers(c, root))
}

func (o *chainOps) Defrag(c *Cells, root Handle) Handle {
	var before []byte
	for h := root; h != 0; h = nextOf(c, h) {
		if c.Sparse(h) {
			moved := c.Alloc(16)
			copy(c.Bytes(moved)[:16], c.Bytes(h))
			c.Free(h)
			h = moved
			if before == nil {
				root = h
			} else {
				binary.LittleEndian.PutUint64(before, uint64(h))
			}
		}
		before = c.Bytes(h)
	}
	return root
}

func (o *chainOps) Size(c *Cells, root Handle) int {
	n := 0
	for h := root; h != 0; h = nextOf(c, h) {
		n += c.Size(h)
	}
	return n
}

// Values that are cells of their own are copied, moved, defragmented and freed in slices.
func TestNodeValues(t *testing.T) {
	s := New(Options{Databases: 2, Seed: 5, Poison: true})
	defer s.Close()
	ops := &chainOps{}
	s.SetNodeOps(List, ops)
	db := s.DB(0)
	rng := rand.New(rand.NewPCG(1, 1))
	want := make(map[string][]uint64)
	for i := range 400 {
		numbers := make([]uint64, 1+rng.IntN(1000))
		for i := range numbers {
			numbers[i] = rng.Uint64()
		}
		key := string(rune('a' + i))
		want[key] = numbers
		it := db.Put([]byte(key), NodeValue(List, newChain(db.Cells(), numbers), false), NoDeadline)
		if it.Form() != Node || it.Type() != List || it.Size() < 16*len(numbers) {
			t.Fatalf("form %d, type %v, size %d", it.Form(), it.Type(), it.Size())
		}
	}
	check := func(db *DB, key string, numbers []uint64) {
		t.Helper()
		if it := db.Peek([]byte(key)); !it.Exists() || !slices.Equal(chainNumbers(db.Cells(), it.Root()), numbers) {
			t.Fatalf("%q has lost numbers", key)
		}
	}
	for key := range want {
		switch it := db.Find([]byte(key)); rng.IntN(4) {
		case 0:
			db.Delete(it)
			delete(want, key)
		case 1:
			db.Put([]byte(key), StringValue([]byte("x")), NoDeadline)
			delete(want, key)
		case 2:
			db.Copy(it, s.DB(1), []byte(key))
			db.Rename(db.Find([]byte(key)), []byte(key+key))
			db.Move(db.Find([]byte(key+key)), db, []byte(key))
			check(s.DB(1), key, want[key])
		}
	}
	s.SetDefrag(5)
	for s.Tick(1000) {
	}
	cells := 0
	for key, numbers := range want {
		check(db, key, numbers)
		cells += len(numbers)
	}
	if waste := db.t.waste(); waste > leastWaste*2 {
		t.Errorf("%d bytes are wasted after defragmentation", waste)
	}
	for key, numbers := range want {
		db.Move(db.Find([]byte(key)), s.DB(1), []byte("moved"+key))
		check(s.DB(1), "moved"+key, numbers)
		if db.Peek([]byte(key)).Exists() {
			t.Error("the moved key is still there")
		}
	}
	s.Flush()
	for s.Tick(1000) {
	}
	if m := s.Memory(); m != (Memory{}) {
		t.Errorf("after Flush %+v", m)
	}
}

// A value of many cells is freed in slices.
func TestNodesAreFreedInSlices(t *testing.T) {
	s := New(Options{Databases: 1})
	defer s.Close()
	ops := &chainOps{}
	s.SetNodeOps(List, ops)
	db := s.DB(0)
	const cells = 10000
	it := db.Put([]byte("k"), NodeValue(List, newChain(db.Cells(), make([]uint64, cells)), false), NoDeadline)
	db.Delete(it)
	if ops.freed > 100 {
		t.Errorf("Delete freed %d cells at once", ops.freed)
	}
	most := 0
	for more := true; more; {
		before := ops.freed
		more = s.Tick(800)
		most = max(most, ops.freed-before)
	}
	if ops.freed != cells || most > 300 {
		t.Errorf("%d cells were freed, at most %d in a tick", ops.freed, most)
	}
}
