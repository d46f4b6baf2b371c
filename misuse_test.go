//go:build race

// Where the tests themselves were built with the race detector, a program can be too: it
// may need a C compiler.

package rondo_test

import (
	"strings"
	"testing"
)

// TestMisuseIsReported: the race detector finds a Conn used off its loop.
func TestMisuseIsReported(t *testing.T) {
	out, err := run(t, "misuse", "-race")
	if err == nil || !strings.Contains(out, "DATA RACE") || !strings.Contains(out, "(*Conn).Buffered") {
		t.Errorf("a Conn used off its loop was not reported: %v\n%s", err, out)
	}
}
