package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

type costsCommand struct {
	Repetitions int    `help:"Number of measurements of each cost." default:"6" placeholder:"N"`
	Out         string `help:"Directory for the results file." default:"out" type:"path" placeholder:"DIR"`
}

// Help is the end of "bench costs --help".
func (*costsCommand) Help() string {
	return `Each operation is measured on one thread, and then on a thread for each CPU at the same time. The results are in costs.json, which docs/scale.md shows.`
}

// A cost is an operation that threads do, each for itself or on something that they share.
type cost struct {
	name string
	// prepare makes what so many threads need. do does the operation some times, on the
	// thread with that number; end frees what prepare has made.
	prepare func(threads int) (do func(thread, times int) error, end func(), err error)
	free    bool // the goroutines need no threads of their own
	alone   bool // only the first thread does the operation; the others compute
}

// The names of the two columns.
const (
	oneThread  = "one thread"
	allThreads = "all at once"
)

// Run measures all costs.
func (c *costsCommand) Run(ctx context.Context) error {
	res := &results{Suite: "costs", Mode: "costs", Machine: thisMachine(), Versions: map[string]string{}}
	began := time.Now().UTC().Truncate(time.Second)
	for _, x := range costs {
		res.Rows = append(res.Rows, &row{Workload: x.name, Server: allThreads, Base: oneThread})
	}
	for n := range c.Repetitions {
		for i, x := range costs {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			one, all, err := x.measure()
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			res.Rows[i].add(repetition{Ratio: figures{"ns": all / one}, A: figures{"ns": one}, B: figures{"ns": all}}, 0)
			fmt.Fprintf(os.Stderr, "%d %-24s %10.1f ns %10.1f ns\n", n+1, x.name, one, all)
		}
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	res.Sessions = []session{{Began: began, Ended: time.Now().UTC().Truncate(time.Second), Rondo: commit("..")}}
	return res.save(filepath.Join(c.Out, "costs.json"))
}

// measure returns the time of an operation on one thread and on all at once, in nanoseconds. The
// two alternate, and the least of several times counts: what else the machine does only adds.
func (c cost) measure() (one, all float64, err error) {
	const rounds = 5
	times := 1
	for {
		took, err := c.round(1, times)
		if err != nil {
			return 0, 0, err
		}
		if took > 10*time.Millisecond || times >= 1<<26 {
			break
		}
		times *= 2
	}
	for range rounds {
		for _, x := range []struct {
			threads int
			least   *float64
		}{{1, &one}, {runtime.NumCPU(), &all}} {
			took, err := c.round(x.threads, times)
			if err != nil {
				return 0, 0, err
			}
			if ns := float64(took) / float64(times); *x.least == 0 || ns < *x.least {
				*x.least = ns
			}
		}
	}
	return one, all, nil
}

// round does the operation so many times on each thread, and returns how long the slowest took.
func (c cost) round(threads, times int) (time.Duration, error) {
	do, end, err := c.prepare(threads)
	if err != nil {
		return 0, err
	}
	defer end()
	var ready, done sync.WaitGroup
	begin, stop := make(chan struct{}), make(chan struct{})
	took, failed := make([]time.Duration, threads), make([]error, threads)
	for i := range threads {
		ready.Add(1)
		computes := c.alone && i > 0
		if !computes {
			done.Add(1)
		}
		go func() {
			if !c.free {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			ready.Done()
			<-begin
			if computes {
				compute(stop)
				return
			}
			defer done.Done()
			from := time.Now()
			failed[i] = do(i, times)
			took[i] = time.Since(from)
		}()
	}
	ready.Wait()
	close(begin)
	done.Wait()
	close(stop)
	most := time.Duration(0)
	for _, d := range took {
		most = max(most, d)
	}
	return most, errors.Join(failed...)
}

// compute keeps a processor busy.
func compute(stop chan struct{}) {
	for n := uint64(1); ; n = n*6364136223846793005 + 1 {
		if n&0xfffff == 1 {
			runtime.Gosched()
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}
