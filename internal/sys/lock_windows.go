package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// LockFile locks a file for this process, without waiting. The lock ends when f closes, or the
// process ends. It returns ErrLocked if another open file has the lock.
//
// Windows lets nobody else read what is locked, so the lock is on a byte far behind the content.
func LockFile(f *os.File) error {
	behind := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &behind)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return os.NewSyscallError("LockFileEx", err)
}
