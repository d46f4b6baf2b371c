package rondo_test

import (
	"strings"
	"testing"
)

// TestRepanic: with Engine.Repanic a handler's panic ends the program.
func TestRepanic(t *testing.T) {
	out, err := run(t, "repanic")
	if err == nil || !strings.Contains(out, "panic: on purpose") {
		t.Errorf("the program went on: %v\n%s", err, out)
	}
}
