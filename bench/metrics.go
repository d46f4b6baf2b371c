package main

import "strconv"

// figures are what one run measured, or medians, quartiles or ratios of such.
// Zero: not measured.
type figures struct {
	PerSecond   float64 `json:"per_second,omitempty"`
	CPU         float64 `json:"cpu_us,omitempty"` // of the server, for each unit
	Calls       float64 `json:"calls,omitempty"`  // system calls of the server, for each unit
	P50         float64 `json:"p50_us,omitempty"`
	P90         float64 `json:"p90_us,omitempty"`
	P95         float64 `json:"p95_us,omitempty"`
	P99         float64 `json:"p99_us,omitempty"`
	P999        float64 `json:"p999_us,omitempty"`
	Max         float64 `json:"max_us,omitempty"`
	IdleBytes   float64 `json:"idle_bytes,omitempty"`    // resident, for each idle connection
	EchoedBytes float64 `json:"echoed_bytes,omitempty"`  // the same after an echo on each
	ClientCPU   float64 `json:"client_cpu_us,omitempty"` // of the client, for each unit
	ClientBusy  float64 `json:"client_busy,omitempty"`   // share of its threads' time that the client used
	Megabytes   float64 `json:"megabytes_per_second,omitempty"`
	Elapsed     float64 `json:"elapsed_ms,omitempty"`
	Allocs      float64 `json:"allocs,omitempty"`      // of the server, for each unit
	AllocBytes  float64 `json:"alloc_bytes,omitempty"` // likewise
	Connections int     `json:"connections,omitempty"`
}

// A metric is one of the figures. %s in its title is the workload's unit.
type metric struct {
	title    string
	of       func(*figures) *float64
	show     func(float64) string
	compared bool // with the bases, in the tables of all figures
}

var (
	perSecond  = metric{"%ss/s", func(f *figures) *float64 { return &f.PerSecond }, thousands, true}
	cpu        = metric{"CPU µs/%s", func(f *figures) *float64 { return &f.CPU }, two, true}
	calls      = metric{"system calls/%s", func(f *figures) *float64 { return &f.Calls }, two, false}
	p50        = metric{"p50 µs", func(f *figures) *float64 { return &f.P50 }, micros, true}
	p90        = metric{"p90 µs", func(f *figures) *float64 { return &f.P90 }, micros, false}
	p95        = metric{"p95 µs", func(f *figures) *float64 { return &f.P95 }, micros, false}
	p99        = metric{"p99 µs", func(f *figures) *float64 { return &f.P99 }, micros, false}
	p999       = metric{"p99.9 µs", func(f *figures) *float64 { return &f.P999 }, micros, false}
	longest    = metric{"max µs", func(f *figures) *float64 { return &f.Max }, micros, false}
	idleBytes  = metric{"B/idle connection", func(f *figures) *float64 { return &f.IdleBytes }, thousands, true}
	echoed     = metric{"B after an echo", func(f *figures) *float64 { return &f.EchoedBytes }, thousands, true}
	clientCPU  = metric{"client's CPU µs/%s", func(f *figures) *float64 { return &f.ClientCPU }, two, false}
	megabytes  = metric{"MB/s", func(f *figures) *float64 { return &f.Megabytes }, thousands, false}
	elapsed    = metric{"ms for all", func(f *figures) *float64 { return &f.Elapsed }, thousands, true}
	allocs     = metric{"allocations/%s", func(f *figures) *float64 { return &f.Allocs }, two, false}
	allocBytes = metric{"B allocated/%s", func(f *figures) *float64 { return &f.AllocBytes }, thousands, false}
	clientBusy = metric{"client busy", func(f *figures) *float64 { return &f.ClientBusy }, percent, false}
)

// metrics are all that have medians and ratios, in the order of the tables.
var metrics = []metric{perSecond, cpu, calls, p50, p90, p95, p99, p999, longest, idleBytes, echoed, clientCPU, clientBusy, megabytes, elapsed, allocs, allocBytes}

func two(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + "%" }

// micros shows three digits, and all of those before the point.
func micros(v float64) string {
	if v < 100 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return thousands(v)
}

// thousands shows a rounded number with commas.
func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
