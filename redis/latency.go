package redis

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// latency records what kept the server busy for longer than a limit.
type latency struct {
	limit  time.Duration // negative: the monitor is off
	events map[string]*latencyEvent
}

// The events that the monitor knows, by Redis's names.
const (
	eventCommand     = "command"
	eventFastCommand = "fast-command"
	eventUnblocking  = "command-unblocking"
	eventExpiry      = "expire-cycle"
	eventEviction    = "eviction-cycle"
)

// latencySamples is the number of samples kept of an event.
const latencySamples = 160

// latencyEvent holds the latest samples of an event, at most one a second.
type latencyEvent struct {
	samples []latencySample // the oldest first
	most    int64           // milliseconds: the longest that has been
}

type latencySample struct {
	at   int64 // seconds since 1970
	took int64 // milliseconds
}

// add records that something took d, unless that is below the limit. now is in
// milliseconds since 1970.
func (l *latency) add(event string, d time.Duration, now int64) {
	if l.limit < 0 || d < l.limit {
		return
	}
	e := l.events[event]
	if e == nil {
		e = new(latencyEvent)
		if l.events == nil {
			l.events = make(map[string]*latencyEvent)
		}
		l.events[event] = e
	}
	took, at := d.Milliseconds(), now/1000
	e.most = max(e.most, took)
	if n := len(e.samples); n > 0 && e.samples[n-1].at == at {
		e.samples[n-1].took = max(e.samples[n-1].took, took)
		return
	} else if n == latencySamples {
		e.samples = slices.Delete(e.samples, 0, 1)
	}
	e.samples = append(e.samples, latencySample{at, took})
}

// measured calls f, and records an event if f takes long.
func (s *Server) measured(event string, f func()) {
	if s.latency.limit < 0 {
		f()
		return
	}
	start := time.Now()
	f()
	s.latency.add(event, time.Since(start), s.space.now)
}

// reset deletes an event, and reports whether it was there.
func (l *latency) reset(event string) bool {
	if l.events[event] == nil {
		return false
	}
	delete(l.events, event)
	return true
}

func (l *latency) names() []string { return slices.Sorted(maps.Keys(l.events)) }

// low returns the shortest and the longest of the samples.
func (e *latencyEvent) low() (low, high int64) {
	low = math.MaxInt64
	for _, x := range e.samples {
		low, high = min(low, x.took), max(high, x.took)
	}
	return low, high
}

const (
	graphColumns = 80
	graphRows    = 4
)

// graph draws the samples, with a column each and their age below.
func (e *latencyEvent) graph(name string, now int64) string {
	low, high := e.low()
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s - high %d ms, low %d ms (all time high %d ms)\n", name, high, low, e.most)
	out.Write(bytes.Repeat([]byte{'-'}, graphColumns))
	out.WriteByte('\n')
	for from := 0; from < len(e.samples); from += graphColumns {
		if from > 0 {
			out.WriteByte('\n')
		}
		part := e.samples[from:min(from+graphColumns, len(e.samples))]
		drawBars(&out, part, low, high)
		drawLabels(&out, part, now)
	}
	return out.String()
}

// drawBars draws a bar for each sample. A row of text has three heights.
func drawBars(out *bytes.Buffer, samples []latencySample, low, high int64) {
	const heights = "_o#"
	const steps = graphRows * len(heights)
	for row := graphRows - 1; row >= 0; row-- {
		for _, x := range samples {
			step := min(int(float64(x.took-low)*float64(steps)/float64(max(high-low, 1))), steps-1)
			switch h := step - row*len(heights); {
			case h < 0:
				out.WriteByte(' ')
			case h < len(heights):
				out.WriteByte(heights[h])
			default:
				out.WriteByte('|')
			}
		}
		out.WriteByte('\n')
	}
}

// drawLabels writes the age of each sample from top to bottom, below a blank row.
func drawLabels(out *bytes.Buffer, samples []latencySample, now int64) {
	labels, longest := make([]string, len(samples)), 0
	for i, x := range samples {
		labels[i] = age(now - x.at)
		longest = max(longest, len(labels[i]))
	}
	for row := -1; row < longest; row++ {
		for _, l := range labels {
			if row >= 0 && row < len(l) {
				out.WriteByte(l[row])
			} else {
				out.WriteByte(' ')
			}
		}
		out.WriteByte('\n')
	}
}

// age writes a number of seconds in the largest unit that it fills.
func age(seconds int64) string {
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}} {
		if seconds >= unit.seconds {
			return fmt.Sprint(seconds/unit.seconds, unit.name)
		}
	}
	return fmt.Sprint(seconds, "s")
}
