//go:build unix

package sys

import "golang.org/x/sys/unix"

// OpenFiles returns how many descriptors the process may have open. known is false if
// there is no such limit.
func OpenFiles() (limit uint64, known bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, false
	}
	return uint64(r.Cur), true
}

// RaiseOpenFiles raises the limit of open descriptors to at least n. It may need
// privileges.
func RaiseOpenFiles(n uint64) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || uint64(r.Cur) >= n {
		return err
	}
	atLeast(&r.Cur, n)
	atLeast(&r.Max, n)
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &r)
}

// atLeast raises a limit to n. The type of limits differs between systems.
func atLeast[T int64 | uint64](limit *T, n uint64) {
	if uint64(*limit) < n {
		*limit = T(n)
	}
}
