package rondo

// A Local is a value that each loop makes once, when it is first asked for, and
// owns: a cache or a pool that needs no lock.
type Local[T any] struct {
	// New makes a loop's value. nil: the zero T.
	New func(*Loop) T
}

// Get returns l's value. It may be called on l only.
func (v *Local[T]) Get(l *Loop) T {
	l.check()
	if x, ok := l.locals[v]; ok {
		return x.(T)
	}
	var x T
	if v.New != nil {
		x = v.New(l)
	}
	if l.locals == nil {
		l.locals = make(map[any]any)
	}
	l.locals[v] = x
	return x
}
