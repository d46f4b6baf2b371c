//go:build !rondo_countshared

package share

import (
	"sync"
	"sync/atomic"
)

// The words.
type (
	Bool    = atomic.Bool
	Int32   = atomic.Int32
	Int64   = atomic.Int64
	Uint32  = atomic.Uint32
	Uint64  = atomic.Uint64
	Uintptr = atomic.Uintptr
	Mutex   = sync.Mutex

	Pointer[T any] = atomic.Pointer[T]
)
