package sim

import (
	"bytes"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// A watch lets goroutines that are not loops come to rest before the network
// goes on: the function that Await runs, a loop before its first turn, a worker
// that a handler passed something to. Otherwise it would depend on the
// scheduler whether what they do comes before or after the network's next step.
//
// Go has no call that tells whether a goroutine waits. What runtime.Stack
// prints does: "goroutine 18 [chan receive]:" and, at the end, who created it.
// Only the goroutines of the test count, that is, those that drive the network
// and all that descend from them. Since looking is slow (100 µs) it is left out
// while there are none but the driver and the parked loops. A wrong guess, were
// the format to change, would cost determinism where there are such goroutines,
// and nothing else.
type watch struct {
	mu      sync.Mutex // guards added and stirred, which are not the driver's
	added   []uint64   // goroutines of the test that may die unseen
	stirred bool       // somebody new may be about

	kin     map[uint64]bool // the test's goroutines, dead ones too
	buf     []byte
	found   []goroutine
	alone   int  // runtime.NumGoroutine when there was nobody to watch
	company bool // there was somebody

	coroutines int64  // backend.Coroutines when it was last looked
	begun      uint64 // likewise, begun
}

// So often a network looks whether a goroutine comes to rest, about a second's and
// twenty seconds' worth on a machine that is not busy: a count grows no faster
// than the goroutine gets its turns, even if the process is stopped meanwhile. Some
// are in a system call for ever, that for signals for instance. From then on no
// network waits for it.
const (
	patienceInCall = 5_000
	patience       = 100_000
)

// lookAgain is how long, in real time, it waits between two looks.
const lookAgain = 50 * time.Microsecond

var tired sync.Map // of their ids

func (w *watch) init() {
	w.kin = map[uint64]bool{goroutineID(): true}
	w.company = true
}

// add makes a goroutine one of the test's. Otherwise it would not be known as
// the parent of those that it starts, if it ended before anybody looked.
func (w *watch) add(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.added = append(w.added, id)
}

// stir makes the next rest look.
func (w *watch) stir() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stirred = true
}

func (w *watch) wasStirred() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.stirred
	w.stirred = false
	return was
}

// rest returns when every goroutine that matters waits for something.
func (w *watch) rest() {
	coroutines, begun := backend.Coroutines.Load(), begun()
	if !w.wasStirred() && !w.company && runtime.NumGoroutine() == w.alone && coroutines == w.coroutines && begun == w.begun {
		return
	}
	for try := 0; ; try++ {
		runtime.Gosched()
		busy, company := w.look()
		if len(busy) == 0 {
			w.company, w.alone, w.coroutines, w.begun = company, len(w.found), coroutines, begun
			return
		}
		if try > 10 {
			tire(busy, try)
			time.Sleep(lookAgain)
		}
	}
}

// begun is how many goroutines the process has begun. Go before 1.26 does not tell: there
// it is always 0, and one that begins just as another ends may go unnoticed.
func begun() uint64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	if metrics.Read(sample); sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// tire gives up on those that a network has looked at often enough.
func tire(busy []goroutine, looks int) {
	for _, g := range busy {
		if looks > patience || g.inCall && looks > patienceInCall {
			tired.Store(g.id, true)
		}
	}
}

// rests tells whether every goroutine that matters waits for something, after
// giving them some chances to get there.
func (w *watch) rests() bool {
	for range 10 {
		runtime.Gosched()
		if busy, _ := w.look(); len(busy) == 0 {
			return true
		}
	}
	return false
}

// look returns which of the test's goroutines are busy, but for the caller, and
// whether there are any that may become so.
func (w *watch) look() (busy []goroutine, company bool) {
	w.buf, w.found = goroutines(w.buf, w.found[:0])
	w.kin[w.found[0].id] = true // the caller comes first
	w.mu.Lock()
	for _, id := range w.added {
		w.kin[id] = true
	}
	w.added = w.added[:0]
	w.mu.Unlock()
	w.adopt()
	for more := true; more; {
		more = false
		for _, g := range w.found {
			if w.kin[g.parent] && !w.kin[g.id] {
				w.kin[g.id] = true
				more = true
			}
		}
	}
	for _, g := range w.found[1:] {
		if !w.kin[g.id] || g.passive {
			continue
		}
		if _, ok := tired.Load(g.id); ok {
			continue
		}
		company = true
		if g.busy {
			busy = append(busy, g)
		}
	}
	return busy, company
}

