package load

import "time"

// Progress is the state of a run.
type Progress struct {
	Phase   Phase
	Ready   int           // connections that are ready for the load
	Elapsed time.Duration // since the warm-up ended; 0 before
	Rate    float64       // requests answered a second, since the last Progress
	P99     time.Duration // of their latencies; 0 if none was measured
}

// A Phase is a part of a run.
type Phase uint8

const (
	Connecting Phase = iota // and preparing connections
	WarmingUp
	Measuring
)

// A collector takes the workers' measurements while they run. A worker swaps
// its tally for an empty one and continues. The collector adds the tallies up
// on the goroutine of Run.
type collector struct {
	run    *run
	total  *tally // everything collected so far
	spare  []*tally
	states chan state
	last   time.Time // of the last progress
}

// state is a worker's report to the collector.
type state struct {
	tally *tally
	ready int
	began bool
	from  time.Duration
	now   time.Duration
}

// report adds everything up after the loops have ended.
func (c *collector) report(interrupted bool) *Report {
	for range len(c.states) { // reports that progress asked for before the run ended
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
