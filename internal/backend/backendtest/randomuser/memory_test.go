package randomuser

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
)

// The oracle for memory compares a connection's memory with its limits at the end of
// every turn. When everything is closed, nothing may be held. The API reports the
// output. Reflection reads the rest from the engine's own fields, so renaming one fails
// here.

// most holds the highest limits that a connection has had, because bytes accepted then
// may wait for a long time.
type most struct{ in, out int }

func (m *most) allow(l rondo.Limits) {
	m.in, m.out = max(m.in, l.MaxInput), max(m.out, l.MaxOutput)
}

// A holder is the oracle's record of a connection, the user's or another one.
type holder struct {
	name    string
	most    most
	filters int // number of filters so far
}

// holder returns c's record.
func (w *world) holder(c *rondo.Conn) *holder {
	h, ok := w.holders.Load(c)
	if !ok {
		h, _ = w.holders.LoadOrStore(c, &holder{})
	}
	return h.(*holder)
}

// field returns a field's index, which is faster to use than its name.
func field(t reflect.Type, name string) int {
	f, ok := t.FieldByName(name)
	if !ok {
		panic(fmt.Sprintf("the oracle for memory looks for %s in %v: it is called something else now", name, t))
	}
	return f.Index[0]
}

func under(t reflect.Type, name string) reflect.Type {
	for t = t.Field(field(t, name)).Type; t.Kind() == reflect.Pointer; {
		t = t.Elem()
	}
	return t
}

var (
	connType    = reflect.TypeFor[rondo.Conn]()
	filtersType = under(connType, "filters")
	stageType   = reflect.TypeFor[rondo.FilterPort]()
	inletType   = under(stageType, "in")

	connCarry     = field(connType, "carry")
	connOut       = field(connType, "out")
	connFilters   = field(connType, "filters")
	filtersCarry  = field(filtersType, "carry")
	filtersBottom = field(filtersType, "bottom")
	stageIn       = field(stageType, "in")
	stageOut      = field(stageType, "out")
	stageAbove    = field(stageType, "above")
	inletKept     = field(inletType, "kept")
	inletLate     = field(inletType, "late")
)

// held is the memory of a connection.
type held struct {
	input   int // bytes not consumed, by filters or the handler
	room    int // in the buffer next to the wire
	filters int
	buffers int // other buffers than the carry
	output  bool
}

func look(c *rondo.Conn) (m held) {
	v := reflect.ValueOf(c).Elem()
	carry := v.Field(connCarry)
	m.input, m.room = carry.Len(), carry.Cap()
	m.output = !v.Field(connOut).IsNil()
	f := v.Field(connFilters)
	if f.IsNil() {
		return m
	}
	f = f.Elem()
	m.inlet(f.Field(filtersCarry))
	for s := f.Field(filtersBottom); !s.IsNil(); s = s.Elem().Field(stageAbove) {
		m.filters++
		m.inlet(s.Elem().Field(stageIn))
		m.buffer(s.Elem().Field(stageOut))
	}
	return m
}

func (m *held) inlet(in reflect.Value) {
	kept, late := in.Field(inletKept), in.Field(inletLate)
	m.input += kept.Len() + late.Len()
	m.buffer(kept)
	m.buffer(late)
}

func (m *held) buffer(b reflect.Value) {
	if b.Cap() > 0 {
		m.buffers++
	}
}

// audit checks that a loop's connections hold no more than they may.
func (w *world) audit(l *rondo.Loop) {
	for c := range l.Conns() {
		h := w.holder(c)
		h.most.allow(c.Limits())
		m := look(c)
		h.filters = max(h.filters, m.filters)
		if most := h.mostInput(); m.input > most || m.room > 2*most {
			w.failf("memory: %s: %d bytes of input in %d wait, MaxInput is %d, and there were %d filters: want %d", h.name, m.input, m.room, h.most.in, h.filters, most)
		}
		if n, most := c.Buffered(), h.mostOutput(); n > most {
			w.failf("memory: %s: %d bytes of output wait, MaxOutput is %d, and there were %d filters: want %d", h.name, n, h.most.out, h.filters, most)
		}
	}
}

// mostInput limits waiting input. In addition to MaxInput there may be one more
// receive, into a lent buffer or into one that doubles; and each filter may hold a unit
// before it.
func (h *holder) mostInput() int {
	unit := max(h.most.in, backend.LendSize)
	return h.most.in + (h.filters+1)*unit
}

