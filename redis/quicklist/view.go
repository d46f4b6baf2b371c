package quicklist

import (
	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/store"
)

// A View reads a list.
type View struct {
	lp   []byte // a short list
	list List   // a long one
}

// Short returns the View of a list that is one listpack.
func Short(lp []byte) View { return View{lp: lp} }

// A Pos is an element of a list.
type Pos struct {
	lp   []byte
	at   int // in lp; -1: none
	node store.Handle
}

var none = Pos{at: -1}

// Exists reports whether there is an element.
func (p Pos) Exists() bool { return p.at >= 0 }

// Value returns the element. It aliases the store's memory.
func (p Pos) Value() listpack.Value { return listpack.At(p.lp, p.at) }

// Pack returns the listpack that the element is in, and its position there. The listpack
// aliases the store's memory.
func (p Pos) Pack() (lp []byte, at int) { return p.lp, p.at }

// Len returns the number of elements.
func (v View) Len() int {
	if v.lp != nil {
		return listpack.Len(v.lp)
	}
	return v.list.Len()
}

// Seek returns an element by its index. -1 stands for the last element, and so on.
func (v View) Seek(index int) Pos {
	if v.lp != nil {
		return Pos{lp: v.lp, at: listpack.Seek(v.lp, index)}
	}
	n := v.list.Len()
	switch {
	case index >= n || index < -n:
		return none
	case index >= 0 && index > n/2:
		index -= n
	case index < 0 && -index > n/2:
		index += n
	}
	h, index := v.list.nodeOf(index)
	return v.list.pos(h, index)
}

// End returns the first element, or the last one. There must be some.
func (v View) End(first bool) Pos {
	p := Pos{lp: v.lp}
	if p.lp == nil {
		if p.node = v.list.last(); first {
			p.node = v.list.first()
		}
		p.lp = v.list.pack(p.node)
	}
	if first {
		p.at = listpack.First(p.lp)
	} else {
		p.at = listpack.Last(p.lp)
	}
	return p
}

// Next returns the element behind another one.
func (v View) Next(p Pos) Pos {
	if p.at = listpack.Next(p.lp, p.at); p.at >= 0 {
		return p
	}
	return v.NextPack(p)
}

// Prev returns the element before another one.
func (v View) Prev(p Pos) Pos {
	if p.at = listpack.Prev(p.lp, p.at); p.at >= 0 {
		return p
	}
	return v.PrevPack(p)
}

// NextPack returns the first element behind those of p's listpack.
func (v View) NextPack(p Pos) Pos {
	if v.lp != nil {
		return none
	}
	return v.list.pos(v.list.next(p.node), 0)
}

// PrevPack returns the last element before those of p's listpack.
func (v View) PrevPack(p Pos) Pos {
	if v.lp != nil {
		return none
	}
	return v.list.pos(v.list.prev(p.node), -1)
}

// Find returns the first element equal to e, from p on.
func (v View) Find(p Pos, e listpack.Value) Pos {
	for p.Exists() {
		at := listpack.Find(p.lp, p.at, e, 0)
		if at >= 0 {
			p.at = at
			return p
		}
		p = v.NextPack(p)
	}
	return none
}

// Listpacks yields the listpacks that the list consists of.
func (v View) Listpacks(yield func(lp []byte) bool) {
	if v.lp != nil {
		yield(v.lp)
		return
	}
	for h := v.list.first(); h != 0; h = v.list.next(h) {
		if !yield(v.list.pack(h)) {
			return
		}
	}
}
