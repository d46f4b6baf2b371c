package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// figures are measurements by metric; see metrics.
type figures map[string]float64

// A pair is two servers to compare under a workload. a is the base.
type pair struct {
	a, b    side
	cal     *calibrator
	turns   int                              // slices of one side in a repetition, each between two of the other
	counted bool                             // also count with perf
	swapped bool                             // b opens and is served first, as in every other repetition
	trace   func(format string, args ...any) // nil: no trace
}

// A repetition is the result of a pair of fresh processes.
type repetition struct {
	Ratio  figures // b to a: medians of the ratios of neighbours
	A, B   figures // medians
	Redone int     // slices that were repeated because the machine changed meanwhile
	others float64 // CPUs that other processes used
}

// errUnsettled means that a repetition is worthless: the machine's speed
// changed between its two ends, or other processes used the machine.
var errUnsettled = errors.New("the machine does not settle")

// repeat measures the pair, and once more if the machine did not stay in one
// state. It may fail with errUnsettled.
func (p *pair) repeat(ctx context.Context) (repetition, error) {
	if p.a.workload.memory {
		return p.memory(ctx)
	}
	const attempts = 2
	redone := 0
	for attempt := 1; ; attempt++ {
		if err := p.cal.awaitQuiet(ctx); err != nil {
			return repetition{}, err
		}
		first, err := p.cal.served(ctx)
		if err != nil {
			return repetition{}, err
		}
		r, err := p.once(ctx)
		if err != nil {
			return r, err
		}
		last, err := p.cal.served(ctx)
		if err != nil {
			return r, err
		}
		if p.trace != nil {
			p.trace("limit %.0f and %.0f, others %.2f\n", first, last, r.others)
		}
		r.Redone += redone
		switch {
		case apart(first, last) <= sameLimit && r.others <= quiet:
			return r, nil
		case attempt == attempts:
			return r, errUnsettled
		}
		redone = p.turns + r.Redone
	}
}

// once measures a pair of fresh processes.
func (p *pair) once(ctx context.Context) (r repetition, err error) {
	defer p.a.close()
	defer p.b.close()
	var most float64 // messages a second of the slower one
	outer, inner := p.order()
	for _, s := range []*side{outer, inner} {
		if err := s.open(ctx); err != nil {
			return r, err
		}
		if s.workload.once {
			continue
		}
		if s.workload.streams() {
			if err := s.touch(); err != nil { // the server may not have accepted all connections yet
				return r, err
			}
		}
		x, err := s.slice(ctx, p.a.workload.slice/2, 0) // for the rate only
		if err != nil {
			return r, err
		}
		if rate := x.Messages / x.Seconds; most == 0 || rate < most {
			most = rate
		}
	}
	began := time.Now()
	before, err := p.othersTime()
	if err != nil {
		return r, err
	}
	if err := p.alternate(ctx, &r, most*p.a.workload.share); err != nil {
		return r, err
	}
	after, err := p.othersTime()
	if err != nil {
		return r, err
	}
	r.others = float64(after-before) / float64(time.Since(began))
	return r, p.counts(ctx, &r)
}

// order returns the side that comes first, around each slice of the other, and
// the other one. The next repetition has the other order, which cancels what
// little an order favours.
func (p *pair) order() (outer, inner *side) {
	if p.swapped {
		return &p.b, &p.a
	}
	return &p.a, &p.b
}

// alternate gives the sides slices in turn, a, b, a, b, a. So each slice
// follows one of the other side, which has used the caches. A slice of the
// inner side is compared with the mean of its two neighbours, so a machine that
// slows down steadily does not matter.
func (p *pair) alternate(ctx context.Context, r *repetition, rate float64) error {
	outer, inner := p.order()
	ratios, values := map[string][]float64{}, map[*side]map[string][]float64{&p.a: {}, &p.b: {}}
	before, err := p.timed(ctx, outer, rate)
	if err != nil {
		return err
	}
	for turn := 0; turn < p.turns; {
		of, err := p.timed(ctx, inner, rate)
		if err != nil {
			return err
		}
		after, err := p.timed(ctx, outer, rate)
		if err != nil {
			return err
		}
		neighbours := [2]timed{before, after}
		before = after
		if same := p.same(neighbours, of); !same && r.Redone < p.turns {
			r.Redone++
			continue
		}
		turn++
		for m, in := range of.figures {
			for _, out := range beside(m, neighbours) {
				values[inner][m], values[outer][m] = append(values[inner][m], in), append(values[outer][m], out)
				a, b := out, in
				if inner == &p.a {
					a, b = in, out
				}
				if a > 0 && b > 0 { // a slice may lack a figure
					ratios[m] = append(ratios[m], b/a)
				}
			}
		}
	}
	r.Ratio, r.A, r.B = medians(ratios), medians(values[&p.a]), medians(values[&p.b])
	return nil
}

