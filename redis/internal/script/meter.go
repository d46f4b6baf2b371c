package script

import (
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// A script that never looks at the clock would hold its loop, and one that looks too often would be
// slow. So the clock is looked at after a number of instructions, and when the flag Engine.due is set:
// a timer sets it tickLong later. The number alone is not enough, since what an instruction takes
// depends on its operands: the comparison of two long strings takes as long as a million others.
const (
	// Instructions between two looks at the clock. How many is doubled while they take little time,
	// and divided when they take long.
	tickFirst = 64
	tickMost  = 4096
	tickLong  = time.Millisecond
	tickShort = tickLong / 4

	// tickArm is after how many instructions of a run the timer is set. A short script needs none: it
	// has no long strings, which count as instructions when they are made.
	tickArm = 2048

	checkEvery = 16 << 10 // instructions between two looks at the memory
	checkBytes = 8 << 20  // announced bytes between two looks
)

// hook is the context of a thread. The virtual machine calls Done before each instruction.
type hook struct {
	engine *Engine
	L      *lua.LState
}

// Done implements context.Context. It counts an instruction, and never ends the context.
func (h *hook) Done() <-chan struct{} {
	e := h.engine
	if e.ticks--; e.ticks < 0 || e.due.Load() {
		e.slow(h.L)
	}
	return nil
}

// Deadline implements context.Context.
func (h *hook) Deadline() (t time.Time, ok bool) { return t, false }

// Err implements context.Context.
func (h *hook) Err() error { return nil }

// Value implements context.Context.
func (h *hook) Value(any) any { return nil }

var _ context.Context = (*hook)(nil)

// slow does what need not be done at each instruction.
func (e *Engine) slow(L *lua.LState) {
	done := e.every - e.ticks
	e.counted += done
	e.toCheck -= done
	if e.due.Load() {
		e.due.Store(false)
		e.armed = false
		if e.counted >= tickArm { // much can be allocated in that time without being announced
			e.toCheck = 0
		}
	}
	if e.running && e.killed == nil {
		now := time.Now()
		switch took := now.Sub(e.last); {
		case e.last.IsZero():
		case took > tickLong:
			e.every = max(e.every/4, 1)
		case took < tickShort:
			e.every = min(2*e.every, tickMost)
		}
		if !e.deadline.IsZero() && now.After(e.deadline) {
			e.kill(e.errorTable("ERR FUNCTION LOAD timeout"))
		} else if e.deadline.IsZero() {
			e.host.Tick()
		}
		if e.toCheck <= 0 {
			e.check(0)
		}
		e.last = time.Now()
		e.arm()
	}
	e.ticks = e.every
	if e.killed != nil {
		e.ticks = 0
		e.raised, e.raisedWhere = e.killed, L.Where(0)
		L.Error(e.killed, 0)
	}
}

// arm sets the timer, if that has not been done and the run is a long one. It stays set when the run
// ends: the next one then looks at the clock once more than it must, which costs less than to stop a
// timer in each run.
func (e *Engine) arm() {
	if e.armed || e.counted < tickArm {
		return
	}
	e.armed = true
	if e.timer == nil {
		e.timer = time.AfterFunc(tickLong, func() { e.due.Store(true) })
	} else {
		e.timer.Reset(tickLong)
	}
}

// Spend implements lualib.Meter. It counts as work, too.
func (e *Engine) Spend(L *lua.LState, n int) {
	if n < 0 {
		n = math.MaxInt // more than an int holds
	}
	if e.pending > checkBytes-n {
		e.check(n)
	} else {
		e.pending += n
	}
	e.Work(L, n)
}

// Work implements lualib.Meter. An instruction is worth 64 bytes.
func (e *Engine) Work(L *lua.LState, n int) {
	if e.ticks -= 1 + min(n, 1<<30)>>6; e.ticks < 0 || e.due.Load() {
		e.slow(L)
	}
}

// heap returns the bytes of objects, also those that are garbage.
func (e *Engine) heap() int64 {
	metrics.Read(e.sample)
	return int64(e.sample[0].Value.Uint64()) - e.host.Outside()
}

// sweep collects garbage from before the run if there may be much: the script would get as much
// more memory when it is collected later.
func (e *Engine) sweep() {
	if now := e.heap(); e.floor == 0 || now > e.floor+e.MaxMemory {
		runtime.GC()
		e.floor = e.heap()
	} else if now < e.floor {
		e.floor = now
	}
}

// check kills the script if the heap has grown too much, with n bytes more. It collects the
// garbage first.
func (e *Engine) check(n int) {
	e.pending, e.toCheck = 0, checkEvery
	if !e.based {
		e.sweep()
	}
	more := int64(n)
	now := e.heap()
	if !e.based || now < e.base { // less than that: garbage from before the run has been freed
		e.base, e.based = now, true
	}
	if more <= e.MaxMemory && now-e.base+more <= e.MaxMemory {
		return
	}
	if more <= e.MaxMemory {
		runtime.GC()
		if e.heap()-e.base+more <= e.MaxMemory {
			return
		}
	}
	e.kill(e.errorTable("ERR not enough memory"))
}
