package sys

import (
	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/share"
)

// leastRoom is the initial size of the table: 32 KiB of kernel memory.
const leastRoom = 4096

// room is the size that the table has or will soon have.
var room share.Int64

// Room enlarges the table of descriptors in the background when half of it is used. fd
// is a newly opened descriptor.
//
// The kernel doubles a full table. In a process with several threads this takes an RCU
// grace period, 10 to 25 ms (expand_fdtable in fs/file.c). All threads that open a
// descriptor wait for it: all loops at once, usually while many clients connect.
// Threads can go on using a table that grows before it is full.
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

// makeRoom opens a descriptor with a high number and closes it.
func makeRoom(n int64) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return // no descriptors are left, so no room is needed
	}
	defer unix.Close(fd)
	last := min(uint64(n), limit.Cur) - 1
	if high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, int(last)); err == nil {
		unix.Close(high)
	}
}
