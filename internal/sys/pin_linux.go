package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// PinThread keeps the calling thread on one CPU.
func PinThread(cpu int) error {
	if cpu < 0 {
		return os.NewSyscallError("sched_setaffinity", unix.EINVAL) // the set would take it for another one
	}
	var set unix.CPUSet
	set.Set(cpu)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &set))
}
