package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// awaitPid waits until a file has the number of a process: that is after the start-up line.
func awaitPid(t *testing.T, file string, p *process) {
	t.Helper()
	want := fmt.Sprintf("%d\n", p.cmd.Process.Pid)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(file)
		if string(text) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the file has %q, %v, want %q", text, err, want)
		}
	}
}

// --pidfile has the number of a server while it serves. A second server is refused while the first
// one lives, however it ends.
func TestPidfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	for _, args := range []string{"redis --addr 127.0.0.1:0", "http --echo --addr 127.0.0.1:0", "echo --addr 127.0.0.1:0", "proxy --listen 127.0.0.1:0 --to 127.0.0.1:1"} {
		args := append(strings.Fields(args), "--pidfile", file)
		// What a dead process has left does not matter, even if the number is somebody's.
		if err := os.WriteFile(file, []byte(fmt.Sprintln(os.Getpid())), 0o600); err != nil {
			t.Fatal(err)
		}
		first, _ := start(t, args...)
		awaitPid(t, file, first)
		out, code := run(t, args...)
		want := fmt.Sprintf("rondo: --pidfile %s: process %d has it and is alive; stop that, or give another name\n", file, first.cmd.Process.Pid)
		if code != 1 || out != want {
			t.Errorf("%s: a second server: exit code %d, output %q, want %q", args[0], code, out, want)
		}
		awaitPid(t, file, first)
		first.cmd.Process.Kill()
		<-first.ended
		second, _ := start(t, args...)
		awaitPid(t, file, second)
		second.stop(syscall.SIGTERM, 0)
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s: the file is still there: %v", args[0], err)
		}
	}
}

// A server that does not start leaves no file, and none that is something else is overwritten.
func TestPidfileMistakes(t *testing.T) {
	dir := t.TempDir()
	file, letter := filepath.Join(dir, "pid"), filepath.Join(dir, "letter")
	if err := os.WriteFile(letter, []byte("Dear reader"), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if out, code := run(t, "echo", "--addr", ln.Addr().String(), "--pidfile", file); code != 1 || !strings.Contains(out, "cannot listen") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a server that did not start has left its file: %v", err)
	}
	for name, want := range map[string]string{
		letter:                            "it has something other than the number of a process; give another name\n",
		dir:                               "directory",
		filepath.Join(dir, "none", "pid"): "",
	} {
		out, code := run(t, "echo", "--addr", "127.0.0.1:0", "--pidfile", name)
		if begin := "rondo: --pidfile " + name + ": "; code != 1 || !strings.HasPrefix(out, begin) || !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit code %d, output %q", name, code, out)
		}
	}
	if text, err := os.ReadFile(letter); string(text) != "Dear reader" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
