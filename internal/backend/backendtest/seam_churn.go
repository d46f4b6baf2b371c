package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// seamChurn: connections come and go, their ends close in every order, and slots are
// reused.
func seamChurn(d *driver, network string) {
	l := d.loop()
	var open [][2]conn
	highest := uint32(0)
	for i := range scale(400) {
		a, b := l.pair(network)
		exchange(a, b)
		highest = max(highest, index(a), index(b))
		open = append(open, [2]conn{a, b})
		if len(open) < 8 {
			continue
		}
		old := open[i*5%len(open)]
		open[i*5%len(open)] = open[len(open)-1]
		open = open[:len(open)-1]
		switch i % 4 {
		case 0:
			l.ok(old[0].close(), old[1].close())
		case 1:
			r := old[1].recv(nil)
			l.ok(old[0].close())
			l.wait(r)
			l.ok(old[1].close())
		case 2:
			l.ok(old[0].reset())
			l.ok(old[1].close())
		case 3:
			r := old[0].recv(nil)
			l.ok(old[0].close())
			l.closedBy(r)
			l.ok(old[1].reset())
		}
	}
	if highest > 100 {
		l.Fatalf("slot %d is in use where never more than 20 Files were open", highest)
	}
	for _, c := range open {
		exchange(c[0], c[1])
	}
}

// index returns the index of c's slot in its table. A backend may have two tables.
func index(c conn) uint32 { return c.file.Slot() &^ backend.SecondTable }
