package watchdog

import "strings"

// advices are what to do instead, by what a goroutine is doing, in callbacks and in
// coroutines.
var advices = []struct{ state, callback, coroutine string }{
	{"sleep",
		"use a timer (Loop.AfterFunc), or a coroutine with co.Sleep",
		"use co.Sleep, which lets the loop go on"},
	{"chan ",
		"wait on another goroutine, which answers through a Ref or Loop.Post, or in package workers",
		"wait in coro.Await; coroutines of one loop can use a coro.Cond"},
	{"select",
		"wait on another goroutine, which answers through a Ref or Loop.Post, or in package workers",
		"wait in coro.Await; coroutines of one loop can use a coro.Cond"},
	{"sync.Mutex", lockAdvice, lockAdvice + ", or lock it in coro.Await"},
	{"sync.RWMutex", lockAdvice, lockAdvice + ", or lock it in coro.Await"},
	{"sync.", // Cond, WaitGroup
		"wait on another goroutine, which answers through a Ref or Loop.Post, or in package workers",
		"wait in coro.Await; to wait for coroutines use co.Wait or a coro.Cond"},
	{"semacquire", lockAdvice, lockAdvice + ", or lock it in coro.Await"},
	{"IO wait",
		"let the loop serve the connection (Loop.Dial, Loop.Attach), or wait in package workers",
		"use co.Dial, whose connections let the loop go on, or wait in coro.Await"},
	{"syscall",
		"call the system in package workers, or on another goroutine; Conn.SendFile sends files",
		"call the system in coro.Await, or in package workers"},
}

const lockAdvice = "whoever holds the lock must do so only for moments; a value that only one loop uses (LoopLocal) needs none"

// Without a better one.
const (
	garbageAdvice   = "Go's collector keeps it: allocate less, or let garbage grow (GOGC, GOMEMLIMIT); or other programs have all processors"
	callbackAdvice  = "let package workers compute, or go on in a later turn by Loop.Post; or other goroutines have all processors"
	coroutineAdvice = "compute in coro.Await, or let the others run by co.Sleep(0); or other goroutines have all processors"
	unknownAdvice   = "move what takes long to package workers, or to coro.Await"
)

// advice returns what to do instead.
func (t *trace) advice() string {
	if t.state == "" {
		return unknownAdvice
	}
	if t.collects() {
		return garbageAdvice
	}
	for _, a := range advices {
		if strings.HasPrefix(t.state, a.state) {
			if t.coroutine {
				return a.coroutine
			}
			return a.callback
		}
	}
	if t.coroutine {
		return coroutineAdvice
	}
	return callbackAdvice
}
