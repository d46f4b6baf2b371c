package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type runCommand struct {
	Suites      []string      `help:"Suites, separated by commas. See list. Default: all." placeholder:"NAME" xor:"choice"`
	Servers     []string      `help:"Instead of suites: servers, separated by commas, or all; NAME@N gives one N event loops; rondo-* is all that begin so. See list." placeholder:"NAME"`
	Workloads   []string      `help:"Instead of suites: workloads, likewise." placeholder:"NAME"`
	Modes       []string      `help:"pinned: server on one CPU with GOMAXPROCS=1, client on another. free: both on all CPUs. Default: both, or as the suite says." placeholder:"NAME"`
	Repetitions int           `help:"Times that each server runs under each workload. Default: 7; with --quick 3." placeholder:"N"`
	Duration    time.Duration `help:"Time measured in a run. Default: 500ms; with --quick 300ms." placeholder:"TIME"`
	Warmup      time.Duration `help:"Time before it that is not measured. Default: 200ms; with --quick 100ms." placeholder:"TIME"`
	Quick       bool          `help:"Few servers, short runs, and an end within two minutes: for a look, not for figures to quote."`
	Prepare     bool          `help:"Build what is needed and measure nothing: --append will."`
	Append      bool          `help:"Go on with the run that is in --out, as that was planned. --repetitions may change."`
	For         time.Duration `help:"End after about so long, between two workloads, with exit code 3 if something is left for --append." placeholder:"TIME"`
	Retries     int           `help:"Times that a run is made again during which other processes used more than a fifth of a CPU." default:"0" placeholder:"N"`
	Out         string        `help:"Directory for results.md, results.json, the charts and the programs." default:"out" placeholder:"DIR"`
	Update      string        `help:"docs: when all is measured, also put the results into ../docs/benchmarks.md." enum:",docs" default:"" placeholder:"docs"`
}

// Help is the end of "bench run --help".
func (*runCommand) Help() string {
	return `Each repetition runs every server under every workload, servers next to each other and beginning with another one each time. Figures are medians, and the middle half of the repetitions is shown; ratios are those within a repetition. An interrupt stops the servers and keeps what there is.

A long run may be made in parts, whenever the machine is quiet:

  go run . run --prepare
  out/bin/bench run --append --for 50s --retries 2     (again and again, until it exits with 0)`
}

// quickLimit is when --quick ends, finished or not; to write takes little more.
const quickLimit = 100 * time.Second

// defaults fills in what was not given.
func (c *runCommand) defaults() {
	repetitions, duration, warmup := 7, 500*time.Millisecond, 200*time.Millisecond
	if c.Quick {
		repetitions, duration, warmup = 3, 300*time.Millisecond, 100*time.Millisecond
	}
	if c.Repetitions == 0 {
		c.Repetitions = repetitions
	}
	if c.Duration == 0 {
		c.Duration = duration
	}
	if c.Warmup == 0 {
		c.Warmup = warmup
	}
}

// check finds choices that go together with no other.
func (c *runCommand) check() error {
	chosen := len(c.Suites)+len(c.Servers)+len(c.Workloads) > 0
	switch {
	case c.Repetitions < 0 || c.Duration < 0 || c.Warmup < 0 || c.For < 0 || c.Retries < 0:
		return errors.New("--repetitions, --duration, --warmup, --for and --retries must be positive")
	case c.Append && (chosen || c.Quick || c.Prepare || len(c.Modes) > 0 || c.Duration > 0 || c.Warmup > 0):
		return errors.New("--append goes on as was planned: only --repetitions, --for, --retries, --out and --update may be given with it")
	case len(c.Suites) > 0 && len(c.Servers)+len(c.Workloads) > 0:
		return errors.New("--suites: give these, or --servers and --workloads")
	}
	return nil
}

// errUnfinished is the end of a run with --for that has more to measure.
var errUnfinished = errors.New("there is more to measure: go on with --append")

// Run measures and writes.
func (c *runCommand) Run() error {
	began := time.Now()
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := c.plan(ctx)
	if err != nil {
		return err
	}
	if c.Prepare {
		return p.results.save(p.file)
	}
	timed, cancel := ctx, func() {}
	if p.results.Quick {
		timed, cancel = context.WithDeadline(ctx, began.Add(quickLimit))
	}
	defer cancel()
	p.retries = c.Retries
	if c.For > 0 {
		p.until = began.Add(c.For)
	}
	err = p.run(timed)
	switch {
	case errors.Is(err, errUnfinished):
		fmt.Fprintf(os.Stderr, "%d of %d runs are measured\n", len(p.results.Runs), p.total())
		return err
	case err != nil:
		return err
	case len(p.results.Runs) == 0:
		return errors.New("ended before anything was measured")
	}
	if err := write(p.results, c.Out, c.Update); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: not everything was measured; --append goes on")
	}
	return nil
}

// plan makes a new run, or reads one to go on with.
func (c *runCommand) plan(ctx context.Context) (*plan, error) {
	file, bin := filepath.Join(c.Out, "results.json"), filepath.Join(c.Out, "bin")
	if c.Append {
		res, err := loadResults(file)
		if err != nil {
			return nil, fmt.Errorf("--append: %w", err)
		}
		if here := thisMachine(); here.String() != res.Machine.String() {
			return nil, fmt.Errorf("--append: %s is of another machine (%s) than this one (%s): begin a new run without --append", file, res.Machine, here)
		}
		if c.Repetitions > 0 {
			res.Repetitions = c.Repetitions
		}
		programs, err := reuse(bin)
		if err != nil {
			return nil, err
		}
		return newPlan(res, programs, file)
	}
	c.defaults()
	res, err := c.newResults()
	if err != nil {
		return nil, err
	}
	with, err := needs(res.Suites)
	if err != nil {
		return nil, err
	}
	programs, err := build(ctx, bin, with)
	if err != nil {
		return nil, err
	}
	return newPlan(res, programs, file)
}

// newResults are of a run that is to be made.
func (c *runCommand) newResults() (*results, error) {
	r := &results{
		Began: time.Now().UTC(), Machine: thisMachine(), Repetitions: c.Repetitions,
		Seconds: c.Duration.Seconds(), Warmup: c.Warmup.Seconds(), Quick: c.Quick,
	}
	if err := callsCountable(); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("System calls could not be counted (%v).", err))
	} else {
		r.Counted = min(c.Duration, 100*time.Millisecond).Seconds()
	}
	var err error
	switch {
	case len(c.Servers)+len(c.Workloads) > 0:
		var s suite
		s, err = chosenSuite(c.Servers, c.Workloads, c.Modes)
		r.Suites = []suite{s}
	case c.Quick && len(c.Suites) == 0:
		r.Suites = []suite{quickSuite}
	default:
		r.Suites, err = parseSuites(c.Suites)
	}
	if err != nil {
		return nil, err
	}
	return r, r.possible(c.Modes)
}
