// The systems with a race detector; no 32-bit one has it.
//go:build (linux && (amd64 || arm64)) || darwin || ((freebsd || netbsd || windows) && amd64)

package rondo_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestMisuseIsReported: the race detector finds a Conn used off its loop.
func TestMisuseIsReported(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("go build -race needs a C compiler: install the Debian package gcc")
	}
	out, err := run(t, "misuse", "-race")
	if err == nil || !strings.Contains(out, "DATA RACE") || !strings.Contains(out, "(*Conn).Buffered") {
		t.Errorf("a Conn used off its loop was not reported: %v\n%s", err, out)
	}
}
