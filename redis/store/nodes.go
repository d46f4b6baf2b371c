package store

// NodeOps are what the Store needs to know of a Type whose values are cells of their own.
type NodeOps interface {
	// Free frees at most budget cells of the value at root, and returns the root of the
	// rest, or 0. The Store calls it again for the rest, later.
	Free(c *Cells, root Handle, budget int) (rest Handle)
	// Copy copies the value at root to cells of to, which may be the same as c, and
	// returns the copy's root.
	Copy(c *Cells, root Handle, to *Cells) Handle
	// Defrag moves the cells for which Cells.Sparse is true, and returns the new root.
	Defrag(c *Cells, root Handle) Handle
	// Size estimates the bytes that the value takes.
	Size(c *Cells, root Handle) int
}

// SlicedDefrag may be implemented by the NodeOps of a Type whose values may be large.
type SlicedDefrag interface {
	// DefragSlice is called in place of NodeOps.Defrag. It does that for a part of the
	// value, from a cursor on: 0 at first, later what the previous call returned. It
	// stops about when its work has reached budget, in units of about 20 ns, and returns
	// the next cursor, or 0 at the end. The value may have changed since the previous
	// call, or be another one: then any part will do.
	DefragSlice(c *Cells, root Handle, cursor uint64, budget int) (now Handle, next uint64, work int)
}

// SetNodeOps makes the Store accept Node values of a Type.
func (s *Store) SetNodeOps(t Type, ops NodeOps) {
	s.ops[t] = ops
	s.hasOps = true
}

// Cells is the memory of a DB, for Node values.
type Cells arena

// Cells returns the DB's memory. It is valid until Flush or Swap.
func (db *DB) Cells() *Cells { return db.t.nodes() }

func (t *table) nodes() *Cells { return (*Cells)(&t.cells) }

// Alloc returns a cell of at least n bytes, with any contents.
func (c *Cells) Alloc(n int) Handle { return (*arena)(c).alloc(n) }

// Free frees a cell of Alloc.
func (c *Cells) Free(h Handle) { (*arena)(c).free(h) }

// Bytes returns the memory from the beginning of a cell to its end or beyond. It is valid
// until the cell is freed, or Tick moves it.
func (c *Cells) Bytes(h Handle) []byte { return c.space.bytes(h) }

// Size returns the bytes that a cell takes: at least what Alloc was asked for.
func (c *Cells) Size(h Handle) int { return (*arena)(c).size(h) }

// Fits reports whether a cell has the size of a new one of n bytes.
func (c *Cells) Fits(h Handle, n int) bool { return (*arena)(c).fits(h, n) }

// Sparse reports whether defragmentation wants a cell to move: allocate a new one, copy
// the contents and free the old one.
func (c *Cells) Sparse(h Handle) bool { return c.space.meta[h>>offsetBits].sparse }
