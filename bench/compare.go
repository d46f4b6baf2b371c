package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type compareCommand struct {
	A         string        `arg:"" help:"The base: a commit, a directory with rondo's source, or a server program built from bench/server."`
	B         string        `arg:"" help:"What to compare with A: a commit, directory or program, as for A."`
	Suite     string        `help:"Suite whose rondo servers are compared, each with itself at the other commit." default:"peers" placeholder:"NAME"`
	Servers   []string      `help:"Only these servers of the suite, separated by commas; patterns are allowed." default:"rondo-*" placeholder:"NAME"`
	Workloads []string      `help:"Only these workloads of the suite, in the same form." placeholder:"NAME"`
	For       time.Duration `help:"Time for each server under each workload." default:"40s" placeholder:"TIME"`
	Turns     int           `help:"Slices of load of one server of a pair in a repetition, each between two of the other." default:"6" placeholder:"N"`
	Burn      time.Duration `help:"CPU time that B's echo servers burn for each message, to see whether the comparison detects it." placeholder:"TIME"`
	Count     bool          `help:"Count instructions with valgrind if perf cannot." default:"true" negatable:""`
	Trace     bool          `help:"Print every slice."`
}

// Help is the end of "bench compare --help".
func (*compareCommand) Help() string {
	return `Ratios are B to A: more requests and less CPU time are better. Intervals contain the median with 95% confidence. "differs" marks a point whose requests or CPU time differ with 99% confidence; ~ marks an interval wider than 5% to each side.

The servers of this directory are built with the rondo of each commit. If they do not compile with it, the commit's own servers are measured. Instructions are those of the server, without the kernel; cachegrind counts them in a separate run.

  go run . compare 310dc32 HEAD --workloads echo-64-50
  go run . compare HEAD . --suite redis           (uncommitted changes)
  go run . compare HEAD HEAD                      (how large is the noise?)
  go run . compare HEAD HEAD --burn 200ns         (does it detect 3%?)`
}

// Run compares.
func (c *compareCommand) Run(ctx context.Context) (err error) {
	s, err := chosenSuite(c.Suite, c.Servers, c.Workloads)
	if err != nil {
		return err
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bench-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tools, err := newBuild(filepath.Join(work, "tools"), "..")
	if err != nil {
		return err
	}
	programs := programsOf(s)
	if err := tools.make(ctx, programs); err != nil {
		return err
	}
	var builds [2]build
	for i, of := range []string{c.A, c.B} {
		var done func()
		builds[i], done, err = c.build(ctx, of, filepath.Join(work, fmt.Sprint(i)), programs)
		if err != nil {
			return err
		}
		defer done()
	}
	if c.Burn > 0 {
		builds[1].env = []string{"RONDO_BENCH_BURN=" + c.Burn.String()}
	}
	m, err := modeNamed(s.Mode)
	if err != nil {
		return err
	}
	cal, err := newCalibrator(ctx, m, tools)
	if err != nil {
		return err
	}
	defer cal.close()
	fmt.Printf("%s to %s, suite %s, %s\n", c.B, c.A, s.Name, modeTitles[s.Mode])
	return c.points(ctx, s, m, builds, tools, cal)
}

// points measures each server under each workload.
func (c *compareCommand) points(ctx context.Context, s suite, m mode, builds [2]build, tools build, cal *calibrator) error {
	names := s.Servers
	if ok := matching([]string{s.Base}, c.Servers); len(ok) > 0 {
		names = append(ok, names...)
	}
	points, differ := 0, 0
	for _, w := range s.Workloads {
		for _, name := range names {
			x := &row{Workload: w, Server: name, Base: name}
			p, err := newPair(x, m, tools, cal)
			if err != nil {
				return err
			}
			p.a.build, p.b.build, p.turns = builds[0], builds[1], p.a.workload.turns(c.Turns)
			if c.Trace {
				p.trace = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format, args...) }
			}
			points++
			if err := c.point(ctx, p, x); errors.Is(err, errUnsettled) {
				fmt.Printf("%-14s %-16s %v: not measured\n", w, name, err)
				continue
			} else if err != nil {
				return err
			}
			verdict := "no difference detected"
			if x.ratio("rate", -1).differs() || x.ratio("cpu", -1).differs() {
				differ++
				verdict = "differs"
			}
			if err := c.instructions(ctx, p, x); err != nil {
				verdict = fmt.Sprintf("instructions not available (%v); ", err) + verdict
			}
			fmt.Printf("%-14s %-16s %s: %s\n", w, name, x.text(), verdict)
		}
	}
	fmt.Printf("%d of %d points differ\n", differ, points)
	return nil
}

// point measures a pair for the given time.
func (c *compareCommand) point(ctx context.Context, p *pair, x *row) error {
	const fewest, patience = 8, 5
	for begin := time.Now(); len(x.Session) < fewest || time.Since(begin) < c.For; {
		p.counted, p.swapped = len(x.Session) == 0, len(x.Session)%2 == 1
		r, err := p.repeat(ctx)
		if errors.Is(err, errUnsettled) && time.Since(begin) < patience*c.For {
			continue
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		x.add(r, 0)
		if p.a.workload.memory && len(x.Session) == fewest {
			break
		}
	}
	return nil
}

// instructions counts a pair's instructions with valgrind, unless perf has
// counted them.
func (c *compareCommand) instructions(ctx context.Context, p *pair, x *row) error {
	if !c.Count || len(x.Of["instructions"]) > 0 || p.a.workload.memory || p.a.workload.once {
		return nil
	}
	a, err := p.a.instructions(ctx)
	if err != nil {
		return err
	}
	b, err := p.b.instructions(ctx)
	x.Of["instructions"], x.OfBase["instructions"] = []float64{b}, []float64{a}
	return err
}

// build builds a commit, a directory or a program.
func (c *compareCommand) build(ctx context.Context, of, dir string, programs []string) (b build, done func(), err error) {
	done = func() {}
	if info, err := os.Stat(of); err == nil && !info.IsDir() {
		b, err = newBuild(dir, "..")
		if err != nil {
			return b, done, err
		}
		program, err := filepath.Abs(of)
		if err != nil {
			return b, done, err
		}
		if err := os.MkdirAll(b.dir, 0o777); err != nil {
			return b, done, err
		}
		return b, done, os.Symlink(program, b.path("server"))
	}
	root := of
	if _, err := os.Stat(filepath.Join(of, "go.mod")); errors.Is(err, os.ErrNotExist) || of == "." {
		root = ".."
	}
	if _, err := os.Stat(filepath.Join(of, "go.mod")); err != nil && of != "." {
		root = dir + "-source"
		if out, err := exec.CommandContext(ctx, "git", "worktree", "add", "--detach", root, of).CombinedOutput(); err != nil {
			return b, done, fmt.Errorf("%s is neither a commit nor a directory with rondo's source: %s", of, strings.TrimSpace(string(out)))
		}
		done = func() { exec.Command("git", "worktree", "remove", "--force", root).Run() }
	}
	if b, err = newBuild(dir, root); err != nil {
		return b, done, err
	}
	return b, done, b.make(ctx, programs)
}
