package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rondo-go/rondo/loopstats"
)

var (
	endedConns   = counter("rondo_ended_connections_total", "Closed connections, by the cause of their end.", "loop", "cause")
	outputStops  = counter("rondo_output_stops_total", "Times that full output stopped the reading of a connection.", "loop")
	outputWaits  = gauge("rondo_waiting_output_bytes", "Bytes of connections that the system did not take yet.", "loop")
	buffersInUse = gauge("rondo_used_buffers", "Buffers of the loop that hold input or output.", "loop")
	bufferBytes  = gauge("rondo_used_buffer_bytes", "Memory of these buffers.", "loop")
	bufferLimit  = gauge("rondo_buffer_limit_bytes", "Engine.MaxBufferBytes: what these buffers of all loops may take; 0: any memory.")
	handshakes   = counter("rondo_tls_handshakes_total", "TLS handshakes that were done.", "loop")
	noHandshakes = counter("rondo_tls_failed_handshakes_total", "TLS handshakes that have failed, by the reason.", "loop", "reason")
)

// measures show the Histograms of loopstats.Loop, each one once.
var measures = []struct {
	family
	of func(*loopstats.Loop) loopstats.Histogram
	buckets
}{
	{measured("rondo_turn_seconds", "Time of a turn of the loop, without the wait for events. The rate of the sum is the part of the time in which the loop works."),
		func(l *loopstats.Loop) loopstats.Histogram { return l.Turn }, times},
	{measured("rondo_longest_callback_seconds", "Time of the longest callback of a turn, at most."),
		func(l *loopstats.Loop) loopstats.Histogram { return l.Callback }, times},
	{measured("rondo_post_delay_seconds", "Time that the oldest post of a turn had waited."),
		func(l *loopstats.Loop) loopstats.Histogram { return l.PostDelay }, times},
	{measured("rondo_timer_delay_seconds", "How late the latest timer of a turn was."),
		func(l *loopstats.Loop) loopstats.Histogram { return l.TimerDelay }, times},
	{measured("rondo_turn_events", "Events that each wait for them brought."),
		func(l *loopstats.Loop) loopstats.Histogram { return l.Events }, numbers},
}

// buckets are the upper bounds of a Prometheus histogram: 2^least to 2^most, each 2^step times the
// one before. one is how many units of the Histogram (nanoseconds, or things counted) make one unit
// of the metric.
type buckets struct {
	least, most, step int
	one               float64
}

var (
	times   = buckets{10, 36, 2, 1e9} // from a microsecond to a minute
	numbers = buckets{1, 10, 1, 1}
)

// of returns what Prometheus wants to know of a Histogram. Its buckets include their ends, and
// those of the Histogram do not.
func (b buckets) of(h loopstats.Histogram) map[float64]uint64 {
	all := make(map[float64]uint64)
	for shift := b.least; shift <= b.most; shift += b.step {
		end := int64(1) << shift
		all[float64(end-1)/b.one] = h.Below(end)
	}
	return all
}

// measured makes the family of a Histogram. Its send is not for them.
func measured(name, help string) family {
	return gauge(name, help+" It is measured while loopstats.Measure says so.", "loop")
}

func describeLoop(to chan<- *prometheus.Desc) {
	describe(to, endedConns, outputStops, outputWaits, buffersInUse, bufferBytes, bufferLimit, handshakes, noHandshakes)
	for _, m := range measures {
		describe(to, m.family)
	}
}

// sendMore sends what package loopstats has beside the fields of LoopStats.
func sendMore(to chan<- prometheus.Metric, l *loopstats.Loop) {
	loop := strconv.Itoa(l.ID)
	for cause, n := range l.Ended {
		endedConns.send(to, float64(n), loop, loopstats.Cause(cause).String())
	}
	outputStops.send(to, float64(l.OutputStops), loop)
	outputWaits.send(to, float64(l.OutputWaiting), loop)
	buffersInUse.send(to, float64(l.Buffers), loop)
	bufferBytes.send(to, float64(l.BufferBytes), loop)
	handshakes.send(to, float64(l.Handshakes), loop)
	for why, n := range l.FailedHandshakes {
		noHandshakes.send(to, float64(n), loop, loopstats.TLSFailure(why).String())
	}
	if l.Turn.Count() == 0 {
		return // nothing was measured
	}
	for _, m := range measures {
		h := m.of(l)
		to <- prometheus.MustNewConstHistogram(m.desc, h.Count(), float64(h.Sum())/m.one, m.buckets.of(h), loop)
	}
}
