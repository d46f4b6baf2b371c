package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A plan is what is to be measured, and what has been.
type plan struct {
	rig     rig
	results *results
	file    string    // where they are kept
	until   time.Time // when to end; zero: never
	quiet   float64   // share of a CPU that others may use; more disturbs a run
	retries int       // of a run that was disturbed
	modes   map[string]mode
}

func newPlan(res *results, programs *programs, file string) (*plan, error) {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	p := &plan{results: res, file: file, quiet: tooMuch, modes: map[string]mode{}, rig: rig{
		programs: programs, warmup: seconds(res.Warmup), measured: seconds(res.Seconds), counted: seconds(res.Counted),
	}}
	for _, s := range res.Suites {
		modes, err := parseModes(s.Modes)
		if err != nil {
			return nil, err
		}
		for _, m := range modes {
			p.modes[m.name] = m
		}
	}
	var err error
	if p.rig.maxConns, err = raiseFileLimit(); err != nil {
		return nil, err
	}
	if p.rig.maxConns < mostConns {
		note := fmt.Sprintf("The limit of descriptors allows %s; workloads with more run with so many.", connsText(p.rig.maxConns))
		if !slices.Contains(res.Notes, note) {
			res.Notes = append(res.Notes, note)
		}
	}
	return p, nil
}

// raiseFileLimit raises the limit of descriptors to the hard limit, for this
// program's children too, and returns how many connections it allows a process.
func raiseFileLimit() (int, error) {
	const others = 100 // descriptors that are no connections
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, os.NewSyscallError("getrlimit", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, os.NewSyscallError("setrlimit", err)
	}
	return int(min(limit.Cur, 1<<20)) - others, nil
}

// A group is a workload in a mode, for all servers of a suite, once. Its runs
// are neighbours in time, since they will be compared.
type group struct {
	repetition int
	suite      string
	mode       mode
	workload   workload
	servers    []server
}

// groups lists all, in order. Another server is the first of a group in each
// repetition.
func (p *plan) groups() ([]group, error) {
	var groups []group
	for repetition := range p.results.Repetitions {
		for _, s := range p.results.Suites {
			servers, err := parseServers(s.Servers)
			if err != nil {
				return nil, err
			}
			for i, mode := range s.Modes {
				for _, w := range s.Workloads {
					if w.once && (i > 0 || p.results.Quick && repetition > 0) {
						continue
					}
					g := group{repetition, s.Name, p.modes[mode], w, nil}
					for j := range servers {
						if server := servers[(j+repetition)%len(servers)]; server.serves(w.Family) {
							g.servers = append(g.servers, server)
						}
					}
					if len(g.servers) > 0 {
						groups = append(groups, g)
					}
				}
			}
		}
	}
	return groups, nil
}

// total is how many runs there are to be.
func (p *plan) total() int {
	groups, err := p.groups()
	if err != nil {
		return 0
	}
	total := 0
	for _, g := range groups {
		total += len(g.servers)
	}
	return total
}

func (g *group) has(x run) bool {
	return x.Repetition == g.repetition && x.Suite == g.suite && x.Mode == g.mode.name && x.Workload == g.workload.Name
}

// begun are the runs of a group that have been made.
func (p *plan) begun(g *group) int {
	n := 0
	for _, x := range p.results.Runs {
		if g.has(x) {
			n++
		}
	}
	return n
}

// rest are the groups that are not complete. The runs of one that was
// interrupted are forgotten: others would not be their neighbours.
func (p *plan) rest() ([]group, error) {
	groups, err := p.groups()
	if err != nil {
		return nil, err
	}
	var rest []group
	for _, g := range groups {
		n := p.begun(&g)
		if n == len(g.servers) {
			continue
		}
		if n > 0 {
			p.results.Runs = slices.DeleteFunc(p.results.Runs, g.has)
		}
		rest = append(rest, g)
	}
	return rest, nil
}

