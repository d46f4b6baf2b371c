package cookbook_test

import "github.com/rondo-go/rondo"

// visits has a counter for each loop, which needs no lock.
var visits = rondo.LoopLocal[*int]{New: func(*rondo.Loop) *int { return new(int) }}

func openVisit(c *rondo.Conn) rondo.Handler {
	*visits.Get(c.Loop())++
	return rondo.HandlerFunc((*rondo.Conn).Write)
}

// totalVisits asks one loop after the other. It waits, so it must not be called on a loop.
func totalVisits(e *rondo.Engine) (total int) {
	for l := range e.Loops() {
		one := make(chan int, 1)
		if l.Post(func() { one <- *visits.Get(l) }) == nil {
			total += <-one
		}
	}
	return total
}
