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

// A watch lets goroutines that are not loops come to rest before the network goes on:
// the function that Await runs, a loop before its first turn, or a worker that a
// handler gave work to. Otherwise the scheduler would decide whether their actions come
// before or after the network's next step.
//
// Go has no call that tells whether a goroutine waits, but runtime.Stack prints it:
// "goroutine 18 [chan receive]:" and, at the end, the creator. Only the test's
// goroutines count, that is, those that drive the network and their descendants. A look
// is slow (100 µs), so there is none while only the driver and parked loops exist. If
// the format of the stacks changed, wrong guesses would cost only determinism, and only
// with such goroutines.
type watch struct {
	mu      sync.Mutex // guards added and stirred, which other goroutines use
	added   []uint64   // goroutines of the test that may end before a look
	stirred bool       // there may be a new goroutine

	kin     map[uint64]bool // the test's goroutines, including ended ones
	buf     []byte
	found   []goroutine
	alone   int  // runtime.NumGoroutine when there was nobody to watch
	company bool // there was somebody to watch

	coroutines int64  // backend.Coroutines when it was last looked
	begun      uint64 // likewise, begun
}

// patience and patienceInCall are how often a network looks whether a goroutine comes
// to rest: about twenty seconds and one second on an idle machine. They count looks,
// not time: a count grows no faster than the goroutine gets to run, even if the process
// was stopped. Some goroutines never leave a system call, such as the one for signals.
// After that many looks no network waits for the goroutine again.
const (
	patienceInCall = 5_000
	patience       = 100_000
)

// lookAgain is the time between two looks, in real time.
const lookAgain = 50 * time.Microsecond

var tired sync.Map // ids of these goroutines

func (w *watch) init() {
	w.kin = map[uint64]bool{goroutineID(): true}
	w.company = true
}

// add makes a goroutine one of the test's. Otherwise its descendants would be unknown
// if it ended before a look.
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

// rest returns when every goroutine of the test waits for something.
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

// rests gives the test's goroutines some chances to run, and reports whether all of
// them wait for something.
func (w *watch) rests() bool {
	for range 10 {
		runtime.Gosched()
		if busy, _ := w.look(); len(busy) == 0 {
			return true
		}
	}
	return false
}

// look returns the test's busy goroutines, without the caller, and whether any others
// may become busy.
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

// adopt makes coroutines without a living parent the test's. The goroutine that runs a
// coroutine waits for it. A worker may run a coroutine that another worker made, and
// that worker may have ended before a look; then only the coroutine shows that the test
// is busy.
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

// A goroutine is one as described by runtime.Stack.
type goroutine struct {
	id, parent uint64
	busy       bool // not waiting for other goroutines
	inCall     bool // in a system call, which may itself wait
	passive    bool // a turn does not make it busy: a loop, code on a loop, or waiting for a loop's end or for something real
	coroutine  bool // made by iter.Pull
	real       bool // waiting for something real: time or input
}

// goroutines lists all goroutines, the caller first. It uses buf and appends to list.
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
		// backend.Coroutines counts only the toolkit's coroutines. Any other one may
		// end just when a new goroutine starts, which would hide the new one.
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

// number parses the number after prefix.
func number(b []byte, prefix string) (n uint64, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(prefix))
	for ; ok && len(b) > 0 && '0' <= b[0] && b[0] <= '9'; b = b[1:] {
		n = 10*n + uint64(b[0]-'0')
	}
	return n, ok
}

// goroutineID returns the caller's id.
func goroutineID() uint64 {
	var buf [64]byte
	id, _ := number(buf[:runtime.Stack(buf[:], false)], "goroutine ")
	return id
}

// exists reports whether a goroutine has not ended.
func exists(id uint64) bool {
	_, list := goroutines(nil, nil)
	return slices.ContainsFunc(list, func(g goroutine) bool { return g.id == id })
}