// run makes all runs that are left, unless the context or the time ends before.
// When there is too little time for the next group it looks for a shorter one of
// the same repetition.
func (p *plan) run(ctx context.Context) error {
	rest, err := p.rest()
	if err != nil {
		return err
	}
	measured := false
	for len(rest) > 0 && ctx.Err() == nil {
		at := 0
		if !p.until.IsZero() {
			left := time.Until(p.until)
			at = slices.IndexFunc(rest, func(g group) bool {
				return g.repetition == rest[0].repetition && p.estimate(&g) <= left
			})
			if at < 0 && !measured {
				return fmt.Errorf("--for is too short: the servers under %s take about %v, and must be measured together",
					rest[0].workload.Name, p.estimate(&rest[0]).Round(time.Second))
			}
			if at < 0 {
				return errUnfinished
			}
		}
		p.take(ctx, rest[at], len(rest))
		measured = true
		if err := p.results.save(p.file); err != nil {
			return err
		}
		rest = slices.Delete(rest, at, at+1)
	}
	if len(rest) > 0 && p.results.Quick {
		p.results.Notes = append(p.results.Notes, "Ended early: not everything was measured.")
	}
	p.results.summarize()
	return nil
}

// estimate is how long a group will take: as long as the last time.
func (p *plan) estimate(g *group) time.Duration {
	const overhead = 0.5 // s, of a run: to start, to connect, to end
	last := map[string]float64{}
	for _, x := range p.results.Runs {
		if x.Suite == g.suite && x.Mode == g.mode.name && x.Workload == g.workload.Name {
			last[x.Server] = x.Took
		}
	}
	total := 0.0
	for _, s := range g.servers {
		took, known := last[s.name]
		if !known {
			took = p.results.Warmup + p.results.Seconds + p.results.Counted + overhead
		}
		total += took
	}
	return time.Duration(total * float64(time.Second))
}

// take measures a group. What it had measured when the context ended it keeps.
func (p *plan) take(ctx context.Context, g group, left int) {
	for i, s := range g.servers {
		x := p.takeOne(ctx, g, s)
		for again := 0; x.Others > p.quiet && again < p.retries; again++ {
			fmt.Fprintf(os.Stderr, "%d left, %d/%d %s\n", left, i+1, len(g.servers), x)
			x = p.takeOne(ctx, g, s)
		}
		if ctx.Err() != nil { // what went wrong is no fault of the server
			return
		}
		p.results.Runs = append(p.results.Runs, x)
		p.results.Ended = time.Now().UTC()
		fmt.Fprintf(os.Stderr, "%d left, %d/%d %s\n", left, i+1, len(g.servers), x)
	}
}

// takeOne measures a server of a group.
func (p *plan) takeOne(ctx context.Context, g group, s server) run {
	x := run{Suite: g.suite, Mode: g.mode.name, Workload: g.workload.Name, Server: s.name, Repetition: g.repetition}
	m, err := newMeter()
	if err == nil {
		x.figures, err = p.rig.take(ctx, g.mode, g.workload, s)
	}
	if err == nil {
		x.Others, err = m.others()
	}
	if err != nil {
		x.Error, x.figures = strings.TrimSpace(err.Error()), figures{}
	}
	x.Took = time.Since(m.start).Seconds()
	return x
}

func (x run) String() string {
	what := fmt.Sprintf("%-11s %-6s %-13s %-16s ", x.Suite, x.Mode, x.Workload, x.Server)
	switch {
	case x.Error != "":
		return what + "FAILED: " + x.Error
	case x.PerSecond == 0:
		return what + fmt.Sprintf("%.0f B idle, %.0f B after an echo", x.IdleBytes, x.EchoedBytes)
	}
	what += fmt.Sprintf("%s/s, %.2f us CPU each, %.2f calls", thousands(x.PerSecond), x.CPU, x.Calls)
	if x.Others > tooMuch {
		what += fmt.Sprintf(", DISTURBED: others used %s of a CPU", percent(x.Others))
	}
	return what
}

// take starts a server, measures it and kills it, all within a deadline.
func (r *rig) take(ctx context.Context, m mode, w workload, s server) (figures, error) {
	const patience = 20 * time.Second // for connecting, and what a loaded machine takes
	limit := r.warmup + 2*r.measured + patience
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	serving, family := s, w.Family
	if w.against != "" {
		e, _ := entryOf(w.against)
		serving, family = server{entry: e, name: e.name}, "redis"
	}
	t, err := r.programs.start(timed, m, serving, family)
	if err != nil {
		return figures{}, err
	}
	defer t.stop()
	t.server = s.entry.name
	f, err := w.measure(timed, r, t)
	if err == nil {
		return f, nil
	}
	if timed.Err() != nil {
		return figures{}, fmt.Errorf("no end within %v: it stalls", limit)
	}
	if how, dead := t.died(time.Second); dead {
		return figures{}, fmt.Errorf("server died (%s)", how)
	}
	return figures{}, err
}
