package admin

import (
	"time"

	"github.com/rondo-go/rondo/loopstats"
)

// A measureView is a histogram of package loopstats: of the time since the last event, and in /vars
// of all that was measured. Times are in seconds.
type measureView struct {
	Name  string   `json:"name"`
	Count uint64   `json:"count"`
	Sum   float64  `json:"sum"`
	P50   float64  `json:"p50"`
	P99   float64  `json:"p99"`
	P999  float64  `json:"p999"`
	Max   float64  `json:"max"`
	Bars  []uint64 `json:"bars"` // how many are in each of the ranges between ends
}

// ends divide numbers into ranges: the first one ends at 2^first, and each other one is 2^step
// times as long. unit is how many of the Histogram's units are one of the page's.
type ends struct {
	first, step int
	unit        float64
}

// ranges is how many ranges there are. The last one has no end. page.js knows the ends.
const ranges = 12

var (
	times   = ends{10, 2, float64(time.Second)} // 1, 4, 16, 66, 262 µs, 1, 4, 17, 67, 268 ms, 1.1 s
	numbers = ends{1, 1, 1}                     // 2, 4, 8, and so on up to 2048
)

// measures are the histograms of a loop.
var measures = []struct {
	name string
	of   func(*loopstats.Loop) loopstats.Histogram
	ends ends
}{
	{"turns", func(l *loopstats.Loop) loopstats.Histogram { return l.Turn }, times},
	{"longest callback of a turn", func(l *loopstats.Loop) loopstats.Histogram { return l.Callback }, times},
	{"events of a wait", func(l *loopstats.Loop) loopstats.Histogram { return l.Events }, numbers},
	{"delay of posts", func(l *loopstats.Loop) loopstats.Histogram { return l.PostDelay }, times},
	{"delay of timers", func(l *loopstats.Loop) loopstats.Histogram { return l.TimerDelay }, times},
}

// viewMeasures returns what was measured since before, which may be nil. It is empty if nothing
// ever was.
func viewMeasures(now, before *loopstats.Loop) []measureView {
	all := []measureView{}
	if now.Turn.Count() == 0 {
		return all
	}
	for _, m := range measures {
		h := m.of(now)
		if before != nil {
			h = h.Since(m.of(before))
		}
		v := measureView{Name: m.name, Count: h.Count(), Bars: make([]uint64, ranges)}
		in := func(n int64) float64 { return float64(n) / m.ends.unit }
		v.Sum, v.P50, v.P99, v.P999, v.Max = in(h.Sum()), in(h.Quantile(0.5)), in(h.Quantile(0.99)), in(h.Quantile(0.999)), in(h.Max())
		less := uint64(0)
		for i := range v.Bars {
			below := h.Count()
			if i < ranges-1 {
				below = h.Below(1 << (m.ends.first + i*m.ends.step))
			}
			v.Bars[i] = below - less
			less = below
		}
		all = append(all, v)
	}
	return all
}

// measuring makes the loops measure, once the engine has started, until stop is called. The page
// does not start the engine.
type measuring struct{ end func() }

func (m *measuring) begin(p *Page) {
	if m.end != nil || p.engine.BackendName() == "" {
		return
	}
	if end, err := loopstats.Measure(p.engine); err == nil {
		m.end = end
	}
}

func (m *measuring) stop() {
	if m.end != nil {
		m.end()
	}
}
