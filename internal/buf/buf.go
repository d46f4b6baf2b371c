// Package buf keeps one loop's free buffers by size, so that a connection holds
// no more than its unsent or unconsumed bytes need, and an idle one nothing.
package buf

import (
	"math/bits"
	"weak"
)

const (
	minShift = 6  // 64 B
	maxShift = 16 // 64 KiB
	// keep bounds the bytes that a Pool holds of each size; the rest is the
	// garbage collector's.
	keep = 1 << 20
)

// MaxPooled is the largest capacity that a Pool keeps.
const MaxPooled = 1 << maxShift

// Pool is used by one goroutine. Its zero value is empty and ready.
//
// While its owner sleeps, by Sleep and Wake, the free buffers are held by a weak
// pointer: a garbage collection drops them, so that a loop without anything to do
// keeps no memory.
type Pool struct {
	*lists // nil: there are none
	weak   weak.Pointer[lists]
}

// lists is the free buffers by class.
type lists struct {
	free [maxShift - minShift + 1][][]byte
}

// Sleep lets the garbage collector have the free buffers until Wake.
func (p *Pool) Sleep() { p.lists = nil }

// Wake ends Sleep.
func (p *Pool) Wake() { p.lists = p.weak.Value() }

// A Watcher is told of every buffer that a Pool gives out and takes back, on the
// goroutines of their loops. Buffers are told apart by the address of their memory.
type Watcher interface {
	Got(b []byte)
	PutBack(b []byte)
}

// Watch, if not nil, watches over all Pools. A test sets it before there are any.
var Watch Watcher

// Get returns an empty buffer with room for at least n bytes. The last one put
// back is the first to be used again, while the caches still know it.
func (p *Pool) Get(n int) []byte {
	b := p.get(n)
	if Watch != nil {
		Watch.Got(b)
	}
	return b
}

func (p *Pool) get(n int) []byte {
	if n > MaxPooled {
		return make([]byte, 0, n)
	}
	c := class(n)
	if p.lists != nil {
		if f := p.free[c]; len(f) > 0 {
			b := f[len(f)-1]
			f[len(f)-1] = nil
			p.free[c] = f[:len(f)-1]
			return b
		}
	}
	return make([]byte, 0, 1<<(c+minShift))
}

// Put gives a buffer from Get back. Nobody may use it afterwards.
func (p *Pool) Put(b []byte) {
	if Watch != nil {
		Watch.PutBack(b)
	}
	size := cap(b)
	if size > MaxPooled || size < 1<<minShift || size&(size-1) != 0 {
		return
	}
	if p.lists == nil {
		p.lists = new(lists)
		p.weak = weak.Make(p.lists)
	}
	c := class(size)
	if len(p.free[c]) < keep>>(c+minShift) {
		p.free[c] = append(p.free[c], b[:0])
	}
}

// class is the index of the smallest size that holds n bytes.
func class(n int) int {
	if n <= 1<<minShift {
		return 0
	}
	return bits.Len(uint(n-1)) - minShift
}
