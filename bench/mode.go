package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A mode says on which CPUs server and client run.
type mode struct {
	name      string
	serverCPU int // or anyCPU
	clientCPU int
	loops     int // event loops of a server: one for each of its CPUs
	clients   int // load generators, each with one thread
}

// modeTitles describe the modes.
var modeTitles = map[string]string{
	"pinned": "Pinned: server on one CPU with GOMAXPROCS=1, client on another",
	"free":   "Free: server and client on all CPUs",
	"costs":  "Nanoseconds for each operation, on one thread and on a thread for each CPU at once",
}

// modeNamed makes a mode from the CPUs that this program may use.
func modeNamed(name string) (mode, error) {
	cpus, err := allowedCPUs()
	switch {
	case err != nil:
		return mode{}, err
	case name == "free":
		return mode{name, anyCPU, anyCPU, len(cpus), max(1, len(cpus)/2)}, nil
	case len(cpus) < 2:
		return mode{}, errors.New("mode pinned needs two CPUs: choose a suite whose mode is free")
	default:
		return mode{name, cpus[0], cpus[1], 1, 1}, nil
	}
}

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

// raiseFileLimit raises the limit of descriptors to the hard limit, for this
// program and its children.
func raiseFileLimit() error {
	const need = 2*8192 + 100 // for a completions case with both ends
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	limit.Cur = limit.Max
	if limit.Cur < need {
		return fmt.Errorf("the limit of descriptors is %d: want %d, see \"ulimit -n\"", limit.Cur, need)
	}
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}
