package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// count uses perf to count, for each message of a slice, the server's system
// calls and the instructions it executes outside of the kernel. It leaves out
// what this machine cannot count. The server is slower meanwhile, so nothing
// else is measured then.
func (s *side) count(ctx context.Context) (figures, error) {
	f := figures{}
	perf, err := spawnClient(ctx, anyCPU, "perf", "stat", "-x;", "-e", "raw_syscalls:sys_enter,instructions:u",
		"-p", strconv.Itoa(s.pid()), "--", "sh", "-c", "echo {}; read line")
	if err != nil {
		return f, nil // perf is not installed
	}
	defer perf.stop()
	if perf.ask("", &f) != nil {
		return f, nil // perf is not allowed to count
	}
	x, err := s.slice(ctx, s.workload.slice/2, 0)
	if err != nil {
		return f, err
	}
	perf.stdin.Close()
	perf.wait()
	for line := range strings.Lines(perf.said.String()) {
		fields := strings.Split(line, ";")
		for metric, event := range map[string]string{"calls": "raw_syscalls:sys_enter", "instructions": "instructions:u"} {
			if n, err := strconv.ParseFloat(fields[0], 64); err == nil && len(fields) > 2 && fields[2] == event {
				f[metric] = n / x.All
			}
		}
	}
	return f, nil
}

// instructions counts with cachegrind, for machines on which perf cannot, such
// as many virtual ones. cachegrind counts until the end of the program, so the
// program runs twice: with little load and with more.
func (s *side) instructions(ctx context.Context) (float64, error) {
	var refs, messages [2]float64
	for i := range refs {
		var err error
		if refs[i], messages[i], err = s.cachegrind(ctx, time.Duration(i)*time.Second); err != nil {
			return 0, err
		}
	}
	return (refs[1] - refs[0]) / (messages[1] - messages[0]), nil
}

var refsLine = regexp.MustCompile(`I\s+refs:\s+([0-9,]+)`)

func (s *side) cachegrind(ctx context.Context, load time.Duration) (refs, messages float64, err error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return 0, 0, errors.New("valgrind is not installed")
	}
	log, err := os.CreateTemp("", "cachegrind-")
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	under := *s
	under.under = []string{"valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--log-file=" + log.Name()}
	defer under.close()
	if err := under.open(ctx); err != nil {
		return 0, 0, err
	}
	x, err := under.slice(ctx, 100*time.Millisecond+load, 0)
	if err != nil {
		return 0, 0, err
	}
	if err := under.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, 0, err
	}
	if _, dead := under.died(10 * time.Second); !dead {
		return 0, 0, errors.New("the server did not end under valgrind")
	}
	said, err := os.ReadFile(log.Name())
	if err != nil {
		return 0, 0, err
	}
	m := refsLine.FindSubmatch(said)
	if m == nil {
		return 0, 0, errors.New("the server did not run under valgrind")
	}
	refs, err = strconv.ParseFloat(strings.ReplaceAll(string(m[1]), ",", ""), 64)
	return refs, x.All, err
}
