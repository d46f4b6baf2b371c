package redis

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longestSample is the longest duration that a histogram tells from longer ones.
const longestSample = int64(time.Second)

// lastValue is the last value of the histogram's last counter.
const lastValue = 1<<30 - 1

// observe records how long a call has taken. It stands for the calls before it
// that were not measured. Call it before the call is counted.
func (n *count) observe(d time.Duration) {
	n.clock(d)
	if n.histogram == nil {
		n.histogram = hdrhistogram.New(1, longestSample, 2)
	}
	ns := d.Microseconds() * 1000 // Redis measures whole microseconds
	n.histogram.RecordValues(min(max(ns, 1), longestSample), n.calls+1-n.histogram.TotalCount())
}

func (n *count) clock(d time.Duration) {
	n.time += d
	n.timed++
}

// cumulative yields how many calls took at most so many microseconds, for powers
// of two from one on. Calls behind the last that was measured are like that one.
func (n *count) cumulative() iter.Seq2[int64, int64] {
	return func(yield func(upTo, calls int64) bool) {
		bars := n.histogram.Distribution()
		counted, told := int64(0), int64(0)
		for level := int64(1024); len(bars) > 0; level *= 2 {
			end := min(level+level>>7-1, lastValue) // of the values that are equal to level for the histogram
			for len(bars) > 0 && bars[0].From <= end {
				counted += bars[0].Count
				bars = bars[1:]
			}
			if counted == n.histogram.TotalCount() {
				counted, bars = n.calls, nil
			}
			if counted > told && !yield(end/1000, counted) {
				return
			}
			told = counted
		}
	}
}

// percentile returns the microseconds that a share of the calls took at most.
func (n *count) percentile(p float64) float64 {
	return float64(n.histogram.ValueAtQuantile(p)) / 1000
}

func infoLatencystats(s *Server, put func(string, any)) {
	s.commands.all(func(cmd *command) {
		if cmd.calls == 0 || cmd.histogram == nil {
			return
		}
		var parts []string
		for _, p := range s.config.percentiles {
			parts = append(parts, fmt.Sprintf("p%s=%.3f", formatPercentile(p), cmd.percentile(p)))
		}
		put("latency_percentiles_usec_"+cmd.name, strings.Join(parts, ","))
	})
}

func formatPercentile(p float64) string { return strconv.FormatFloat(p, 'g', -1, 64) }

func getPercentiles(c *config) string {
	var parts []string
	for _, p := range c.percentiles {
		parts = append(parts, formatPercentile(p))
	}
	return strings.Join(parts, " ")
}

func setPercentiles(c *config, words []string) string {
	var all []float64
	if len(words) == 1 && words[0] == "" {
		words = nil
	}
	for _, word := range words {
		p, err := strconv.ParseFloat(word, 64)
		switch {
		case err != nil:
			return "Invalid latency-tracking-info-percentiles parameters"
		case !(p >= 0 && p <= 100):
			return "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
		}
		all = append(all, p)
	}
	c.percentiles = all
	return ""
}
