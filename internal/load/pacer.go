package load

import (
	"time"

	"github.com/rondo-go/rondo"
)

// A schedule gives the times at which the requests of an open loop are due: at
// even intervals, on each connection in turn.
type schedule struct {
	start    time.Duration
	interval float64 // ns, between requests
	conns    int
}

// due returns the time of request k of connection id, both counted from 0.
func (s *schedule) due(id int, k int64) time.Duration {
	return s.start + time.Duration(float64(k*int64(s.conns)+int64(id))*s.interval)
}

// A pacer sends the requests of a worker when they are due, or as soon as their
// connections have room. It stores only the number of requests that wait for
// room, since a request's time follows from its place in the schedule.
type pacer struct {
	schedule
	worker *worker
	timer  *rondo.Timer
	round  int64 // of the next request: its number on its connection
	turn   int   // of the next request: the index of its connection
	owed   int64 // requests that are due but not sent, on all connections
	warm   bool  // the warm-up is over
}

// granularity is the most by which a sleep may be too long.
const granularity = time.Millisecond

func (p *pacer) begin(w *worker, start time.Duration) {
	p.schedule = schedule{start, float64(time.Second) / w.run.Rate, w.run.Conns}
	p.worker = w
	p.timer = w.loop.AfterFunc(0, p.pace)
}

// pace sends the requests that are due, and sleeps until the next one.
func (p *pacer) pace() {
	w := p.worker
	now := w.now()
	for !w.over {
		c := w.conns[p.turn]
		due := p.due(c.id, p.round)
		if due >= w.until {
			break // the timer of Duration calls end
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
		// Not 0: the timer would fire again in this turn.
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

// serve sends a connection's due requests after replies have made room.
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

// drop gives up the unsent requests at the end.
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

// forget drops the requests that are due but not sent. It is also called when
// the warm-up ends: requests that the server did not take before are not
// measured.
func (p *pacer) forget() {
	for _, c := range p.worker.conns {
		c.place += int64(c.owed)
		c.owed = 0
	}
	p.owed = 0
}
