// Package buf keeps one loop's free buffers by size. So a connection holds only the
// buffers that its unsent and unconsumed bytes need, and an idle connection none.
package buf

import (
	"math/bits"
	"weak"

	"github.com/rondo-go/rondo/internal/share"
)

const (
	minShift = 6  // 64 B
	maxShift = 16 // 64 KiB
	// keep is the most bytes of each size that a Pool holds. The garbage collector gets
	// the rest.
	keep = 1 << 20
)

// MaxPooled is the largest capacity that a Pool keeps.
const MaxPooled = 1 << maxShift

// Pool holds free buffers. Only one goroutine may use it. The zero value is empty and
// ready.
//
// Between Sleep and Wake a weak pointer holds the free buffers, so that a garbage
// collection can drop them: a loop without work keeps no memory.
type Pool struct {
	*lists // nil if there are none
	weak   weak.Pointer[lists]
	out    int // buffers given out and not put back
	held   int // their bytes
	most   int // Get calls over when held is more, if over is not nil
	over   func()
}

// lists holds the free buffers by class.
type lists struct {
	free [maxShift - minShift + 1][][]byte
	_    share.Pad
}

// Sleep lets the garbage collector free the buffers until Wake.
func (p *Pool) Sleep() { p.lists = nil }

// Wake ends Sleep.
func (p *Pool) Wake() { p.lists = p.weak.Value() }

// A Watcher sees every buffer that a Pool gives out and takes back, on the goroutines
// of their loops. The address of its memory identifies a buffer.
type Watcher interface {
	Got(b []byte)
	PutBack(b []byte)
}

// Watch, if not nil, watches all Pools. A test sets it before any Pool is used.
var Watch Watcher

// Get returns an empty buffer with room for at least n bytes. It prefers the last
// buffer put back, which may still be in the CPU's caches.
func (p *Pool) Get(n int) []byte {
	p.out++
	b := p.get(n)
	if p.held += cap(b); p.held > p.most && p.over != nil {
		p.over()
	}
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

// Out returns how many buffers are given out and not put back.
func (p *Pool) Out() int { return p.out }

// Held returns their bytes.
func (p *Pool) Held() int { return p.held }

// Limit makes Get call over, before it returns, whenever more than most bytes are given out.
// over must not use the Pool's buffers.
func (p *Pool) Limit(most int, over func()) { p.most, p.over = most, over }

// Put gives a buffer from Get back. The caller must not use it afterwards.
func (p *Pool) Put(b []byte) {
	if Watch != nil {
		Watch.PutBack(b)
	}
	size := cap(b)
	if size > 0 {
		p.out--
		p.held -= size
	}
	if size > MaxPooled || size < 1<<minShift || size&(size-1) != 0 {
		return
	}
	if p.lists == nil {
		p.lists = new(lists)
		p.weak = weak.Make(p.lists)
	}
	c := class(size)
	if len(p.free[c]) < keep>>(c+minShift) {
		p.free[c] = append(share.Queue(p.free[c]), b[:0])
	}
}

// class returns the index of the smallest size that holds n bytes.
func class(n int) int {
	if n <= 1<<minShift {
		return 0
	}
	return bits.Len(uint(n-1)) - minShift
}
