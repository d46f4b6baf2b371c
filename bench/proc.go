package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc/PID/stat: Linux's USER_HZ, which is
// 100 on every architecture that Go supports.
const clockTick = time.Second / 100

// cpuTime is the time that a process has used, in user and system mode.
func cpuTime(pid int) (time.Duration, error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	t, err := parseStat(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// parseStat reads utime and stime, fields 14 and 15. Field 2, the command's
// name, may hold anything; fields are counted from its closing parenthesis.
func parseStat(stat []byte) (time.Duration, error) {
	const first, utime, stime = 3, 14, 15
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime-first {
		return 0, fmt.Errorf("%d fields after the name: want more than %d", len(fields), stime-first)
	}
	var ticks uint64
	for _, f := range fields[utime-first : stime-first+1] {
		n, err := strconv.ParseUint(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("utime or stime: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
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
