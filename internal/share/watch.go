//go:build rondo_countshared

package share

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// watching is not nil while somebody watches.
var watching atomic.Pointer[watch]

// A watch is what was seen of each line.
type watch struct {
	who   func() int
	mu    sync.Mutex
	lines map[uintptr]*line
}

// A line is a line of the caches: how often each goroutine has written to it, 0 if it has only
// read, and from where.
type line struct {
	writes map[int]int
	from   map[string]bool
}

// A Shared is a line that somebody has written to and somebody else has used.
type Shared struct {
	Addr   uintptr
	Writes map[int]int // by those who used it
	From   []string    // functions
}

func (s Shared) String() string {
	return fmt.Sprintf("line %#x: writes by user: %v, from %s", s.Addr, s.Writes, strings.Join(s.From, ", "))
}

// Watch counts who uses the words of this package, until stop is called, which returns the lines
// that were shared, and how often any word was used. who says who the caller is; a negative
// number is not counted.
func Watch(who func() int) (stop func() (shared []Shared, uses int)) {
	w := &watch{who: who, lines: map[uintptr]*line{}}
	watching.Store(w)
	return func() (all []Shared, uses int) {
		watching.Store(nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		for at, l := range w.lines {
			written := 0
			for _, n := range l.writes {
				written += n
				uses++
			}
			if written == 0 || len(l.writes) < 2 {
				continue
			}
			s := Shared{Addr: at * Line, Writes: l.writes}
			for f := range l.from {
				s.From = append(s.From, f)
			}
			slices.Sort(s.From)
			all = append(all, s)
		}
		slices.SortFunc(all, func(a, b Shared) int { return int(a.Addr) - int(b.Addr) })
		return all, uses
	}
}

// note notes that the caller's caller uses a word.
func note(at unsafe.Pointer, write bool) {
	w := watching.Load()
	if w == nil {
		return
	}
	user := w.who()
	if user < 0 {
		return
	}
	where := caller()
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lines[uintptr(at)/Line]
	if l == nil {
		l = &line{map[int]int{}, map[string]bool{}}
		w.lines[uintptr(at)/Line] = l
	}
	if write {
		l.writes[user]++
	} else {
		l.writes[user] += 0
	}
	l.from[where] = true
}

// caller names the function that used the word.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "internal/share.") || !more {
			return f.Function
		}
	}
}
