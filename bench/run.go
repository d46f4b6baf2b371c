package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

type runCommand struct {
	Suites      []string      `arg:"" optional:"" help:"Suites; see list. At least one, unless --quick is given." placeholder:"SUITE"`
	Servers     []string      `help:"Only these servers of the suites, separated by commas; rondo-* means all that begin with rondo-." placeholder:"NAME"`
	Workloads   []string      `help:"Only these workloads of the suites, in the same form." placeholder:"NAME"`
	Repetitions int           `help:"Number of measurements of each pair, each with fresh processes." default:"6" placeholder:"N"`
	Turns       int           `help:"Slices of load of one server of a pair in a repetition, each between two of the other." default:"6" placeholder:"N"`
	For         time.Duration `help:"End after about this time, with exit code 3 if --append has more to measure." placeholder:"TIME"`
	Append      bool          `help:"Continue with the existing results and the programs built for them."`
	Session     bool          `help:"With --append: begin a new session. Sessions are stored separately, for comparison."`
	Quick       bool          `help:"Measure the suite quick, briefly: for a first look, not for figures to quote."`
	Out         string        `help:"Directory for the results files." default:"out" type:"path" placeholder:"DIR"`
	Trace       bool          `help:"Print every slice."`
}

// Help is the end of "bench run --help".
func (*runCommand) Help() string {
	return `Each suite has a results file in --out. If others use the machine too, measure in parts:

  go run . peers --append --for 4m      (repeat until it exits with 0)
  go run . peers --append --session     (hours later: are the results the same?)

For the documents: --out ../docs/benchmarks, then "go run . report".`
}

// errUnfinished is the error of a run with --for that has more to measure.
var errUnfinished = errors.New("there is more to measure: continue with --append")

// bin is the directory of the built programs.
const bin = "out/bin"

// Run measures.
func (c *runCommand) Run(ctx context.Context) error {
	switch {
	case c.Quick && len(c.Suites) == 0:
		c.Suites, c.Repetitions, c.Turns, c.For = []string{"quick"}, 3, 5, 90*time.Second
	case len(c.Suites) == 0:
		return errors.New("no suite given: choose one of \"go run . list\", or --quick")
	case c.Repetitions < 1 || c.Turns < 1:
		return fmt.Errorf("--repetitions is %d and --turns is %d: want 1 or more", c.Repetitions, c.Turns)
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	until := time.Time{}
	if c.For > 0 {
		until = time.Now().Add(c.For)
	}
	var unfinished error
	for _, name := range c.Suites {
		s, err := chosenSuite(name, c.Servers, c.Workloads)
		if err != nil {
			return err
		}
		switch err := c.suite(ctx, s, until); {
		case errors.Is(err, errUnfinished):
			unfinished = err
		case err != nil:
			return err
		}
	}
	return unfinished
}

// suite measures a suite and saves the results after each repetition.
func (c *runCommand) suite(ctx context.Context, s suite, until time.Time) error {
	s = withoutMissing(s)
	file := filepath.Join(c.Out, s.Name+".json")
	res, err := c.results(s, file)
	if err != nil {
		return err
	}
	built, err := newBuild(bin, "..")
	if err != nil {
		return err
	}
	programs := slices.DeleteFunc(programsOf(s), func(program string) bool {
		_, err := os.Stat(built.path(program))
		return c.Append && err == nil
	})
	if err := built.make(ctx, programs); err != nil {
		return err
	}
	m, err := modeNamed(s.Mode)
	if err != nil {
		return err
	}
	cal, err := newCalibrator(ctx, m, built)
	if err != nil {
		return err
	}
	defer cal.close()
	session := len(res.Sessions) - 1
	for x := res.next(s, session, c.Repetitions); x != nil; x = res.next(s, session, c.Repetitions) {
		if ctx.Err() != nil {
			return errors.New("interrupted before everything was measured: continue with --append")
		}
		if !until.IsZero() && time.Now().After(until) {
			report(res, s)
			return errUnfinished
		}
		p, err := newPair(x, m, built, cal)
		if err != nil {
			return err
		}
		p.turns = p.a.workload.turns(c.Turns)
		if c.Trace {
			p.trace = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format, args...) }
		}
		r, err := p.repeat(ctx)
		if ctx.Err() != nil {
			continue
		}
		switch {
		case errors.Is(err, errUnsettled):
			x.Unsettled++
			fmt.Fprintf(os.Stderr, "    %v: %v\n", p, err)
		case err != nil:
			x.Failed, x.Error = x.Failed+1, err.Error()
			fmt.Fprintf(os.Stderr, "FAILED %v: %v\n", p, err)
		default:
			x.add(r, session)
			fmt.Fprintf(os.Stderr, "%3d %v: %.3f requests, %.3f CPU\n", len(x.Session), p, r.Ratio["rate"], r.Ratio["cpu"])
		}
		res.Sessions[session].Ended = time.Now().UTC().Truncate(time.Second)
		if err := res.save(file); err != nil {
			return err
		}
	}
	report(res, s)
	return nil
}

