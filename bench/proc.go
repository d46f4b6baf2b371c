package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// residentBytes returns the resident memory of a process.
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
			return 0, fmt.Errorf("%q: want a size in kB", strings.TrimSpace(line))
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
