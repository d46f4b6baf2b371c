package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// A run is a server under a workload, once.
type run struct {
	Suite      string  `json:"suite"`
	Mode       string  `json:"mode"`
	Workload   string  `json:"workload"`
	Server     string  `json:"server"`
	Repetition int     `json:"repetition"`
	Took       float64 `json:"took_s"` // starting and warming up included
	Others     float64 `json:"others"` // share of a CPU that other processes used meanwhile
	Error      string  `json:"error,omitempty"`
	figures
}

// results are everything that a run measured, perhaps in several parts, and what
// it is to measure.
type results struct {
	Began       time.Time `json:"began"`
	Ended       time.Time `json:"ended"` // the last part that measured something
	Machine     machine   `json:"machine"`
	Seconds     float64   `json:"seconds"` // of a run
	Warmup      float64   `json:"warmup"`
	Counted     float64   `json:"counted"` // 0: system calls are not counted
	Repetitions int       `json:"repetitions"`
	Quick       bool      `json:"quick,omitempty"`
	Notes       []string  `json:"notes,omitempty"`
	Suites      []suite   `json:"suites"`
	Runs        []run     `json:"runs"`
	Summaries   []summary `json:"summaries"`
}

// A summary is what the repetitions say together.
type summary struct {
	Suite     string            `json:"suite"`
	Mode      string            `json:"mode"`
	Workload  string            `json:"workload"`
	Server    string            `json:"server"`
	Runs      int               `json:"runs"` // failed ones included
	Failed    int               `json:"failed,omitempty"`
	Disturbed int               `json:"disturbed,omitempty"` // left out, since others used the CPUs
	Error     string            `json:"error,omitempty"`     // of the first that failed
	Values    middle            `json:"values"`
	Ratios    map[string]middle `json:"ratios"` // to each base, by name
}

// A middle is the middle half of what was measured.
type middle struct {
	Median figures `json:"median"`
	Low    figures `json:"low"` // a quarter is less
	High   figures `json:"high"`
}

func (m *middle) set(metric metric, list []float64) {
	*metric.of(&m.Low), *metric.of(&m.Median), *metric.of(&m.High) = quartiles(list)
}

// median of a metric.
func (m middle) median(metric metric) float64 { return *metric.of(&m.Median) }

// half is half the distance of the quartiles, as a share of the median.
func (m middle) half(metric metric) float64 {
	return (*metric.of(&m.High) - *metric.of(&m.Low)) / 2 / m.median(metric)
}

// even tells whether a ratio is as often above 1 as below, as far as one can
// tell: 1 is in the middle half.
func (m middle) even(metric metric) bool {
	return *metric.of(&m.Low) <= 1 && 1 <= *metric.of(&m.High)
}

// summarize fills Summaries from Runs.
func (r *results) summarize() {
	r.Summaries = nil
	for i := range r.Suites {
		s := &r.Suites[i]
		for _, mode := range s.Modes {
			for _, w := range s.Workloads {
				of := map[string][]run{}
				for _, x := range r.Runs {
					if x.Suite == s.Name && x.Mode == mode && x.Workload == w.Name {
						of[x.Server] = append(of[x.Server], x)
					}
				}
				for _, server := range s.Servers {
					if len(of[server]) > 0 {
						r.Summaries = append(r.Summaries, summarizeOne(of, server, s.bases(w)))
					}
				}
			}
		}
	}
}

// summarizeOne summarizes a server's runs of one mode and workload.
func summarizeOne(of map[string][]run, server string, bases []string) summary {
	runs := of[server]
	s := summary{
		Suite: runs[0].Suite, Mode: runs[0].Mode, Workload: runs[0].Workload, Server: server,
		Runs: len(runs), Ratios: map[string]middle{},
	}
	quiet := map[string][]run{}
	for name, list := range of {
		quiet[name] = undisturbed(list)
	}
	s.Disturbed = len(runs) - len(quiet[server])
	for _, x := range runs {
		if x.Error != "" {
			s.Failed++
			if s.Error == "" {
				s.Error = x.Error
			}
			continue
		}
		s.Values.Median.Connections = x.Connections
	}
	for _, m := range metrics {
		values := byRepetition(quiet[server], m)
		list := make([]float64, 0, len(values))
		for _, v := range values {
			list = append(list, v)
		}
		s.Values.set(m, list)
		for _, base := range bases {
			if len(quiet[base]) == 0 {
				continue
			}
			ratios := s.Ratios[base]
			ratios.set(m, pairedRatios(values, byRepetition(quiet[base], m)))
			s.Ratios[base] = ratios
		}
	}
	return s
}

// undisturbed leaves out the runs during which others used the CPUs, as long as
// half of them and more remain.
func undisturbed(runs []run) []run {
	var quiet []run
	for _, x := range runs {
		if x.Others <= tooMuch {
			quiet = append(quiet, x)
		}
	}
	if 2*len(quiet) < len(runs) {
		return runs
	}
	return quiet
}

// byRepetition are the values of a metric in the runs that measured it.
func byRepetition(runs []run, m metric) map[int]float64 {
	values := map[int]float64{}
	for _, x := range runs {
		if v := *m.of(&x.figures); x.Error == "" && v != 0 {
			values[x.Repetition] = v
		}
	}
	return values
}

// of lists the summaries of a suite's mode and workload, in the servers' order.
func (r *results) of(suite, mode, workload string) []summary {
	var list []summary
	for _, s := range r.Summaries {
		if s.Suite == suite && s.Mode == mode && s.Workload == workload {
			list = append(list, s)
		}
	}
	return list
}

// save writes a file that is either the old or the new one, whole, whatever
// happens meanwhile.
func (r *results) save(name string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", append(b, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// loadResults reads results. What a suite is shown as and how its workloads are
// measured is this program's.
func loadResults(name string) (*results, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(results)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w: want a results.json of this program", name, err)
	}
	for i := range r.Suites {
		r.Suites[i].link()
	}
	r.summarize()
	return r, nil
}

// link gives a suite that was read what is not in the file.
func (s *suite) link() {
	s.views = append(usual, idleTable)
	for _, known := range append(suites, quickSuite) {
		if known.Name == s.Name {
			s.views, s.growth = known.views, known.growth
		}
	}
	for i, w := range s.Workloads {
		if at := slices.Index(workloadNames(workloads), w.Name); at >= 0 {
			s.Workloads[i] = workloads[at]
		}
	}
}
