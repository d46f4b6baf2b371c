package backendtest

import (
	"os"
	"runtime"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamBackendClose: Close with Ops of every kind in flight releases all descriptors and
// goroutines. Afterwards the backend does not touch the Ops' memory.
func seamBackendClose(d *driver, network string) {
	warm := d.loop() // opens what the process opens only once
	exchange(warm.pair(network))
	before := count()
	for range 3 {
		seamAbandon(newDriver(d.TB, d.open), warm, network)
	}
	// A goroutine disappears a moment after its last statement.
	limit := time.Now().Add(seamPatience)
	for count().exceeds(before) {
		if time.Now().After(limit) {
			d.Fatalf("resources after Close: %+v, before: %+v", count(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

// seamAbandon closes a backend with Ops of every kind in flight, and with files and
// connections in every state. The clients of its listener are on another loop.
func seamAbandon(d *driver, clients *loop, network string) {
	l := d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	var own [][]byte
	for i := range 4 {
		a, b := l.pairWith(network, tight)
		buf := make([]byte, 1000)
		a.recv(buf)
		b.recv(nil)
		if i%2 == 0 {
			out := make([]byte, 4*tightMax)
			b.send(out)
			b.shutdown()
			own = append(own, out)
		}
		own = append(own, buf)
		l.turnFor(1)
		if i == 3 {
			a.close()
			b.reset()
		}
	}
	for range 3 {
		l.dial(network, ln.addr, backend.Socket{})
	}
	var ends []*call
	for range 3 { // may be accepted, but is not taken
		c, connected := clients.dial(network, ln.addr, backend.Socket{})
		clients.ok(connected)
		clients.turnFor(2)
		ends = append(ends, c.close())
	}
	l.close()
	clients.ok(ends...)
	for _, buf := range own {
		clear(buf) // race builds report anybody who still uses it
	}
}

// resources are the things that must not leak.
type resources struct{ descriptors, goroutines int }

// count counts the process's resources, descriptors only if the system lists them.
func count() resources {
	var r resources
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if entries, err := os.ReadDir(dir); err == nil {
			r.descriptors = len(entries)
			break
		}
	}
	r.goroutines = runtime.NumGoroutine()
	return r
}

func (r resources) exceeds(o resources) bool {
	return r.descriptors > o.descriptors || r.goroutines > o.goroutines
}
