package sys

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tableSize returns the size of the kernel's table of descriptors.
func tableSize(t *testing.T) (size int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "FDSize:")
	if _, err := fmt.Sscan(after, &size); err != nil {
		t.Fatalf("FDSize in /proc/self/status: %v", err)
	}
	return size
}

// TestRoom: the table grows before it is full, but not beyond the limit, and no
// descriptor stays open.
func TestRoom(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	before := room.Load()
	defer room.Store(before)
	for _, c := range []struct{ fd, want int64 }{{0, leastRoom}, {leastRoom/2 - 1, leastRoom}, {leastRoom / 2, 2 * leastRoom}} {
		if c.fd == 0 {
			room.Store(0)
		}
		Room(int(c.fd))
		if got := room.Load(); got != c.want {
			t.Fatalf("after descriptor %d Room wants room for %d, want %d", c.fd, got, c.want)
		}
	}
	want := int64(min(2*leastRoom, limit.Cur))
	high := func(fd int64) bool {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err == nil
	}
	for until := time.Now().Add(time.Minute); tableSize(t) < want || high(want-1); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the table has room for %d descriptors, want %d; the highest is open: %v", tableSize(t), want, high(want-1))
		}
	}
}
