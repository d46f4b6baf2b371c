package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The limits within which two readings of the machine's speed count as the same state.
// Virtual machines change their speed by far more than that from one second to the next.
const (
	sameLoop  = 1.15 // duration of the fixed work, just before and after a slice
	sameLimit = 1.30 // rate of the C limit, at the two ends of a repetition
	quiet     = 0.10 // share of a CPU that other processes may use during a repetition
)

// A calibrator measures the current speed of the machine.
type calibrator struct {
	limit  *side
	memory []byte
}

// newCalibrator starts a C server, with a load generator, for the calibrator.
func newCalibrator(ctx context.Context, m mode, tools build) (*calibrator, error) {
	w, err := workloadOf("echo-64-50")
	if err != nil {
		return nil, err
	}
	s, err := findServer(limitServer, w.Family)
	if err != nil {
		return nil, err
	}
	c := &calibrator{limit: &side{mode: m, workload: w, server: s, build: tools, tools: tools}, memory: make([]byte, 1<<20)}
	if err := c.limit.open(ctx); err != nil {
		c.limit.close()
		return nil, err
	}
	return c, nil
}

func (c *calibrator) close() { c.limit.close() }

// awaitQuiet waits until other processes leave the machine alone, for a minute
// at most.
func (c *calibrator) awaitQuiet(ctx context.Context) error {
	const patience, look = time.Minute, 200 * time.Millisecond
	ours := append([]*process{c.limit.process}, c.limit.clients...)
	for begin := time.Now(); time.Since(begin) < patience && ctx.Err() == nil; {
		before, err := othersTime(ours...)
		if err != nil {
			return err
		}
		time.Sleep(look)
		after, err := othersTime(ours...)
		if err != nil || after-before <= time.Duration(quiet*float64(look)) {
			return err
		}
	}
	return ctx.Err()
}

// served returns the rate of the C limit in messages per second.
func (c *calibrator) served(ctx context.Context) (float64, error) {
	x, err := c.limit.slice(ctx, 30*time.Millisecond, 0)
	return x.Messages / x.Seconds, err
}

// work measures the duration of a fixed loop on the server's CPU: arithmetic,
// memory and system calls. It returns the shortest of several runs, so that a
// short interruption does not count as another state.
func (c *calibrator) work() (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if cpu := c.limit.mode.serverCPU; cpu != anyCPU {
		restore, err := pinThread(cpu)
		if err != nil {
			return 0, err
		}
		defer restore()
	}
	shortest := time.Hour
	for range 4 {
		begin, x := time.Now(), uint32(1)
		for range 50_000 {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
		}
		c.memory[0] = byte(x)
		copy(c.memory[len(c.memory)/4:], c.memory[:len(c.memory)/4])
		for range 250 {
			unix.Getppid()
		}
		shortest = min(shortest, time.Since(begin))
	}
	return shortest, nil
}

// othersTime returns the CPU time that processes other than this one and ours
// have used since the machine started, to some hundredths of a second. It does
// not count the kernel's ksoftirqd threads as others, since they deliver the
// measured traffic. Only differences of the result are meaningful.
func othersTime(ours ...*process) (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var busy time.Duration
	for i, field := range strings.Fields(strings.SplitN(string(stat), "\n", 2)[0]) {
		const idle, iowait, steal = 4, 5, 8
		if n, err := strconv.Atoi(field); err == nil && i != idle && i != iowait && i <= steal {
			busy += time.Duration(n) * time.Second / 100 // Linux's USER_HZ on every architecture that Go supports
		}
	}
	pids := append([]int{os.Getpid()}, softirqThreads()...)
	for _, p := range ours {
		pids = append(pids, p.pid())
	}
	for _, pid := range pids {
		used, err := cpuTime(pid)
		if err != nil {
			return 0, err
		}
		busy -= used
	}
	return busy, nil
}

// cpuTime returns the CPU time that a process has used.
func cpuTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|2), &t) // as clock_getcpuclockid(3)
	return time.Duration(t.Nano()), os.NewSyscallError("clock_gettime", err)
}

// softirqThreads returns the kernel's threads that do the work of interrupts
// when there is much of it.
var softirqThreads = sync.OnceValue(func() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(comm), "ksoftirqd/") {
			continue // usually a process that has ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
})

// apart returns the ratio of two positive numbers, the larger to the smaller.
func apart(a, b float64) float64 {
	return max(a/b, b/a)
}
