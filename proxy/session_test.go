package proxy

import (
	"testing"
	"unsafe"
)

// A session must not grow: there is one for each client.
func TestSessionSize(t *testing.T) {
	if n := unsafe.Sizeof(session{}); n > 112 {
		t.Errorf("a session has %d bytes, want at most 112", n)
	}
}
