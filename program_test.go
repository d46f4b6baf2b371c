package rondo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run builds and runs a program of testdata and returns what it printed.
func run(t *testing.T, program string, flags ...string) (string, error) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program")
	args := append(append([]string{"build"}, flags...), "-o", exe, "./testdata/"+program)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestRepanic: with Engine.Repanic a handler's panic ends the program.
func TestRepanic(t *testing.T) {
	out, err := run(t, "repanic")
	if err == nil || !strings.Contains(out, "panic: on purpose") {
		t.Errorf("the program went on: %v\n%s", err, out)
	}
}
