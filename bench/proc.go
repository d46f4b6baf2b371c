package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the time that a process has used, in user and system mode and in
// all of its threads. It is that of the process's own clock (as
// clock_getcpuclockid(3) gives it), in nanoseconds: /proc/PID/stat counts in
// hundredths of a second.
func cpuTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, os.NewSyscallError("clock_gettime", err))
	}
	return time.Duration(t.Nano()), nil
}

// residentBytes is the memory of a process that is in RAM.
func residentBytes(pid int) (int64, error) {
	name := fmt.Sprintf("/proc/%d/status", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	n, err := parseResident(string(b))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func parseResident(status string) (int64, error) {
	for _, line := range strings.Split(status, "\n") {
		rest, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kib, ok := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		n, err := strconv.ParseInt(kib, 10, 64)
		if !ok || err != nil {
			return 0, fmt.Errorf("%q is no size in kB", strings.TrimSpace(line))
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("no VmRSS: the process has ended")
}

// openFiles counts the descriptors of a process.
func openFiles(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}
