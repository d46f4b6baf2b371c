package sys_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rondo-go/rondo/internal/sys"
)

// A lock keeps other open files from locking, not from reading, and ends with its file.
func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	open := func() *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := sys.LockFile(first); err != nil {
		t.Fatal(err)
	}
	if _, err := first.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if err := sys.LockFile(second); !errors.Is(err, sys.ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "text" {
		t.Errorf("others read %q, %v", text, err)
	}
	first.Close()
	if err := sys.LockFile(second); err != nil {
		t.Errorf("after the end of the first: %v", err)
	}
}
