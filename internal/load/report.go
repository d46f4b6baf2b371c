package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Report is what was measured. What counts is requests that were sent, in an
// open loop due, after the warm-up.
type Report struct {
	Requests       int64         // that were answered
	Elapsed        time.Duration // from the end of the warm-up to the last reply
	Sent, Received int64         // bytes, since the end of the warm-up
	Behind         Behind        // of an open loop
	Interrupted    bool

	latency *hdrhistogram.Histogram
}

// Behind says how a server fell behind the rate of an open loop.
type Behind struct {
	Waited  int64         // requests that, when due, found Pipeline others of their connection unanswered
	Unsent  int64         // of them, those that had not been sent when the run ended; they have no latency
	Longest time.Duration // how long one waited to be sent
}

// Rate is requests a second.
func (r *Report) Rate() float64 { return r.perSecond(r.Requests) }

// SentRate and ReceivedRate are bytes a second.
func (r *Report) SentRate() float64     { return r.perSecond(r.Sent) }
func (r *Report) ReceivedRate() float64 { return r.perSecond(r.Received) }

func (r *Report) perSecond(n int64) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(n) / r.Elapsed.Seconds()
}

// Percentile is the latency that so many percent of the requests did not exceed,
// to three digits; 100 is the longest.
func (r *Report) Percentile(percent float64) time.Duration {
	return time.Duration(r.latency.ValueAtPercentile(percent))
}

// Mean is the average latency.
func (r *Report) Mean() time.Duration { return time.Duration(r.latency.Mean()) }

// A tally is what a worker measures, without a lock.
type tally struct {
	latency        *hdrhistogram.Histogram
	answered       int64 // requests, in the warm-up too
	sent, received int64
	behind         Behind
	last           time.Duration // when a measured reply came; with respect to from once added
}

// longest is the longest latency that is told from longer ones.
const longest = time.Hour

func newTally() *tally {
	return &tally{latency: hdrhistogram.New(1, int64(longest), 3)}
}

// record measures n requests whose replies came now.
func (t *tally) record(n int, latency, now time.Duration) {
	t.latency.RecordValues(int64(min(max(latency, 0), longest)), int64(n))
	t.last = now
}

// add adds what a worker measured whose warm-up ended at from.
func (t *tally) add(o *tally, from time.Duration) {
	t.latency.Merge(o.latency)
	t.answered += o.answered
	t.sent += o.sent
	t.received += o.received
	t.behind.Waited += o.behind.Waited
	t.behind.Unsent += o.behind.Unsent
	t.behind.Longest = max(t.behind.Longest, o.behind.Longest)
	if o.latency.TotalCount() > 0 {
		t.last = max(t.last, o.last-from)
	}
}

func (t *tally) reset() {
	latency := t.latency
	latency.Reset()
	*t = tally{latency: latency}
}

func (t *tally) report(interrupted bool) *Report {
	return &Report{
		Requests:    t.latency.TotalCount(),
		Elapsed:     t.last,
		Sent:        t.sent,
		Received:    t.received,
		Behind:      t.behind,
		Interrupted: interrupted,
		latency:     t.latency,
	}
}
