package backendtest

import (
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamWaitDeadline: without completions Wait returns at its deadline. It must not be
// early, except for an occasional signal, nor absurdly late. A backend with a coarser
// wait rounds up: rounding down would spin.
func seamWaitDeadline(d *driver) {
	l := d.loop()
	l.listen("tcp4", d.address("tcp4"), backend.Socket{})
	l.turnFor(3)
	for _, wait := range []time.Duration{0, -time.Second, time.Microsecond, time.Millisecond, 15 * time.Millisecond, 1500 * time.Microsecond} {
		until := l.b.Now().Add(wait)
		returns := 0
		for returns == 0 || l.b.Now() < until {
			l.turn(until)
			returns++
		}
		if late := l.b.Now() - until; returns > 10 || late > backend.Time(seamPatience) {
			l.Errorf("Wait for %v returned %d times, at last %v after its deadline", wait, returns, time.Duration(late))
		}
	}
}

// seamWaitReady: if nothing is in flight, Wait must report that nothing completed.
func seamWaitReady(d *driver) {
	l := d.loop()
	for _, wait := range []time.Duration{0, time.Millisecond} {
		ready, err := l.b.Wait(l.b.Now().Add(wait))
		if ready || err != nil {
			l.Fatalf("Wait on a backend without Ops: ready %v, error %v", ready, err)
		}
	}
}
