package sys

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// leastRoom is what the table has room for from the beginning: 32 KiB of the kernel's
// memory.
const leastRoom = 4096

// room is how many descriptors there is room for, or soon will be.
var room atomic.Int64

// Room makes room for more descriptors, without waiting for it, when half of it is
// used. fd is one that was opened.
//
// The kernel's table doubles when it is full. In a process of several threads that
// takes a grace period of RCU, 10 to 25 ms (expand_fdtable in fs/file.c), for which
// every thread that opens something waits: all loops at once, and most often where
// many clients connect at the same time. A table that is not full yet grows while the
// others go on using it.
func Room(fd int) {
	has := room.Load()
	if int64(fd) < has/2 {
		return
	}
	most := max(4*int64(fd), leastRoom)
	if room.CompareAndSwap(has, most) {
		go makeRoom(most)
	}
}

// makeRoom opens a descriptor with a high number, for a moment.
func makeRoom(n int64) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return // there is none left, and no room needed
	}
	defer unix.Close(fd)
	last := min(uint64(n), limit.Cur) - 1
	if high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, int(last)); err == nil {
		unix.Close(high)
	}
}
