package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// results is the content of a suite's results file.
type results struct {
	Suite    string            `json:"suite"`
	Mode     string            `json:"mode"`
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	Sessions []session         `json:"sessions"` // each is also judged separately
	Rows     []*row            `json:"rows"`
}

// A session is a time at which a suite was measured, in one go or in parts.
type session struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Rondo string    `json:"rondo"` // commit
}

// A row is a pair under a workload. Its lists have an element for each
// repetition.
type row struct {
	Workload  string               `json:"workload"`
	Server    string               `json:"server"`
	Base      string               `json:"base"`
	Session   []int                `json:"session"` // the session of the repetition
	Ratio     map[string][]float64 `json:"ratio,omitempty"`
	Of        map[string][]float64 `json:"of_server"`
	OfBase    map[string][]float64 `json:"of_base"`
	Redone    int                  `json:"redone,omitempty"`    // slices
	Unsettled int                  `json:"unsettled,omitempty"` // repetitions left out because the machine did not settle
	Failed    int                  `json:"failed,omitempty"`    // repetitions
	Error     string               `json:"error,omitempty"`     // of the last failed one
}

// kept are the metrics whose ratios are stored.
var kept = []string{"rate", "cpu", "p50", "p99", "p99.9", "ns"}

func newResults(s suite) *results {
	res := &results{Suite: s.Name, Mode: s.Mode, Machine: thisMachine(), Versions: versions()}
	for _, w := range s.Workloads {
		for _, server := range s.Servers {
			res.Rows = append(res.Rows, &row{Workload: w, Server: server, Base: s.Base})
		}
	}
	return res
}

// add adds a repetition to a row.
func (x *row) add(r repetition, session int) {
	x.Session = append(x.Session, session)
	x.Redone += r.Redone
	for _, list := range []struct {
		of   *map[string][]float64
		from figures
	}{{&x.Ratio, r.Ratio}, {&x.Of, r.B}, {&x.OfBase, r.A}} {
		if *list.of == nil {
			*list.of = map[string][]float64{}
		}
		for m, v := range list.from {
			if list.of == &x.Ratio && !slices.Contains(kept, m) {
				continue
			}
			(*list.of)[m] = append((*list.of)[m], rounded(v))
		}
	}
}

// rounded rounds to four digits.
func rounded(v float64) float64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// repetitions returns the number of the row's repetitions in a session.
func (x *row) repetitions(session int) int {
	n := 0
	for _, s := range x.Session {
		if s == session {
			n++
		}
	}
	return n
}

// ratio returns a metric's ratio in a session, or in all sessions for -1.
func (x *row) ratio(metric string, session int) ratio {
	var of []float64
	for i, v := range x.Ratio[metric] {
		if session < 0 || x.Session[i] == session {
			of = append(of, v)
		}
	}
	return bootstrapped(of)
}

// value returns the median of a metric, of the row's server or of the base.
func (x *row) value(metric string, base bool) (v float64, ok bool) {
	values := x.Of[metric]
	if base {
		values = x.OfBase[metric]
	}
	if len(values) == 0 {
		return 0, false
	}
	return median(values), true
}

func (res *results) row(workload, server string) *row {
	i := slices.IndexFunc(res.Rows, func(x *row) bool { return x.Workload == workload && x.Server == server })
	if i < 0 {
		return nil
	}
	return res.Rows[i]
}

func loadResults(file string) (*results, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var res results
	if err := json.Unmarshal(b, &res); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &res, nil
}

// save writes the results to a file, with a line for each row.
func (res *results) save(file string) error {
	var b bytes.Buffer
	head := *res
	head.Rows = nil
	h, err := json.Marshal(head)
	if err != nil {
		return err
	}
	b.Write(bytes.TrimSuffix(h, []byte("null}")))
	for i, x := range res.Rows {
		line, err := json.Marshal(x)
		if err != nil {
			return err
		}
		b.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	if err := os.WriteFile(file+".new", b.Bytes(), 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// thisMachine describes the machine.
func thisMachine() string {
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	model, kind := runtime.GOARCH, ""
	first, _, _ := strings.Cut(string(cpuinfo), "\n\n")
	for line := range strings.Lines(first) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			model = strings.TrimSpace(value)
		case "flags":
			if strings.Contains(value, " hypervisor") {
				kind = " (virtual machine)"
			}
		}
	}
	release, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-")
	return fmt.Sprintf("%s, %d cores%s, Linux %s, Go %s", model, runtime.NumCPU(), kind, release, strings.TrimPrefix(runtime.Version(), "go"))
}

// versions returns the versions of the libraries and programs that are
// measured.
func versions() map[string]string {
	v := map[string]string{}
	names := modules()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if name := names[d.Path]; name != "" {
				v[name] = d.Version
			}
		}
	}
	for name, x := range map[string]struct{ flag, before string }{
		"redis-server": {"--version", "v="}, "gcc": {"-dumpfullversion", ""}, "haproxy": {"-v", "HAProxy version "}, "nginx": {"-v", "nginx/"},
	} {
		out, err := exec.Command(name, x.flag).CombinedOutput()
		if err != nil {
			continue
		}
		if _, version, ok := strings.Cut(string(out), x.before); ok {
			v[name], _, _ = strings.Cut(strings.TrimSpace(version), " ")
		}
	}
	if name, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control"); err == nil {
		v["TCP"] = strings.TrimSpace(string(name)) // bbr paces what is sent, by timers
	}
	return v
}

// commit names the last commit of a source tree that changed the measured code.
func commit(root string) string {
	out, err := exec.Command("git", "-C", root, "log", "-1", "--format=%h", "--", ":/*.go", ":/go.mod", ":!/bench").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