// adopt makes orphaned coroutines the test's. Whoever runs a coroutine waits for
// it; if that is a worker which a handler started, another worker than the one
// that made the coroutine, which may have come and gone unseen, then nothing else
// tells that the test is busy.
func (w *watch) adopt() {
	alive := make(map[uint64]bool, len(w.found))
	for _, g := range w.found {
		alive[g.id] = true
	}
	for _, g := range w.found {
		if g.coroutine && !alive[g.parent] {
			w.kin[g.id] = true
		}
	}
}

// A goroutine as runtime.Stack describes it.
type goroutine struct {
	id, parent uint64
	busy       bool // it does not wait for other goroutines
	inCall     bool // of the system's, which may be what it waits in
	passive    bool // a turn does not make it busy: it is a loop, or runs on one, or waits for their end, or for something real
	coroutine  bool // iter.Pull's
	real       bool // it waits for something real: time, or input
}

// goroutines lists all of them, the caller first. It uses buf, and appends to
// list.
func goroutines(buf []byte, list []goroutine) ([]byte, []goroutine) {
	if buf == nil {
		buf = make([]byte, 16<<10)
	}
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	for rest := buf[:n]; len(rest) > 0; {
		var one []byte
		one, rest, _ = bytes.Cut(rest, []byte("\n\n"))
		if g, ok := parseGoroutine(one); ok {
			list = append(list, g)
		}
	}
	return buf, list
}

func parseGoroutine(b []byte) (g goroutine, ok bool) {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	if g.id, ok = number(head, "goroutine "); !ok {
		return g, false
	}
	if i := bytes.LastIndex(body, []byte(" in goroutine ")); i >= 0 {
		g.parent, _ = number(body[i:], " in goroutine ")
		g.coroutine = bytes.Contains(body, []byte("\ncreated by iter.Pull"))
	}
	_, state, _ := bytes.Cut(head, []byte("["))
	if i := bytes.IndexAny(state, ",]("); i >= 0 {
		state = bytes.TrimSpace(state[:i])
	}
	calls := func(f string) bool { return bytes.Contains(body, []byte(f)) }
	switch s := string(state); {
	case s == "coroutine":
		// Others than the toolkit's own are not counted by backend.Coroutines: one
		// may end just when somebody new begins, who would not be noticed.
		g.passive = calls("coro.(*Co).") || calls("rtls.(*routine).run(")
	case s == "sleep", s == "IO wait":
		g.passive, g.real = true, true
	case (s == "semacquire" || s == "sync.WaitGroup.Wait") && calls("sync.(*WaitGroup).Wait("):
		g.passive = true
	case s == "select", strings.HasPrefix(s, "chan "), strings.HasPrefix(s, "sync."):
		g.passive = calls("sim.(*Network).park(")
	default:
		g.busy = true
		g.inCall = s == "syscall"
	}
	return g, true
}

// number reads the number behind prefix.
func number(b []byte, prefix string) (n uint64, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(prefix))
	for ; ok && len(b) > 0 && '0' <= b[0] && b[0] <= '9'; b = b[1:] {
		n = 10*n + uint64(b[0]-'0')
	}
	return n, ok
}

// goroutineID is the caller's.
func goroutineID() uint64 {
	var buf [64]byte
	id, _ := number(buf[:runtime.Stack(buf[:], false)], "goroutine ")
	return id
}

// exists tells whether a goroutine has not ended.
func exists(id uint64) bool {
	_, list := goroutines(nil, nil)
	return slices.ContainsFunc(list, func(g goroutine) bool { return g.id == id })
}
