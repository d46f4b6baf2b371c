package httpd

import "net/http"

// This file counts the calls of a response's methods. A handler may leave goroutines behind that go
// on calling them: no call may meet the end of the answer, or use its memory afterwards.

// returned is added to exchange.calls when the handler has returned, or panicked.
const returned = 1 << 30

// enter begins a call that gathers the answer, which exit ends. It fails when the handler has
// returned: then the memory may be another answer's.
func (w *response) enter() error {
	if w.x.hijacked.Load() {
		return http.ErrHijacked
	}
	if w.x.calls.Load() >= returned { // late calls must not hold up endCalls
		return errLate
	}
	if w.x.calls.Add(1) >= returned {
		w.x.exit()
		return errLate
	}
	return nil
}

func (x *exchange) exit() {
	if x.calls.Add(-1) == returned {
		x.outMu.Lock()
		x.wake()
		x.outMu.Unlock()
	}
}

// endCalls makes later calls fail, and waits until those have ended that other goroutines have
// begun. What ends a call of the handler ends them too, such as a limit of time or the end of the
// connection, and a panic does. On the loop nobody else may call.
func (x *exchange) endCalls(panicked bool) {
	if x.calls.Add(returned) == returned || x.onLoop {
		return
	}
	if panicked {
		x.failOutput(errLate)
		x.in.fail(errLate) // then a Write that reads the body sends no head
	}
	x.outMu.Lock()
	defer x.outMu.Unlock()
	for x.calls.Load() != returned {
		x.wait()
	}
}
