package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type runCommand struct {
	Servers     []string      `help:"Servers, separated by commas, or all; NAME@N gives one N event loops. See list. Default: all; with --quick one of each library." placeholder:"NAME"`
	Workloads   []string      `help:"Workloads, separated by commas, or all; redis-* is all that begin so. See list. Default: all; with --quick one of each kind." placeholder:"NAME"`
	Modes       []string      `help:"pinned: server on one CPU with GOMAXPROCS=1, client on another. free: both on all CPUs. Default: both; with --quick pinned." placeholder:"NAME"`
	Repetitions int           `help:"Times that each server runs under each workload. Default: 5; with --quick 3." placeholder:"N"`
	Duration    time.Duration `help:"Time measured in a run. Default: 3s; with --quick 300ms." placeholder:"TIME"`
	Warmup      time.Duration `help:"Time before it that is not measured. Default: 500ms; with --quick 100ms." placeholder:"TIME"`
	Quick       bool          `help:"Few servers, short runs, and an end within two minutes: for a look, not for figures to quote."`
	Out         string        `help:"Directory for results.md, results.json and the charts." default:"out" placeholder:"DIR"`
	Update      string        `help:"docs: also put the results into ../docs/benchmarks.md." enum:",docs" default:"" placeholder:"docs"`
}

// Help is the end of "bench run --help".
func (*runCommand) Help() string {
	return `Each repetition runs every server under every workload, servers next to each other and beginning with another one each time. Figures are medians; ratios are medians of the ratios within a repetition. An interrupt stops the servers and writes what there is.`
}

// quickLimit is when --quick ends, finished or not; to write takes little more.
const quickLimit = 100 * time.Second

var quickServers = []string{limitServer, redisServer, "rondo-epoll", "gnet", "nbio", "gaio", "evio", "netpoll", "redcon", "net"}

// defaults fills in what was not given.
func (c *runCommand) defaults() {
	servers, names, modes := []string{"all"}, []string{"all"}, modeNames
	repetitions, duration, warmup := 5, 3*time.Second, 500*time.Millisecond
	if c.Quick {
		servers, names, modes = quickServers, nil, modeNames[:1]
		for _, w := range workloads {
			if w.quick {
				names = append(names, w.Name)
			}
		}
		repetitions, duration, warmup = 3, 300*time.Millisecond, 100*time.Millisecond
		if cpus, err := allowedCPUs(); err == nil && len(cpus) < 2 {
			modes = []string{"free"}
		}
	}
	if len(c.Servers) == 0 {
		c.Servers = servers
	}
	if len(c.Workloads) == 0 {
		c.Workloads = names
	}
	if len(c.Modes) == 0 {
		c.Modes = modes
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

// Run measures and writes.
func (c *runCommand) Run() error {
	began := time.Now()
	c.defaults()
	plan, err := c.plan()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "rondo-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if plan.rig.programs, err = build(ctx, dir, plan.needsRondo()); err != nil {
		return err
	}
	timed, cancel := ctx, func() {}
	if plan.quick = c.Quick; c.Quick {
		timed, cancel = context.WithDeadline(ctx, began.Add(quickLimit))
	}
	defer cancel()
	res := plan.run(timed)
	if len(res.Runs) == 0 {
		return errors.New("ended before anything was measured")
	}
	if err := write(res, c.Out, c.Update); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: not everything was measured")
	}
	return nil
}

// A plan is what will be run.
type plan struct {
	rig         rig
	servers     []server
	workloads   []workload
	modes       []mode
	repetitions int
	quick       bool
	notes       []string
}

func (c *runCommand) plan() (*plan, error) {
	if c.Repetitions < 0 || c.Duration < 0 || c.Warmup < 0 {
		return nil, errors.New("--repetitions, --duration and --warmup must be positive")
	}
	p := &plan{repetitions: c.Repetitions, rig: rig{warmup: c.Warmup, measured: c.Duration}}
	var err error
	if p.servers, err = parseServers(c.Servers); err != nil {
		return nil, err
	}
	if p.workloads, err = parseWorkloads(c.Workloads); err != nil {
		return nil, err
	}
	if p.modes, err = parseModes(c.Modes); err != nil {
		return nil, err
	}
	if p.rig.maxConns, err = raiseFileLimit(); err != nil {
		return nil, err
	}
	if p.rig.maxConns < mostConns {
		p.notes = append(p.notes, fmt.Sprintf("The limit of descriptors allows %s; workloads with more run with so many.", connsText(p.rig.maxConns)))
	}
	return p, p.dropRedis()
}

