package load

import "time"

// Progress is how a run stands.
type Progress struct {
	Phase   Phase
	Ready   int           // connections that are ready for the load
	Elapsed time.Duration // since the warm-up ended; before: 0
	Rate    float64       // requests answered a second, since the last Progress
	P99     time.Duration // of their latencies; 0: none was measured
}

// A Phase is a part of a run.
type Phase uint8

const (
	Connecting Phase = iota // and preparing
	WarmingUp
	Measuring
)

// A collector takes from the workers what they have measured so far. A worker
// swaps its tally for an empty one, and goes on: adding it up is the collector's
// work, on the goroutine of Run.
type collector struct {
	run    *run
	total  *tally // what was collected
	spare  []*tally
	states chan state
	last   time.Time // of the last progress
}

// state is what a worker tells the collector.
type state struct {
	tally *tally
	ready int
	began bool
	from  time.Duration
	now   time.Duration
}

// report adds up everything, once the loops have ended.
func (c *collector) report(interrupted bool) *Report {
	for range len(c.states) { // what progress had asked for when the run ended
		s := <-c.states
		c.total.add(s.tally, s.from)
	}
	for _, w := range c.run.workers {
		c.total.add(w.tally, w.from)
	}
	return c.total.report(interrupted)
}

func newCollector(r *run) *collector {
	c := &collector{run: r, total: newTally(), last: time.Now(), states: make(chan state, len(r.workers))}
	for range r.workers {
		c.spare = append(c.spare, newTally())
	}
	return c
}

// progress collects. ok is false if the run ends meanwhile.
func (c *collector) progress() (p Progress, ok bool) {
	for i, w := range c.run.workers {
		empty := c.spare[i]
		w.loop.Post(func() {
			c.states <- state{w.tally, w.prepared, w.began, w.from, w.now()}
			w.tally = empty
		})
	}
	sum := newTally()
	p.Phase = Measuring
	for i := range c.run.workers {
		select {
		case s := <-c.states:
			p.Ready += s.ready
			switch {
			case !s.began:
				p.Phase = Connecting
			case s.now < s.from:
				p.Phase = min(p.Phase, WarmingUp)
			default:
				p.Elapsed = max(p.Elapsed, s.now-s.from)
			}
			sum.add(s.tally, s.from)
			c.total.add(s.tally, s.from)
			s.tally.reset()
			c.spare[i] = s.tally
		case <-c.run.over:
			return p, false
		}
	}
	now := time.Now()
	if d := now.Sub(c.last); d > 0 {
		p.Rate = float64(sum.answered) / d.Seconds()
	}
	c.last = now
	p.P99 = time.Duration(sum.latency.ValueAtPercentile(99))
	return p, true
}
