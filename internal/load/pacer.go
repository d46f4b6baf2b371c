package load

import (
	"time"

	"github.com/rondo-go/rondo"
)

// A schedule says when requests of an open loop are due: one after the other in
// even intervals, of the connections in turn.
type schedule struct {
	start    time.Duration
	interval float64 // ns, between requests
	conns    int
}

// due is the time of request k of connection id, both from 0.
func (s *schedule) due(id int, k int64) time.Duration {
	return s.start + time.Duration(float64(k*int64(s.conns)+int64(id))*s.interval)
}

// A pacer sends the requests of a worker when they are due, or as soon as their
// connections have room for them. What waits for room is not kept anywhere but
// in a number, since a request's time follows from its place in the schedule.
type pacer struct {
	schedule
	worker *worker
	timer  *rondo.Timer
	round  int64 // of the next request: which of its connection
	turn   int   // and which of the worker's connections
	owed   int64 // requests due and not sent, of all connections
	warm   bool  // the warm-up is over
}

// granularity is the longest that a sleep may be too long.
const granularity = time.Millisecond

func (p *pacer) begin(w *worker, start time.Duration) {
	p.schedule = schedule{start, float64(time.Second) / w.run.Rate, w.run.Conns}
	p.worker = w
	p.timer = w.loop.AfterFunc(0, p.pace)
}

// pace sends what is due, and sleeps until the next is.
func (p *pacer) pace() {
	w := p.worker
	now := w.now()
	for !w.over {
		c := w.conns[p.turn]
		due := p.due(c.id, p.round)
		if due >= w.until {
			break // end will be called
		}
		if due > now {
			p.sleep(due - now)
			break
		}
		if !p.warm && due >= w.from {
			p.warm = true
			p.forget()
		}
		if p.turn++; p.turn == len(w.conns) {
			p.turn = 0
			p.round++
		}
		p.owe(c, now)
	}
	w.settle()
}

func (p *pacer) sleep(d time.Duration) {
	if p.worker.run.Spin {
		// Not 0: this turn's timers would go round in it.
		d = max(1, d-granularity)
	}
	p.timer.Reset(d)
}

// owe takes the next request of a connection, which is due.
func (p *pacer) owe(c *conn, now time.Duration) {
	w := p.worker
	if p.warm {
		if w.run.Count > 0 {
			w.left--
			w.over = w.left == 0
		}
		if c.inflight == w.run.Pipeline {
			w.tally.behind.Waited++
		}
	}
	c.owed++
	p.owed++
	p.send(c, now)
}

// serve sends what a connection owes, after replies made room.
func (p *pacer) serve(c *conn, now time.Duration) {
	if c.owed == 0 {
		return
	}
	if p.warm {
		b := &p.worker.tally.behind
		b.Longest = max(b.Longest, now-p.due(c.id, c.place))
	}
	p.send(c, now)
}

func (p *pacer) send(c *conn, now time.Duration) {
	n := min(c.owed, p.worker.run.Pipeline-c.inflight)
	if n <= 0 {
		return
	}
	for range n {
		c.starts.add(1, p.due(c.id, c.place))
		c.place++
	}
	c.owed -= n
	p.owed -= int64(n)
	c.send(n, now)
}

// drop gives up what is due and not sent, at the end.
func (p *pacer) drop() {
	if p.owed == 0 {
		return
	}
	b := &p.worker.tally.behind
	for _, c := range p.worker.conns {
		if c.owed > 0 && p.warm {
			b.Unsent += int64(c.owed)
			b.Longest = max(b.Longest, p.worker.until-p.due(c.id, c.place))
		}
	}
	p.forget()
}

// forget forgets what is due and not sent. It is called when the warm-up ends
// too: what a server did not take then is not measured.
func (p *pacer) forget() {
	for _, c := range p.worker.conns {
		c.place += int64(c.owed)
		c.owed = 0
	}
	p.owed = 0
}
