package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Report holds the measurements of a run. It counts requests that were sent
// (in an open loop: due) after the warm-up.
type Report struct {
	Requests       int64         // answered requests
	Elapsed        time.Duration // from the end of the warm-up to the last reply
	Sent, Received int64         // bytes, since the end of the warm-up
	Behind         Behind        // of an open loop
	Interrupted    bool

	latency *hdrhistogram.Histogram
}

// Behind says how far a server fell behind the rate of an open loop.
type Behind struct {
	Waited  int64         // requests that, when due, had to wait for Pipeline others of their connection
	Unsent  int64         // those of them that were unsent at the end of the run; they have no latency
	Longest time.Duration // the longest wait before sending
}

// Rate returns requests per second.
func (r *Report) Rate() float64 { return r.perSecond(r.Requests) }

// SentRate and ReceivedRate return bytes per second.
func (r *Report) SentRate() float64     { return r.perSecond(r.Sent) }
func (r *Report) ReceivedRate() float64 { return r.perSecond(r.Received) }

func (r *Report) perSecond(n int64) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(n) / r.Elapsed.Seconds()
}

// Percentile returns the latency that percent of the requests did not exceed,
// to three digits. 100 gives the longest latency.
func (r *Report) Percentile(percent float64) time.Duration {
	return time.Duration(r.latency.ValueAtPercentile(percent))
}

// Mean returns the mean latency.
func (r *Report) Mean() time.Duration { return time.Duration(r.latency.Mean()) }

// A tally holds the measurements of a worker. It needs no lock.
type tally struct {
	latency        *hdrhistogram.Histogram
	answered       int64 // requests, including those of the warm-up
	sent, received int64
	behind         Behind
	last           time.Duration // when the last measured reply arrived; in a sum, relative to the end of the warm-up
}

// longest is the upper limit of the histogram; longer latencies count as
// longest.
const longest = time.Hour

func newTally() *tally {
	return &tally{latency: hdrhistogram.New(1, int64(longest), 3)}
}

// record measures n requests whose replies arrived now.
func (t *tally) record(n int, latency, now time.Duration) {
	t.latency.RecordValues(int64(min(max(latency, 0), longest)), int64(n))
	t.last = now
}

// add adds the measurements of a worker whose warm-up ended at from.
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
