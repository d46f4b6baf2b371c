package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A figure is what a server has at a moment.
type figure struct{ memory, goroutines, files int }

// A sample is the figures of all servers.
type sample []struct {
	name string
	figure
}

func (s sample) String() string {
	var b strings.Builder
	for _, f := range s {
		fmt.Fprintf(&b, " %s %.1f MiB, %d goroutines, %d files;", f.name, float64(f.memory)/1024, f.goroutines, f.files)
	}
	return b.String()
}

func (s *servers) sample() (all sample) {
	for _, p := range s.all {
		f, err := p.figure()
		if err != nil {
			fmt.Println(p.name+":", err)
		}
		all = append(all, struct {
			name string
			figure
		}{p.name, f})
	}
	return all
}

// figure returns what the process has: KiB of resident memory, goroutines, and descriptors.
func (p *server) figure() (f figure, err error) {
	proc := "/proc/" + strconv.Itoa(p.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		return f, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			f.memory, err = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		}
	}
	if err != nil {
		return f, err
	}
	files, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return f, err
	}
	f.files = len(files)
	f.goroutines, err = p.goroutines()
	return f, err
}

// watch takes samples while the load lasts, and ends early if a server does.
func (s *servers) watch(ctx context.Context, l *load) (samples []sample, err error) {
	every := min(10*time.Second, *length/20)
	began := time.Now()
	var shown time.Time
	for {
		select {
		case <-ctx.Done():
			return samples, nil
		case <-time.After(every):
		}
		for _, p := range s.all {
			select {
			case <-p.done:
				return samples, fmt.Errorf("%s has ended", p.name)
			default:
			}
		}
		now := s.sample()
		samples = append(samples, now)
		if time.Since(shown) >= time.Minute {
			shown = time.Now()
			fmt.Printf("%8v %s %d requests\n", time.Since(began).Round(time.Second), now, l.requests.Load())
		}
	}
}

// judge compares the second fifth of the samples with the last one: by then the servers have had
// all that the load makes them need.
func judge(samples []sample) error {
	n := len(samples) / 5
	if n == 0 {
		return errors.New("too few samples")
	}
	first, last := samples[n:2*n], samples[len(samples)-n:]
	var problems []error
	for i := range samples[0] {
		for _, what := range []struct {
			name  string
			of    func(figure) int
			slack int
		}{
			{"KiB of memory", func(f figure) int { return f.memory }, 4 << 10},
			{"goroutines", func(f figure) int { return f.goroutines }, 10},
			{"files", func(f figure) int { return f.files }, 10},
		} {
			a, b := median(first, i, what.of), median(last, i, what.of)
			fmt.Printf("%s: %d %s, then %d\n", samples[0][i].name, a, what.name, b)
			if b > a+a/10+what.slack {
				problems = append(problems, fmt.Errorf("%s has grown from %d to %d %s", samples[0][i].name, a, b, what.name))
			}
		}
	}
	return errors.Join(problems...)
}

func median(samples []sample, server int, of func(figure) int) int {
	var all []int
	for _, s := range samples {
		all = append(all, of(s[server].figure))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// settles waits until the servers have no more goroutines and descriptors than before the load.
func (s *servers) settles(before sample) (err error) {
	const slack = 8 // a loop of the proxy keeps a pipe, and a worker may wait for work
	for range 90 {
		err = nil
		for i, f := range s.sample() {
			if f.goroutines > before[i].goroutines+slack || f.files > before[i].files+slack {
				err = errors.Join(err, fmt.Errorf("without load %s keeps %d goroutines and %d files, and had %d and %d",
					f.name, f.goroutines, f.files, before[i].goroutines, before[i].files))
			}
		}
		if err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
