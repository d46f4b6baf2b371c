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

// How far two readings of the machine may lie apart to be one state of it. Virtual
// machines change their speed by far more than that, from one second to the next.
const (
	sameLoop  = 1.15 // of a fixed loop of work, just before and after a slice
	sameLimit = 1.30 // of what the C limit serves, at the two ends of a repetition
	quiet     = 0.10 // of a CPU that other processes may use during a repetition
)

// calibrator finds out how fast the machine is at the moment.
type calibrator struct {
	limit  *side
	memory []byte
}

// newCalibrator keeps a C server and its load for it.
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

// awaitQuiet waits until other processes leave the machine alone, but not forever.
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

// served is what the C limit serves, messages a second.
func (c *calibrator) served(ctx context.Context) (float64, error) {
	x, err := c.limit.slice(ctx, 30*time.Millisecond, 0)
	return x.Messages / x.Seconds, err
}

// work takes the time of a fixed loop on the server's CPU: arithmetic, memory and
// system calls. It is the shortest of some times, so that a moment's interruption is
// no other state.
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

// othersTime is the CPU time that processes other than this one and the given ones
// have used since the machine began, to some hundredths of a second. The kernel's
// ksoftirqd threads deliver packets of the traffic that is measured: they are not
// others. Only differences of the result mean something.
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
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { // as clock_getcpuclockid(3)
			return 0, os.NewSyscallError("clock_gettime", err)
		}
		busy -= time.Duration(t.Nano())
	}
	return busy, nil
}

// softirqThreads are the kernel's threads that take over interrupts' work when there
// is much of it.
var softirqThreads = sync.OnceValue(func() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(comm), "ksoftirqd/") {
			continue // most often a process that has ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
})

// apart tells how far two positive numbers lie apart, as a factor from 1 on.
func apart(a, b float64) float64 {
	return max(a/b, b/a)
}