// results returns the results to continue, or new ones.
func (c *runCommand) results(s suite, file string) (*results, error) {
	res, err := loadResults(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fresh := err != nil || !c.Append
	if fresh {
		res = newResults(s)
		if err := os.MkdirAll(c.Out, 0o777); err != nil {
			return nil, err
		}
	}
	if here := thisMachine(); here != res.Machine {
		return nil, fmt.Errorf("--append: %s was measured on another machine (%s) than this one (%s)", file, res.Machine, here)
	}
	if fresh || c.Session {
		now := time.Now().UTC().Truncate(time.Second)
		res.Sessions = append(res.Sessions, session{Began: now, Ended: now, Rondo: commit("..")})
	}
	return res, nil
}

// next returns the chosen pair with the fewest repetitions in a session, or nil
// if all have enough. It skips pairs that fail, or do not settle, again and
// again.
func (res *results) next(s suite, session, wanted int) *row {
	var least *row
	for _, w := range s.Workloads {
		for _, server := range s.Servers {
			x := res.row(w, server)
			if x == nil {
				x = &row{Workload: w, Server: server, Base: s.Base}
				res.Rows = append(res.Rows, x)
			}
			if x.Failed < 3 && x.Unsettled <= 10+3*len(x.Session) && x.repetitions(session) < wanted && (least == nil || x.repetitions(session) < least.repetitions(session)) {
				least = x
			}
		}
	}
	return least
}

// newPair makes the pair of a row.
func newPair(x *row, m mode, built build, cal *calibrator) (*pair, error) {
	w, err := workloadOf(x.Workload)
	if err != nil {
		return nil, err
	}
	p := &pair{
		cal:     cal,
		counted: len(x.Of["calls"]) < 2, // counts differ little between repetitions
		swapped: len(x.Session)%2 == 1,
	}
	for _, side := range []struct {
		of   *side
		name string
	}{{&p.a, x.Base}, {&p.b, x.Server}} {
		side.of.mode, side.of.workload, side.of.build, side.of.tools = m, w, built, built
		if side.of.server, err = findServer(side.name, w.Family); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// newBuild makes a build in dir with the rondo at root.
func newBuild(dir, root string) (build, error) {
	b := build{}
	var err error
	if b.dir, err = filepath.Abs(dir); err != nil {
		return b, err
	}
	b.root, err = filepath.Abs(root)
	return b, err
}

// programsOf returns the programs that a suite and the calibration need.
func programsOf(s suite) []string {
	programs := []string{"epoll", "load"}
	for _, name := range s.Workloads {
		w, err := workloadOf(name)
		if err != nil {
			continue
		}
		if w.client != "" {
			programs = append(programs, w.client)
		}
		if backend := w.backendProgram(); backend != "" {
			programs = append(programs, backend)
		}
		for _, name := range append([]string{s.Base}, s.Servers...) {
			if server, err := findServer(name, w.Family); err == nil && server.program != "" {
				programs = append(programs, server.program)
			}
		}
	}
	return programs
}

// report prints the ratios of a suite.
func report(res *results, s suite) {
	for _, w := range s.Workloads {
		fmt.Printf("\n%s, %s, to %s:\n", w, res.Mode, s.Base)
		for _, server := range s.Servers {
			x := res.row(w, server)
			if x == nil {
				continue
			}
			fmt.Printf("  %-24s %s\n", server, x.text())
		}
	}
}

// text sums a row up in a line.
func (x *row) text() string {
	if len(x.Session) == 0 {
		return "failed: " + x.Error
	}
	text := fmt.Sprintf("%2d repetitions", len(x.Session))
	for _, m := range metrics {
		if r := x.ratio(m.name, -1); r.N > 0 {
			text += fmt.Sprintf("; %s %v", m.short, r)
		} else if v, ok := x.value(m.name, false); ok && m.absolute {
			base, _ := x.value(m.name, true)
			text += fmt.Sprintf("; %s %.4g to %.4g", m.short, v, base)
		}
	}
	return text
}

// A metric is a kind of figure.
type metric struct {
	name, short, title string // %s in title stands for the workload's unit
	absolute           bool   // printed as values rather than as a ratio
}

var metrics = []metric{
	{"rate", "requests", "%ss a second", false},
	{"cpu", "CPU", "CPU time of the server for each %s", false},
	{"p50", "p50", "median latency", false},
	{"p99", "p99", "99th percentile of latency", false},
	{"calls", "system calls", "system calls of the server for each %s", true},
	{"instructions", "instructions", "instructions of the server for each %s", true},
	{"allocs", "allocations", "allocations for each %s", true},
	{"idle", "B idle", "resident bytes for each idle %s", true},
	{"echoed", "B after an echo", "resident bytes for each idle %s after an echo", true},
}
