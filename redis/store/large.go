package store

import (
	"math"

	"github.com/rondo-go/rondo/internal/sys"
)

// slice is the size of the pieces in which mappings of more than a chunk are freed.
const slice = 4 * chunkSize

// allocLarge returns a cell with a mapping of its own. Its bytes are zero. The system adds
// the pages when they are touched.
func (a *arena) allocLarge(n int) Handle { return a.reserve(n, n) }

// reserve is allocLarge for a cell of size bytes, of which n will be touched soon.
func (a *arena) reserve(n, size int) Handle {
	size = pagesOf(size) * pageSize
	number, state := a.number(), chunkLarge
	var m []byte
	if !a.heap {
		m, _ = sys.MapMemory(size)
	}
	if m == nil {
		m, state = make([]byte, size), chunkAdopted
	}
	return a.addLarge(number, state, m, n)
}

// adopt makes a slice of Go's heap a cell, without a copy.
func (a *arena) adopt(m []byte) Handle {
	return a.addLarge(a.number(), chunkAdopted, m[:cap(m)], cap(m))
}

func (a *arena) addLarge(number uint32, state chunkState, m []byte, n int) Handle {
	a.mem[number] = m
	a.meta[number] = chunk{state: state, owner: a.id}
	if state == chunkAdopted {
		a.adopted += int64(len(m))
	}
	a.count(number, n)
	return Handle(number) << offsetBits
}

func pagesOf(n int) int { return (n + pageSize - 1) / pageSize }

// count counts n bytes of a large cell as touched, in chunk.top in pages.
func (a *arena) count(number uint32, n int) {
	m := &a.meta[number]
	pages := uint32(pagesOf(n))
	a.large += (int64(pages) - int64(m.top)) * int64(pageSize)
	m.top = pages
}

// freeLarge frees a large cell: a very large mapping in slices, by tidy.
func (a *arena) freeLarge(number uint32) {
	a.large -= int64(a.meta[number].top) * int64(pageSize)
	a.discard(number)
}

// discard frees a large cell of any arena.
func (s *space) discard(number uint32) {
	m := s.mem[number]
	mapped := s.meta[number].state == chunkLarge
	s.forget(number)
	switch {
	case !mapped:
		s.adopted -= int64(len(m))
		if s.poison {
			poisonCell(m)
		}
	case len(m) > chunkSize:
		s.doomed = append(s.doomed, m)
	default:
		_ = sys.UnmapMemory(m)
	}
}

// shorten frees a slice of a doomed mapping, from its end, and returns the work.
func (s *space) shorten() int {
	last := len(s.doomed) - 1
	m := s.doomed[last]
	if len(m) <= slice {
		_ = sys.UnmapMemory(m[:cap(m)])
		s.doomed[last] = nil
		s.doomed = s.doomed[:last]
		return workDrop
	}
	rest := (len(m) - 1) / slice * slice
	sys.DropMemory(m[rest:])
	s.doomed[last] = m[:rest]
	return (len(m)-rest)/chunkSize*workDrop + 1
}

// enlarge makes a large cell, of which used bytes are in use, at least n bytes long. It
// returns its Handle, which may be another one. The bytes behind the used ones are zero,
// but for an adopted slice that is long enough.
func (a *arena) enlarge(h Handle, used, n int) Handle {
	number := uint32(h >> offsetBits)
	old := a.mem[number]
	if n <= len(old) {
		a.count(number, max(n, int(a.meta[number].top)*pageSize))
		return h
	}
	// Room for twice the size costs addresses, and pages only when it is used.
	size := pagesOf(n) * pageSize
	if size <= math.MaxInt/4 {
		size *= 2
	}
	if a.meta[number].state == chunkLarge {
		if m, ok := sys.GrowMemory(old, size); ok {
			a.mem[number] = m
			a.count(number, n)
			return h
		}
	}
	grown := a.reserve(n, size)
	copy(a.bytes(grown), old[:used])
	a.freeLarge(number)
	return grown
}