// beside returns what a figure of the slice between two neighbours is compared with: their mean. High
// percentiles of latency differ by factors from slice to slice, with few large ones, and the mean of
// two of these is larger than one of them is as a rule: the outer side would look worse. So they are
// compared with each neighbour by itself.
func beside(figure string, neighbours [2]timed) []float64 {
	first, second := neighbours[0].figures[figure], neighbours[1].figures[figure]
	if strings.HasPrefix(figure, "p9") {
		return []float64{first, second}
	}
	return []float64{math.Sqrt(first * second)}
}

// timed is the result of a slice, and the duration of the fixed work before and
// after it.
type timed struct {
	figures
	work [2]time.Duration
}

func (p *pair) timed(ctx context.Context, s *side, rate float64) (t timed, err error) {
	if rate > 0 {
		// A machine that pauses regularly must not always pause in the slices of the same side: its
		// pauses are the high percentiles.
		time.Sleep(rand.N(s.workload.slice))
	}
	if t.work[0], err = p.cal.work(); err != nil {
		return t, err
	}
	x, err := s.slice(ctx, s.workload.slice, rate)
	if err != nil {
		return t, err
	}
	t.figures = x.figures()
	t.work[1], err = p.cal.work()
	return t, err
}

// same reports whether the machine's speed stayed the same.
func (p *pair) same(outer [2]timed, inner timed) bool {
	work := slices.Concat(outer[0].work[:], inner.work[:], outer[1].work[:])
	same := apart(float64(slices.Max(work)), float64(slices.Min(work))) <= sameLoop
	if p.trace != nil {
		p.trace("%v %v; rate %.0f %.0f %.0f, cpu %.3f %.3f %.3f\n", work, same,
			outer[0].figures["rate"], inner.figures["rate"], outer[1].figures["rate"], outer[0].figures["cpu"], inner.figures["cpu"], outer[1].figures["cpu"])
	}
	return same
}

// othersTime returns the CPU time of all processes but the pair's. For
// workloads whose processes end with each slice it cannot tell these from
// others, and returns 0.
func (p *pair) othersTime() (time.Duration, error) {
	if p.a.workload.once {
		return 0, nil
	}
	ours := []*process{p.a.process, p.b.process}
	for _, s := range []*side{&p.a, &p.b} {
		if s.backend != nil {
			ours = append(ours, s.backend)
		}
	}
	return othersTime(append(append(ours, p.a.clients...), p.b.clients...)...)
}

// counts adds the figures that are counted rather than timed.
func (p *pair) counts(ctx context.Context, r *repetition) error {
	if !p.counted || p.a.workload.once {
		return nil
	}
	for side, f := range map[*side]figures{&p.a: r.A, &p.b: r.B} {
		counted, err := side.count(ctx)
		if err != nil {
			return err
		}
		maps.Copy(f, counted)
	}
	return nil
}

func (p *pair) memory(ctx context.Context) (r repetition, err error) {
	r.A, r.B = figures{}, figures{}
	for _, x := range []struct {
		side *side
		f    figures
	}{{&p.a, r.A}, {&p.b, r.B}} {
		idle, echoed, err := x.side.memory(ctx)
		x.side.close()
		if err != nil {
			return r, err
		}
		x.f["idle"], x.f["echoed"] = math.Round(idle), math.Round(echoed)
	}
	return r, nil
}

// figures returns a sample's figures, per message where that makes sense.
func (x *sample) figures() figures {
	const us = 1e6
	f := figures{"rate": x.Messages / x.Seconds, "cpu": x.ServerCPU * us / x.Messages}
	if x.CPU > 0 {
		f["client"] = x.CPU / x.Seconds
	}
	if x.allocs > 0 {
		f["allocs"] = x.allocs / x.Messages
	}
	if len(x.Latency) > 0 {
		h := hdrhistogram.New(1, int64(time.Minute), 3)
		for _, l := range x.Latency {
			h.RecordValues(min(l[0], int64(time.Minute)), l[1])
		}
		for name, q := range map[string]float64{"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9} {
			f[name] = float64(h.ValueAtPercentile(q)) / 1e3
		}
	}
	return f
}

func medians(values map[string][]float64) figures {
	f := figures{}
	for m, v := range values {
		f[m] = median(v)
	}
	return f
}

func (p *pair) String() string {
	return fmt.Sprintf("%s %s to %s, %s", p.a.workload.Name, p.b.server.name, p.a.server.name, p.a.mode.name)
}
