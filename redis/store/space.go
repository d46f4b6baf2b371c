package store

import (
	"os"

	"github.com/rondo-go/rondo/internal/sys"
)

// A Handle names a cell of a Store's memory: in 40 bits, the number of a chunk and the
// cell's position in it. The zero Handle names none.
type Handle uint64

const (
	chunkBits  = 20
	chunkSize  = 1 << chunkBits
	unitBits   = 3 // positions count 8 bytes
	offsetBits = chunkBits - unitBits
	offsetMask = 1<<offsetBits - 1
	handleBits = 40
	handleMask = 1<<handleBits - 1

	slabChunks = 16 // the chunks of a mapping
)

// chunkState says what a chunk's number names.
//
//	unused → idle       a slab is mapped
//	idle → cells        an arena takes it       → idle: its last cell is freed
//	idle → buckets      a table takes it        → idle: the table shrinks
//	unused → large      a mapping of its own    → unused: freed
//	unused → adopted    a slice of Go's heap    → unused: freed
//
// A retired owner's chunks go back to idle or unused in slices; see trash.
type chunkState uint8

const (
	chunkUnused  chunkState = iota // a number without memory
	chunkIdle                      // memory that nobody uses
	chunkCells                     // cells of one size class
	chunkBuckets                   // a table's
	chunkLarge                     // one cell, mapped
	chunkAdopted                   // one cell, of Go's heap
)

// chunk describes the memory of a number. The fields from live on are an arena's.
type chunk struct {
	state   chunkState
	class   uint8
	listed  bool // in the list of its class
	sparse  bool // defragmentation empties it: no new cells
	owner   uint32
	live    uint32 // cells in use
	top     uint32 // cells ever used
	free    uint32 // position of the first free cell, plus 1
	prev    uint32 // in the list of its class, or of sparse chunks; 0: none
	next    uint32
	slotted uint32 // cells that fit
}

// space is the memory of a Store: chunks by their numbers, of 1 MiB each unless they are
// one large cell. Chunks are mapped outside Go's heap, where the collector does not see
// them, in slabs. Unmapping single chunks would split the slabs' mappings, whose number is
// limited; so idle chunks stay mapped without pages, and serve any purpose later.
//
// A space refers to nothing of its Store, so that a forgotten Store is collected.
type space struct {
	mem     [][]byte
	meta    []chunk
	numbers []uint32 // unused
	dirty   []uint32 // idle chunks that hold pages
	clean   []uint32 // idle chunks without pages
	slabs   [][]byte
	slab    []byte   // the rest of the last slab
	doomed  [][]byte // large mappings that are freed piece by piece
	owners  uint32

	heap    bool  // use Go's heap
	adopted int64 // bytes of adopted chunks
	poison  bool
}

// pageSize is the unit of large cells.
var pageSize = os.Getpagesize()

func newSpace(heap, poison bool) *space {
	// Number 0 stays unused, so that no Handle is 0.
	return &space{mem: make([][]byte, 1), meta: make([]chunk, 1), heap: heap || !sys.MapsMemory, poison: poison}
}

// owner returns a number for a new owner of chunks.
func (s *space) owner() uint32 {
	s.owners++
	return s.owners
}

// bytes returns the memory from the start of h's cell to the end of its chunk.
func (s *space) bytes(h Handle) []byte {
	return s.mem[h>>offsetBits][h&offsetMask<<unitBits:]
}

// number returns a number without memory.
func (s *space) number() uint32 {
	if last := len(s.numbers) - 1; last >= 0 {
		n := s.numbers[last]
		s.numbers = s.numbers[:last]
		return n
	}
	s.mem = append(s.mem, nil)
	s.meta = append(s.meta, chunk{})
	return uint32(len(s.mem) - 1)
}

func (s *space) forget(n uint32) {
	s.mem[n] = nil
	s.meta[n] = chunk{}
	s.numbers = append(s.numbers, n)
}

// take gives an owner a chunk of 1 MiB. The memory is zero if zero is set.
func (s *space) take(owner uint32, state chunkState, zero bool) uint32 {
	n := s.idle(zero)
	s.meta[n] = chunk{state: state, owner: owner}
	return n
}

func (s *space) idle(zero bool) uint32 {
	if last := len(s.dirty) - 1; last >= 0 && !zero {
		n := s.dirty[last]
		s.dirty = s.dirty[:last]
		return n
	}
	if last := len(s.clean) - 1; last >= 0 {
		n := s.clean[last]
		s.clean = s.clean[:last]
		if zero && !sys.DropZeroes {
			clear(s.mem[n])
		}
		return n
	}
	n := s.number()
	s.mem[n] = s.fresh()
	return n
}

// fresh returns the memory of a new chunk.
func (s *space) fresh() []byte {
	if s.heap {
		return make([]byte, chunkSize)
	}
	if len(s.slab) == 0 {
		m, err := sys.MapMemory(slabChunks * chunkSize)
		if err != nil {
			// The system maps no more: Go's heap, whose failure is fatal, may still have room.
			return make([]byte, chunkSize)
		}
		s.slabs = append(s.slabs, m)
		s.slab = m
	}
	m := s.slab[:chunkSize:chunkSize]
	s.slab = s.slab[chunkSize:]
	return m
}

// release makes a chunk of 1 MiB idle. Its pages stay until tidy.
func (s *space) release(n uint32) {
	s.meta[n] = chunk{state: chunkIdle}
	s.dirty = append(s.dirty, n)
}

// tidy gives pages that nobody uses back to the system, within a budget. It returns what
// is left of the budget.
func (s *space) tidy(budget int) int {
	for budget > 0 && len(s.dirty) > 0 {
		last := len(s.dirty) - 1
		n := s.dirty[last]
		s.dirty = s.dirty[:last]
		s.drop(n)
		budget -= workDrop
	}
	for budget > 0 && len(s.doomed) > 0 {
		budget -= s.shorten()
	}
	return budget
}

// drop takes the pages of an idle chunk.
func (s *space) drop(n uint32) {
	if s.heap {
		s.forget(n) // the collector frees it
		return
	}
	if !sys.DropMemory(s.mem[n]) {
		clear(s.mem[n]) // the program has locked its memory, say
	}
	s.clean = append(s.clean, n)
}

// waiting returns the bytes that tidy has still to give back.
func (s *space) waiting() int64 {
	n := int64(len(s.dirty)) * chunkSize
	for _, m := range s.doomed {
		n += int64(len(m))
	}
	return n
}

// unmap gives all memory back. Nothing of the space may be used afterwards.
func (s *space) unmap() {
	for n := range s.meta {
		if s.meta[n].state == chunkLarge {
			_ = sys.UnmapMemory(s.mem[n])
		}
	}
	for _, m := range s.doomed {
		_ = sys.UnmapMemory(m[:cap(m)])
	}
	for _, m := range s.slabs {
		_ = sys.UnmapMemory(m)
	}
	*s = space{}
}
