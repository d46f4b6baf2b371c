//go:build unix

package redis

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// CONFIG REWRITE and ACL SAVE replace the file that a symbolic link leads to, and keep its mode,
// owner and group.
func TestLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	owner := [2]int{os.Getuid(), os.Getgid()}
	if owner[0] == 0 {
		owner = [2]int{12, 34} // only root gives files away
	}
	for name, text := range map[string]string{"redis.conf": "hz 12\naclfile " + dir + "/users.acl\n", "users.acl": "user alice on\n"} {
		file := filepath.Join(real, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, owner[0], owner[1]); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("real", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := LoadConfig([]string{filepath.Join(dir, "redis.conf")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &Server{Config: c})
	if err := b.s.defineUsers(); err != nil {
		t.Fatal(err)
	}
	b.script(`
		CONFIG SET hz 13 => +OK
		CONFIG REWRITE => +OK
		ACL SETUSER bob on => +OK
		ACL SAVE => +OK
	`)
	for name, want := range map[string]string{"redis.conf": "hz 13\n", "users.acl": "user bob on"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("%s is no link any more: %v, %v", name, info, err)
		}
		info, err := os.Lstat(filepath.Join(real, name))
		if err != nil {
			t.Fatal(err)
		}
		sys := info.Sys().(*syscall.Stat_t)
		if info.Mode() != 0o640 || int(sys.Uid) != owner[0] || int(sys.Gid) != owner[1] {
			t.Errorf("%s has mode %v, owner %d, group %d", name, info.Mode(), sys.Uid, sys.Gid)
		}
		if text, err := os.ReadFile(filepath.Join(real, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) != 2 {
		t.Errorf("there are %q", left)
	}
	if err := os.RemoveAll(real); err != nil {
		t.Fatal(err)
	}
	b.script("CONFIG REWRITE => -ERR Rewriting config file: No such file or directory")
}
