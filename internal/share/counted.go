//go:build rondo_countshared

package share

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// The words, which count who uses them.
type (
	// Bool is an atomic.Bool.
	Bool struct{ v atomic.Bool }
	// Pointer is an atomic.Pointer.
	Pointer[T any] struct{ v atomic.Pointer[T] }
	// Mutex is a sync.Mutex.
	Mutex struct{ v sync.Mutex }

	// Int32 is an atomic.Int32.
	Int32 struct{ number[int32] }
	// Int64 is an atomic.Int64.
	Int64 struct{ number[int64] }
	// Uint32 is an atomic.Uint32.
	Uint32 struct{ number[uint32] }
	// Uint64 is an atomic.Uint64.
	Uint64 struct{ number[uint64] }
	// Uintptr is an atomic.Uintptr.
	Uintptr struct{ number[uintptr] }
)

func (x *Bool) at() unsafe.Pointer { return unsafe.Pointer(x) }

// Load does what its namesake does; so do the following methods.
func (x *Bool) Load() bool       { note(x.at(), false); return x.v.Load() }
func (x *Bool) Store(v bool)     { note(x.at(), true); x.v.Store(v) }
func (x *Bool) Swap(v bool) bool { note(x.at(), true); return x.v.Swap(v) }
func (x *Bool) CompareAndSwap(old, v bool) bool {
	note(x.at(), true)
	return x.v.CompareAndSwap(old, v)
}

func (x *Pointer[T]) at() unsafe.Pointer { return unsafe.Pointer(x) }

func (x *Pointer[T]) Load() *T     { note(x.at(), false); return x.v.Load() }
func (x *Pointer[T]) Store(v *T)   { note(x.at(), true); x.v.Store(v) }
func (x *Pointer[T]) Swap(v *T) *T { note(x.at(), true); return x.v.Swap(v) }
func (x *Pointer[T]) CompareAndSwap(old, v *T) bool {
	note(x.at(), true)
	return x.v.CompareAndSwap(old, v)
}

func (x *Mutex) at() unsafe.Pointer { return unsafe.Pointer(x) }

func (x *Mutex) Lock()         { note(x.at(), true); x.v.Lock() }
func (x *Mutex) Unlock()       { note(x.at(), true); x.v.Unlock() }
func (x *Mutex) TryLock() bool { note(x.at(), true); return x.v.TryLock() }

// A number is any of the numbers. Its mutex makes it atomic: what counts here is who uses it.
type number[T int32 | int64 | uint32 | uint64 | uintptr] struct {
	mu sync.Mutex
	v  T
}

// change replaces the value by what f makes of it, and returns both.
func (x *number[T]) change(write bool, f func(T) T) (old, now T) {
	note(unsafe.Pointer(x), write)
	x.mu.Lock()
	defer x.mu.Unlock()
	old = x.v
	x.v = f(old)
	return old, x.v
}

func (x *number[T]) Load() T    { v, _ := x.change(false, func(v T) T { return v }); return v }
func (x *number[T]) Store(v T)  { x.change(true, func(T) T { return v }) }
func (x *number[T]) Swap(v T) T { old, _ := x.change(true, func(T) T { return v }); return old }
func (x *number[T]) Add(d T) T  { _, now := x.change(true, func(v T) T { return v + d }); return now }
func (x *number[T]) Or(m T) T   { old, _ := x.change(true, func(v T) T { return v | m }); return old }
func (x *number[T]) And(m T) T  { old, _ := x.change(true, func(v T) T { return v & m }); return old }
func (x *number[T]) CompareAndSwap(old, v T) bool {
	was, _ := x.change(true, func(now T) T {
		if now == old {
			return v
		}
		return now
	})
	return was == old
}
