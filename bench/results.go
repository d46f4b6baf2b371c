package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// figures are what one run measured, or medians or ratios of such. Zero: not
// measured.
type figures struct {
	PerSecond   float64 `json:"per_second,omitempty"`
	CPU         float64 `json:"cpu_us,omitempty"` // of the server, for each unit
	P50         float64 `json:"p50_us,omitempty"`
	P90         float64 `json:"p90_us,omitempty"`
	P95         float64 `json:"p95_us,omitempty"`
	P99         float64 `json:"p99_us,omitempty"`
	P999        float64 `json:"p999_us,omitempty"`
	Max         float64 `json:"max_us,omitempty"`
	IdleBytes   float64 `json:"idle_bytes,omitempty"`   // resident, for each idle connection
	EchoedBytes float64 `json:"echoed_bytes,omitempty"` // the same after an echo on each
	ClientCPU   float64 `json:"client_cpu,omitempty"`   // share of its threads' time that the client used
	Connections int     `json:"connections,omitempty"`
}

// metrics are the figures that have medians and ratios.
var metrics = []func(*figures) *float64{
	func(f *figures) *float64 { return &f.PerSecond },
	func(f *figures) *float64 { return &f.CPU },
	func(f *figures) *float64 { return &f.P50 },
	func(f *figures) *float64 { return &f.P90 },
	func(f *figures) *float64 { return &f.P95 },
	func(f *figures) *float64 { return &f.P99 },
	func(f *figures) *float64 { return &f.P999 },
	func(f *figures) *float64 { return &f.Max },
	func(f *figures) *float64 { return &f.IdleBytes },
	func(f *figures) *float64 { return &f.EchoedBytes },
	func(f *figures) *float64 { return &f.ClientCPU },
}

// A run is a server under a workload, once.
type run struct {
	Mode       string `json:"mode"`
	Workload   string `json:"workload"`
	Server     string `json:"server"`
	Repetition int    `json:"repetition"`
	Error      string `json:"error,omitempty"`
	figures
}

// results are everything that one command measured.
type results struct {
	Date        time.Time  `json:"date"`
	Machine     machine    `json:"machine"`
	Seconds     float64    `json:"seconds"` // of a run
	Warmup      float64    `json:"warmup"`
	Repetitions int        `json:"repetitions"`
	Notes       []string   `json:"notes,omitempty"`
	Modes       []string   `json:"modes"`
	Servers     []string   `json:"servers"`
	Workloads   []workload `json:"workloads"`
	Runs        []run      `json:"runs"`
	Summaries   []summary  `json:"summaries"`
}

// A summary is what the repetitions say together.
type summary struct {
	Mode     string `json:"mode"`
	Workload string `json:"workload"`
	Server   string `json:"server"`
	Runs     int    `json:"runs"` // failed ones included
	Failed   int    `json:"failed,omitempty"`
	Error    string `json:"error,omitempty"` // of the first that failed
	// Spread is how far apart the runs' rates, or bytes, lie, as a share of
	// the median.
	Spread float64            `json:"spread"`
	Median figures            `json:"median"`
	Ratios map[string]figures `json:"ratios"` // to each base, by name
}

// summarize fills Summaries from Runs.
func (r *results) summarize() {
	r.Summaries = nil
	for _, mode := range r.Modes {
		for _, w := range r.Workloads {
			of := map[string][]run{}
			for _, x := range r.Runs {
				if x.Mode == mode && x.Workload == w.Name {
					of[x.Server] = append(of[x.Server], x)
				}
			}
			for _, server := range r.Servers {
				if len(of[server]) > 0 {
					r.Summaries = append(r.Summaries, summarizeOne(of, server, bases[w.Family]))
				}
			}
		}
	}
}

// summarizeOne summarizes a server's runs of one mode and workload.
func summarizeOne(of map[string][]run, server string, bases []string) summary {
	runs := of[server]
	s := summary{
		Mode: runs[0].Mode, Workload: runs[0].Workload, Server: server,
		Runs: len(runs), Ratios: map[string]figures{},
	}
	for _, x := range runs {
		if x.Error != "" {
			s.Failed++
			if s.Error == "" {
				s.Error = x.Error
			}
			continue
		}
		s.Median.Connections = x.Connections
	}
	for _, metric := range metrics {
		values := byRepetition(runs, metric)
		list := make([]float64, 0, len(values))
		for _, v := range values {
			list = append(list, v)
		}
		*metric(&s.Median) = median(list)
		if s.Spread == 0 { // of the first metric that there is
			s.Spread = spread(list)
		}
		for _, base := range bases {
			if len(of[base]) == 0 {
				continue
			}
			f := s.Ratios[base]
			*metric(&f) = pairedRatio(values, byRepetition(of[base], metric))
			s.Ratios[base] = f
		}
	}
	return s
}

// byRepetition are the values of a metric in the runs that measured it.
func byRepetition(runs []run, metric func(*figures) *float64) map[int]float64 {
	values := map[int]float64{}
	for _, x := range runs {
		if v := *metric(&x.figures); x.Error == "" && v != 0 {
			values[x.Repetition] = v
		}
	}
	return values
}

// of lists the summaries of a mode and workload, in the servers' order.
func (r *results) of(mode, workload string) []summary {
	var list []summary
	for _, s := range r.Summaries {
		if s.Mode == mode && s.Workload == workload {
			list = append(list, s)
		}
	}
	return list
}

func (r *results) save(name string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o666)
}

func loadResults(name string) (*results, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(results)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w: want a results.json of this program", name, err)
	}
	r.summarize()
	return r, nil
}
