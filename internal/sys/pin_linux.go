package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// PinThread pins the calling thread to one CPU.
func PinThread(cpu int) error {
	if cpu < 0 {
		return os.NewSyscallError("sched_setaffinity", unix.EINVAL) // set.Set would use another CPU
	}
	var set unix.CPUSet
	set.Set(cpu)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &set))
}
