package admin

import (
	"runtime/metrics"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/loopstats"
)

// An update is what the page shows at one moment, besides connections and slow callbacks. It is
// /vars, and the data of an event. The page makes rates of two of them.
type update struct {
	Name     string          `json:"name"`
	At       time.Time       `json:"at"`
	Backend  string          `json:"backend"`
	Process  process         `json:"process"`
	Total    rondo.LoopStats `json:"total"`
	Loops    []loopView      `json:"loops"`
	Slow     uint64          `json:"slow"`        // callbacks that blocked a loop so far
	News     uint64          `json:"slowReports"` // of which /slow tells, so far
	Pages    int             `json:"pages"`       // that are open
	Sections []sectionView   `json:"sections"`
}

// A loopView is a loop. What else is known of each loop has its place here, and its column in
// the table of page.js.
type loopView struct {
	ID      int             `json:"id"`
	Delay   float64         `json:"delay"`   // seconds that a posted function has waited
	Blocked bool            `json:"blocked"` // and waits on
	Ended   bool            `json:"ended"`
	Stats   rondo.LoopStats `json:"stats"`
	Buffers int             `json:"buffers"`   // bytes
	TLS     uint64          `json:"tls"`       // handshakes that were done
	NoTLS   uint64          `json:"tlsFailed"` // and that failed
	// Measures are the loop's histograms. Loops measure while a page is open.
	Measures []measureView `json:"measures"`
}

// A process is this program, as Go's runtime tells without stopping it.
type process struct {
	Goroutines uint64 `json:"goroutines"`
	Processors uint64 `json:"processors"` // GOMAXPROCS
	Heap       uint64 `json:"heap"`       // bytes of objects
	Memory     uint64 `json:"memory"`     // bytes that Go has from the system
	Cycles     uint64 `json:"gcCycles"`
}

func readProcess() process {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/sched/gomaxprocs:threads"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return samples[i].Value.Uint64()
	}
	return process{value(0), value(1), value(2), value(3), value(4)}
}

// A probe is a function on its way to a loop.
type probe struct {
	loop  int
	sent  time.Time
	took  time.Duration // valid once done is closed
	done  chan struct{}
	ended bool // the loop has ended
}

func newProbe(l *rondo.Loop) *probe {
	p := &probe{loop: l.ID(), sent: time.Now(), done: make(chan struct{})}
	p.ended = l.Post(func() {
		p.took = time.Since(p.sent)
		close(p.done)
	}) != nil
	return p
}

func (p *probe) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return p.ended
	}
}

// probeTime is how long an update waits for the probes of all loops.
const probeTime = 50 * time.Millisecond

// probeLoops posts a function to each loop, except to those that have not run the last one.
func (p *Page) probeLoops() []*probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	var probes []*probe
	i := 0
	for l := range p.engine.Loops() {
		if i < len(p.probes) && !p.probes[i].isDone() {
			probes = append(probes, p.probes[i])
		} else {
			probes = append(probes, newProbe(l))
		}
		i++
	}
	p.probes = probes
	return probes[:len(probes):len(probes)]
}

// update returns what there is to see now. Measures are those since before, which may be nil.
func (p *Page) update(before []loopstats.Loop) (u update, now []loopstats.Loop) {
	probes := p.probeLoops()
	u = update{Name: p.name, Backend: p.engine.BackendName(), Process: readProcess(), Sections: p.readSections(), Pages: p.feed.size()}
	u.Slow, u.News = p.slow.counts()
	now = loopstats.Of(p.engine)
	stats := p.engine.Stats()
	u.At, u.Total = time.Now(), stats.LoopStats
	limit := time.NewTimer(probeTime)
	defer limit.Stop()
	late := false
	u.Loops = make([]loopView, 0, len(probes))
	for i, pr := range probes {
		v := loopView{ID: pr.loop, Ended: pr.ended, Stats: stats.Loops[i], Measures: []measureView{}}
		if i < len(now) {
			var earlier *loopstats.Loop
			if i < len(before) {
				earlier = &before[i]
			}
			v.Measures = viewMeasures(&now[i], earlier)
			v.Buffers, v.TLS = now[i].BufferBytes, now[i].Handshakes
			for _, n := range now[i].FailedHandshakes {
				v.NoTLS += n
			}
		}
		for !pr.isDone() && !late {
			select {
			case <-pr.done:
			case <-limit.C:
				late = true
			}
		}
		switch {
		case pr.ended:
		case pr.isDone():
			v.Delay = pr.took.Seconds()
		default:
			v.Delay, v.Blocked = time.Since(pr.sent).Seconds(), true
		}
		u.Loops = append(u.Loops, v)
	}
	return u, now
}
