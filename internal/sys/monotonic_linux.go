package sys

import "golang.org/x/sys/unix"

// Monotonic returns the microseconds of the system's clock CLOCK_MONOTONIC.
func Monotonic() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano() / 1000
}
