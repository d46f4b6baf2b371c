package redis

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// A file whose group can't be kept shows another group no more than everybody.
func TestRewriteInAnotherGroup(t *testing.T) {
	for mode, want := range map[fs.FileMode]fs.FileMode{0o640: 0o600, 0o660: 0o600, 0o600: 0o600, 0o644: 0o644, 0o664: 0o644, 0o604: 0o600, 0o777: 0o777} {
		if got := inAnotherGroup(mode); got != want {
			t.Errorf("the mode %v becomes %v, want %v", mode, got, want)
		}
	}
	if os.Getuid() != 0 {
		return // only root can make a file of a group that it is not in
	}
	const user, other = 54321, 54322
	dir, err := os.MkdirTemp("", "rewrite")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "users.acl")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Chown(dir, user, user), os.Chown(name, user, other), os.Chmod(name, 0o640)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with the thread, which is not root any more
		for _, set := range []error{syscall.Setfsgid(user), syscall.Setfsuid(user)} {
			if set != nil {
				done <- set
				return
			}
		}
		done <- replaceFile(name, "new", 0o600)
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); info.Mode() != 0o600 || is.Uid != user || is.Gid != user {
		t.Errorf("the file has the mode %v, the owner %d and the group %d, want -rw-------, %d and %d", info.Mode(), is.Uid, is.Gid, user, user)
	}
}
