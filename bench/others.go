package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tooMuch is the share of a CPU from which on other processes disturb a run. The
// kernel's own threads, which clean up after thousands of connections, take up to
// 0.15.
const tooMuch = 0.2

// A meter finds out how much CPU time others use: processes that are neither this
// one nor its children, the kernel's own, and, on a virtual machine, its neighbours.
type meter struct {
	start     time.Time
	busy, own time.Duration
}

func newMeter() (meter, error) {
	m := meter{start: time.Now()}
	var err error
	if m.busy, err = busyTime(); err != nil {
		return m, err
	}
	m.own, err = ownTime()
	return m, err
}

// others is their share of one CPU since the meter was made. Children count that
// have ended and were waited for.
func (m meter) others() (float64, error) {
	now, err := newMeter()
	if err != nil {
		return 0, err
	}
	theirs := now.busy - m.busy - (now.own - m.own)
	return max(0, theirs.Seconds()/now.start.Sub(m.start).Seconds()), nil
}

// busyTime is the time that the machine's CPUs were not idle, to a few hundredths
// of a second.
func busyTime() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(b)
}

// parseBusy adds up the first line of /proc/stat: user, nice, system, irq, softirq
// and steal, but not idle and iowait; guests are in user. The unit is Linux's
// USER_HZ, which is 100 on every architecture that Go supports.
func parseBusy(stat []byte) (time.Duration, error) {
	const idle, iowait, steal = 4, 5, 8
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) <= steal || string(fields[0]) != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q: want a line of the CPUs' times", line)
	}
	var ticks uint64
	for i := 1; i <= steal; i++ {
		n, err := strconv.ParseUint(string(fields[i]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i != idle && i != iowait {
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100, nil
}

// ownTime is the CPU time of this process and of its children that were waited
// for.
func ownTime() (time.Duration, error) {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return 0, os.NewSyscallError("getrusage", err)
		}
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total, nil
}
