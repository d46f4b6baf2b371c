package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/loopstats"
)

// Engine returns a collector of an engine's counters, with a series for each loop. They may be
// one turn of the loop old. Before the engine starts there are none. The histograms of times and
// events come once loopstats.Measure was called for the engine.
func Engine(e *rondo.Engine) prometheus.Collector { return engine{e} }

type engine struct{ *rondo.Engine }

var engineInfo = gauge("rondo_engine_info", "1, with the backend that the engine uses.", "backend")

// loopFamilies show the fields of rondo.LoopStats, each one once.
var loopFamilies = []struct {
	family
	of func(*rondo.LoopStats) float64
}{
	{gauge("rondo_open_connections", "Connections that are open.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Open) }},
	{counter("rondo_accepted_connections_total", "Connections that were accepted.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Accepted) }},
	{counter("rondo_closed_connections_total", "Connections that have been closed.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Closed) }},
	{counter("rondo_refused_connections_total", "Connections above a limit on connections.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Refused) }},
	{counter("rondo_dialed_connections_total", "Connections that were dialed.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Dialed) }},
	{counter("rondo_attached_connections_total", "Connections that came from another owner or loop.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Attached) }},
	{counter("rondo_detached_connections_total", "Connections that went to another owner or loop.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Detached) }},
	{counter("rondo_receives_total", "Receives from connections and sockets that had data.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Receives) }},
	{counter("rondo_sends_total", "Sends to connections and sockets.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Sends) }},
	{counter("rondo_received_bytes_total", "Bytes received, of datagrams too.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.BytesIn) }},
	{counter("rondo_sent_bytes_total", "Bytes sent, of datagrams too.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.BytesOut) }},
	{counter("rondo_turns_total", "Turns of the loop. They stand still if a callback blocks it.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Turns) }},
	{counter("rondo_panics_total", "Panics of handlers and other callbacks.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.Panics) }},
	{counter("rondo_received_packets_total", "Datagrams received.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.PacketsIn) }},
	{counter("rondo_sent_packets_total", "Datagrams sent.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.PacketsOut) }},
	{counter("rondo_truncated_packets_total", "Datagrams received that were too long for the buffer.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.PacketsTruncated) }},
	{counter("rondo_dropped_packets_total", "Datagrams for which the system had no room.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.PacketsDropped) }},
	{counter("rondo_unsent_packets_total", "Datagrams that were written and not sent.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.PacketsUnsent) }},
	{counter("rondo_failed_filters_total", "Filters, such as TLS, that ended their connection with an error.", "loop"),
		func(s *rondo.LoopStats) float64 { return float64(s.FiltersFailed) }},
}

func (e engine) Describe(to chan<- *prometheus.Desc) {
	describe(to, engineInfo)
	for _, f := range loopFamilies {
		describe(to, f.family)
	}
	describeLoop(to)
}

func (e engine) Collect(to chan<- prometheus.Metric) {
	if name := e.BackendName(); name != "" {
		engineInfo.send(to, 1, name)
		bufferLimit.send(to, float64(e.MaxBufferBytes))
	}
	for _, l := range loopstats.Of(e.Engine) {
		sendLoop(to, strconv.Itoa(l.ID), &l.LoopStats)
		sendMore(to, &l)
	}
}

func sendLoop(to chan<- prometheus.Metric, loop string, s *rondo.LoopStats) {
	for _, f := range loopFamilies {
		f.send(to, f.of(s), loop)
	}
}