// dropRedis leaves out what needs Redis's programs where those are missing.
func (p *plan) dropRedis() error {
	redis := func(w workload) bool { return w.Family == "redis" }
	if !slices.ContainsFunc(p.workloads, redis) {
		return nil
	}
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		p.workloads = slices.DeleteFunc(p.workloads, redis)
		p.notes = append(p.notes, "redis-benchmark is not installed: the Redis workloads were left out.")
	} else if _, err := exec.LookPath(redisServer); err != nil {
		p.servers = slices.DeleteFunc(p.servers, func(s server) bool { return s.base == redisServer })
		p.notes = append(p.notes, "redis-server is not installed: it was left out.")
	}
	if len(p.workloads) == 0 {
		return errors.New("redis-benchmark is not installed: install Debian's redis-tools, or choose other workloads")
	}
	return nil
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

func (p *plan) needsRondo() bool {
	redis := slices.ContainsFunc(p.workloads, func(w workload) bool { return w.Family == "redis" })
	return redis && slices.ContainsFunc(p.servers, server.isRondo)
}

// A step is one run to come.
type step struct {
	repetition int
	mode       mode
	workload   workload
	server     server
}

// steps orders the runs. Servers under the same workload are neighbours in
// time, and another is the first of them in each repetition.
func (p *plan) steps() []step {
	var steps []step
	for r := range p.repetitions {
		for i, m := range p.modes {
			for _, w := range p.workloads {
				if w.once && (i > 0 || p.quick && r > 0) {
					continue
				}
				var able []server
				for _, s := range p.servers {
					if s.serves(w.Family) {
						able = append(able, s)
					}
				}
				for j := range able {
					steps = append(steps, step{r, m, w, able[(j+r)%len(able)]})
				}
			}
		}
	}
	return steps
}

// run takes all steps, unless the context ends before.
func (p *plan) run(ctx context.Context) *results {
	res := &results{
		Date: time.Now().UTC(), Machine: thisMachine(), Repetitions: p.repetitions,
		Seconds: p.rig.measured.Seconds(), Warmup: p.rig.warmup.Seconds(),
		Workloads: p.workloads, Notes: p.notes,
	}
	for _, m := range p.modes {
		res.Modes = append(res.Modes, m.name)
	}
	for _, s := range p.servers {
		res.Servers = append(res.Servers, s.name)
	}
	steps := p.steps()
	for i, s := range steps {
		f, err := p.rig.take(ctx, s)
		if ctx.Err() != nil { // what err says is no fault of the server
			res.Notes = append(res.Notes, fmt.Sprintf("Ended early, after %d of %d runs.", i, len(steps)))
			break
		}
		x := run{Mode: s.mode.name, Workload: s.workload.Name, Server: s.server.name, Repetition: s.repetition, figures: f}
		if err != nil {
			x.Error, x.figures = strings.TrimSpace(err.Error()), figures{}
		}
		res.Runs = append(res.Runs, x)
		fmt.Fprintf(os.Stderr, "%d/%d %s\n", i+1, len(steps), x)
	}
	res.summarize()
	return res
}

func (x run) String() string {
	what := fmt.Sprintf("%-6s %-13s %-16s ", x.Mode, x.Workload, x.Server)
	switch {
	case x.Error != "":
		return what + "FAILED: " + x.Error
	case x.PerSecond == 0:
		return what + fmt.Sprintf("%.0f B idle, %.0f B after an echo", x.IdleBytes, x.EchoedBytes)
	}
	return what + fmt.Sprintf("%s/s, %.2f us CPU each", thousands(x.PerSecond), x.CPU)
}

// take starts a server, measures it and kills it, all within a deadline.
func (r *rig) take(ctx context.Context, s step) (figures, error) {
	const patience = 20 * time.Second // for connecting, and what a loaded machine takes
	limit := r.warmup + 2*r.measured + patience
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t, err := r.programs.start(timed, s.mode, s.server, s.workload.Family)
	if err != nil {
		return figures{}, err
	}
	defer t.stop()
	f, err := s.workload.measure(timed, r, t)
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
