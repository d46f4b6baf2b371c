package store

import "encoding/binary"

// maxSmall is the size of the largest cell that shares a chunk with others.
const maxSmall = 32 << 10

// numClasses counts the sizes of small cells: steps of 8 bytes to 256, then 8 steps for
// each doubling. Finer steps would waste less in cells, and more in chunks in part used.
const numClasses = 256/8 + 8*7

// classSizes holds the size of each class, classes the class of each number of units.
var classSizes, classes = makeClasses()

func makeClasses() (sizes [numClasses]uint32, of [maxSmall>>unitBits + 1]uint8) {
	size := uint32(0)
	for class := range sizes {
		step := uint32(8)
		for size >= 256 && step*16 <= size {
			step *= 2
		}
		size += step
		sizes[class] = size
	}
	class := 0
	for units := range of {
		if uint32(units)<<unitBits > sizes[class] {
			class++
		}
		of[units] = uint8(class)
	}
	return sizes, of
}

// classOf returns the class of cells of n bytes, for n up to maxSmall.
func classOf(n int) uint8 { return classes[(n+7)>>unitBits] }

// An arena hands out cells of a space. A small cell lies in a chunk of cells of its size
// class; a larger one has a mapping of its own. A chunk belongs to one arena.
type arena struct {
	*space
	id     uint32             // owner of the chunks
	heads  [numClasses]uint32 // the chunks of each class with room
	sparse uint32             // the chunks that defragmentation empties
	used   int64              // bytes of small cells in use
	held   int64              // bytes of chunks that small cells have ever touched
	large  int64              // bytes of large cells
}

func (a *arena) init(s *space) { *a = arena{space: s, id: s.owner()} }

// alloc returns a cell of at least n bytes, with any contents.
func (a *arena) alloc(n int) Handle {
	if n > maxSmall {
		return a.allocLarge(n)
	}
	class := classOf(n)
	number := a.heads[class]
	if number == 0 {
		number = a.open(class)
	}
	m := &a.meta[number]
	size := classSizes[class]
	var unit uint32
	if m.free != 0 {
		unit = m.free - 1
		m.free = binary.LittleEndian.Uint32(a.mem[number][unit<<unitBits:])
	} else {
		unit = m.top * size >> unitBits
		m.top++
		a.held += int64(size)
	}
	m.live++
	if m.live == m.slotted {
		a.unlink(&a.heads[class], number)
	}
	a.used += int64(size)
	return Handle(number)<<offsetBits | Handle(unit)
}

// open takes a chunk for a class.
func (a *arena) open(class uint8) uint32 {
	number := a.take(a.id, chunkCells, false)
	m := &a.meta[number]
	m.class, m.slotted = class, chunkSize/classSizes[class]
	a.link(&a.heads[class], number)
	return number
}

// free frees a cell of alloc or adopt. A chunk without cells becomes idle.
func (a *arena) free(h Handle) {
	number := uint32(h >> offsetBits)
	m := &a.meta[number]
	if m.state != chunkCells {
		a.freeLarge(number)
		return
	}
	size := classSizes[m.class]
	cell := a.bytes(h)
	if a.poison {
		poisonCell(cell[:size])
	}
	binary.LittleEndian.PutUint32(cell, m.free)
	m.free = uint32(h&offsetMask) + 1
	m.live--
	a.used -= int64(size)
	switch {
	case m.live == 0:
		a.close(number)
	case !m.listed:
		a.link(&a.heads[m.class], number)
	}
}

// close makes a chunk without cells idle.
func (a *arena) close(number uint32) {
	m := &a.meta[number]
	if m.listed {
		a.unlink(a.list(m), number)
	}
	a.held -= int64(m.top) * int64(classSizes[m.class])
	a.release(number)
}

// list returns the list that a listed chunk is in.
func (a *arena) list(m *chunk) *uint32 {
	if m.sparse {
		return &a.sparse
	}
	return &a.heads[m.class]
}

func (a *arena) link(head *uint32, number uint32) {
	m := &a.meta[number]
	m.prev, m.next, m.listed = 0, *head, true
	if m.next != 0 {
		a.meta[m.next].prev = number
	}
	*head = number
}

func (a *arena) unlink(head *uint32, number uint32) {
	m := &a.meta[number]
	if m.prev != 0 {
		a.meta[m.prev].next = m.next
	} else {
		*head = m.next
	}
	if m.next != 0 {
		a.meta[m.next].prev = m.prev
	}
	m.prev, m.next, m.listed = 0, 0, false
}

// size returns the bytes that a cell takes.
func (a *arena) size(h Handle) int {
	number := h >> offsetBits
	if m := &a.meta[number]; m.state == chunkCells {
		return int(classSizes[m.class])
	}
	return int(a.meta[number].top) * pageSize
}

// fits reports whether a cell is of the size that alloc(n) would return, so that there is
// no reason to move its contents.
func (a *arena) fits(h Handle, n int) bool {
	number := h >> offsetBits
	if m := &a.meta[number]; m.state == chunkCells {
		return n <= maxSmall && classOf(n) == m.class
	}
	return n > maxSmall && n <= len(a.mem[number]) && n > len(a.mem[number])/2
}

// bytesHeld estimates the memory of the arena's chunks in bytes.
func (a *arena) bytesHeld() int64 { return a.held + a.large }

// bytesUsed is bytesHeld without free cells.
func (a *arena) bytesUsed() int64 { return a.used + a.large }

// poisonCell overwrites freed memory: a slice that is used for too long shows.
func poisonCell(cell []byte) {
	for i := range cell {
		cell[i] = 0xDB
	}
}
