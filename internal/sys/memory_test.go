package sys

import (
	"bytes"
	"testing"
)

func TestMappedMemory(t *testing.T) {
	const size = 1 << 20
	m, err := MapMemory(size)
	if !MapsMemory {
		if err == nil {
			t.Error("memory was mapped")
		}
		return
	}
	if err != nil || len(m) != size || !bytes.Equal(m, make([]byte, size)) {
		t.Fatalf("%d bytes, %v", len(m), err)
	}
	for i := range m {
		m[i] = 'x'
	}
	if !DropMemory(m[:size/2]) {
		t.Error("the system does not take the pages")
	}
	if DropZeroes && !bytes.Equal(m[:size/2], make([]byte, size/2)) {
		t.Error("dropped memory is not zero")
	}
	if m[size/2] != 'x' || m[size-1] != 'x' {
		t.Error("memory was dropped that is in use")
	}
	m[0] = 'y'
	if grown, ok := GrowMemory(m, 4*size); ok {
		m = grown
		if len(m) != 4*size || m[0] != 'y' || m[size-1] != 'x' || m[size] != 0 || m[4*size-1] != 0 {
			t.Error("grown memory has other bytes")
		}
	}
	if err := UnmapMemory(m); err != nil {
		t.Error(err)
	}
}
