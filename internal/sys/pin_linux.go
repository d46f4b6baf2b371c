package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// PinThread keeps the calling thread on one CPU.
func PinThread(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &set))
}
