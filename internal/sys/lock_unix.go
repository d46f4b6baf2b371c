//go:build unix

package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// LockFile locks a file for this process, without waiting. The lock ends when f closes, or the
// process ends. It returns ErrLocked if another open file has the lock.
func LockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return os.NewSyscallError("flock", err)
}
