package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Go's collector heeds GOMEMLIMIT, and not the limit of a container: a heap that may double
// between two collections would be too much for a small one. So the program sets the limit
// itself, to what the container leaves for Go. What else the process has (the keys of rondo
// redis, io_uring's buffers) changes, and so the limit does.

// A heapLimit keeps Go's memory within a container's.
type heapLimit struct {
	container uint64                 // bytes that the container may have
	resident  func() (uint64, error) // bytes of this process in memory
	apply     func(bytes int64) int64

	set uint64 // the present limit
}

// newHeapLimit returns nil if there is no container with a limit, or if the user has set one.
func newHeapLimit(log *slog.Logger) *heapLimit {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	container, err := memlimit.FromCgroup()
	if err != nil { // there is no limit, or no cgroup
		return nil
	}
	log.Debug("the container's limit bounds Go's memory", "bytes", container)
	return &heapLimit{container: container, resident: residentMemory, apply: debug.SetMemoryLimit}
}

// adjust sets the limit. held is how much Go has of the process's memory.
func (h *heapLimit) adjust(held uint64) {
	resident, err := h.resident()
	if err != nil {
		return
	}
	others := resident - min(held, resident)
	most := h.container / 10 * 9 // the rest is the kernel's: sockets and page tables
	// With less than a quarter the collector would run all the time, and not help: it is not
	// Go's memory that is too much.
	limit := max(most-min(others, most), h.container/4)
	if difference := max(limit, h.set) - min(limit, h.set); difference > h.container/64 {
		h.set = limit
		h.apply(int64(limit))
	}
}

// residentMemory returns how much of this process is in memory, on Linux.
func residentMemory() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var all, pages uint64
	if _, err := fmt.Fscan(bytes.NewReader(text), &all, &pages); err != nil {
		return 0, err
	}
	return pages * uint64(os.Getpagesize()), nil
}