// mostOutput returns MaxOutput, or twice as much if filters may add to it.
func (h *holder) mostOutput() int {
	if h.filters > 0 && 2*h.most.out > h.most.out {
		return 2 * h.most.out
	}
	return h.most.out
}

// nothingHeld checks all connections and loops when the engines are closed.
func (w *world) nothingHeld() {
	w.holders.Range(func(c, h any) bool {
		if m := look(c.(*rondo.Conn)); m.room > 0 || m.buffers > 0 || m.output {
			w.failf("left: %s has buffers after the end: %+v", h.(*holder).name, m)
		}
		return true
	})
	for _, l := range w.loops {
		w.loopHolds(l)
	}
}

// loopHolds checks the remaining work of a loop that has ended.
func (w *world) loopHolds(l *rondo.Loop) {
	v := reflect.ValueOf(l).Elem()
	at := func(of reflect.Value, name string) reflect.Value { return of.Field(field(of.Type(), name)) }
	complain := func(what string, n int) {
		if n != 0 {
			w.failf("left: loop %d has %d %s after its end", l.ID(), n, what)
		}
	}
	for _, queue := range []string{"again", "calls", "dirty", "dirtyPackets", "deferred", "failedDials"} {
		q := at(v, queue)
		complain(queue, at(q, "items").Len()-int(at(q, "head").Int()))
	}
	for _, list := range []string{"tasks", "acceptors", "polls", "packets", "dialing", "activeNow", "lent", "atEnd"} {
		complain(list, at(v, list).Len())
	}
	complain("bytes of output", int(at(v, "output").Int()))
	if w.exits.Load() == 0 { // see ledger.audit
		complain("buffers by its own count", int(at(at(v, "pool"), "out").Int()))
	}
	complain("parts of output", at(at(v, "outbox"), "parts").Len())
	heap := at(at(v, "timers"), "heap")
	for i := range heap.Len() {
		owner := at(at(heap.Index(i), "timer").Elem(), "Owner").Elem()
		if owner.Type().String() != "*rondo.firing" { // the user's may be pending
			w.failf("left: a timer of a %v is pending after loop %d's end", owner.Type(), l.ID())
		}
	}
}

// A ledger records the buffers that the loops' pools give out.
type ledger struct {
	mu    sync.Mutex
	out   map[*byte][]uintptr // callers that took the buffer
	twice []string
}

// Got implements buf.Watcher.
func (g *ledger) Got(b []byte) {
	var pc [8]uintptr
	n := runtime.Callers(3, pc[:])
	g.mu.Lock()
	defer g.mu.Unlock()
	key := &b[:1][0]
	if _, ok := g.out[key]; ok {
		g.twice = append(g.twice, "given out while somebody has it: "+where(pc[:n]))
	}
	g.out[key] = pc[:n]
}

// PutBack implements buf.Watcher. It overwrites the buffer, so that later use shows.
func (g *ledger) PutBack(b []byte) {
	if cap(b) == 0 {
		return
	}
	b = b[:cap(b)]
	var pc [8]uintptr
	n := runtime.Callers(3, pc[:])
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.out[&b[0]]; !ok {
		g.twice = append(g.twice, "put back by who does not have it: "+where(pc[:n]))
		return
	}
	delete(g.out, &b[0])
	for i := range min(len(b), spoilt) {
		b[i] = 0xdb
	}
}

// spoilt is how many bytes of a buffer are overwritten.
const spoilt = 2048

func where(pc []uintptr) string {
	text := ""
	for frames := runtime.CallersFrames(pc); ; {
		f, more := frames.Next()
		text += fmt.Sprintf("\n      %s:%d", f.Function, f.Line)
		if !more {
			return text
		}
	}
}

// open starts the account of another world.
func (g *ledger) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.out, g.twice = make(map[*byte][]uintptr), nil
}

// audit reports buffers that were taken or put back wrongly and, when everything is
// closed, buffers that were not put back. A callback that calls Goexit loses the
// buffers of the functions on its stack.
func (g *ledger) audit(w *world) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, text := range g.twice {
		w.failf("buffers: one was %s", text)
	}
	if w.exits.Load() > 0 {
		return
	}
	for _, pc := range g.out {
		w.failf("left: a buffer of a loop's did not come home, which was taken in%s", where(pc))
	}
}

// account is this process's ledger.
var account = &ledger{out: make(map[*byte][]uintptr)}
