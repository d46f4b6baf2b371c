package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A mode says where server and client run.
type mode struct {
	name      string
	serverCPU int // or anyCPU
	clientCPU int
	loops     int // of a server: as many as it has CPUs
	threads   int // of the load generator
}

var modeTitles = map[string]string{
	"pinned": "server on one CPU with GOMAXPROCS=1, client on another",
	"free":   "server and client on all CPUs",
}

// parseModes reads the names of modes.
func parseModes(names []string) ([]mode, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	var modes []mode
	for _, name := range names {
		switch name {
		case "free":
			modes = append(modes, mode{name, anyCPU, anyCPU, len(cpus), max(1, len(cpus)/2)})
		case "pinned":
			if len(cpus) < 2 {
				return nil, errors.New("mode pinned needs two CPUs: choose --modes free")
			}
			modes = append(modes, mode{name, cpus[0], cpus[1], 1, 1})
		default:
			return nil, fmt.Errorf("no mode %q: choose among %s", name, strings.Join(modeNames, ", "))
		}
	}
	return modes, nil
}

var modeNames = []string{"pinned", "free"}

// allowedCPUs lists the CPUs that this program may run on.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
