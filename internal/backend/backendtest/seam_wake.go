package backendtest

import (
	"runtime"
	"sync"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamWakeBeforeWait: after Wake the next Wait returns at once.
func seamWakeBeforeWait(d *driver) {
	l := d.loop()
	for range 10 {
		var wg sync.WaitGroup
		wg.Add(1)
		go func() {
			defer wg.Done()
			l.b.Wake()
		}()
		wg.Wait()
		l.turn(backend.Forever)
	}
}

// seamWakeDuringWait: Wake makes the current Wait return, whatever is in flight.
func seamWakeDuringWait(d *driver) {
	l := d.loop()
	a, b := l.pair("tcp4")
	r := a.recv(nil)
	for range 50 {
		var wg sync.WaitGroup
		wg.Add(1)
		go func() {
			defer wg.Done()
			l.b.Wake()
		}()
		l.turn(backend.Forever)
		wg.Wait()
	}
	l.ok(b.send([]byte("x")), r)
}

// seamWakeStorm: several goroutines wake a working loop. Nothing is lost, and the loop
// can sleep afterwards. Wake still works after Close.
func seamWakeStorm(d *driver) {
	l := d.loop()
	a, b := l.pair("tcp4")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
					l.b.Wake()
					runtime.Gosched() // leave the loop some time
				}
			}
		}()
	}
	for range 50 {
		exchange(a, b)
	}
	l.close()
	close(stop)
	wg.Wait()
	l.b.Wake()
}
