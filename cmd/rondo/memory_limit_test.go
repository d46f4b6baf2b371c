package main

import (
	"errors"
	"runtime"
	"testing"
)

// Go gets what the container's limit leaves beside the memory that is not Go's.
func TestHeapLimit(t *testing.T) {
	const container = 64 << 20
	var resident, applied uint64
	var failure error
	h := &heapLimit{
		container: container,
		resident:  func() (uint64, error) { return resident, failure },
		apply:     func(n int64) int64 { applied = uint64(n); return 0 },
	}
	const most = uint64(container) / 10 * 9
	for _, c := range []struct {
		what                 string
		resident, held, want uint64
	}{
		{"at first", 10 << 20, 2 << 20, most - 8<<20},
		{"about the same", 11<<20 + 100, 3 << 20, most - 8<<20},
		{"keys", 40 << 20, 10 << 20, most - 30<<20},
		{"too many keys", 64 << 20, 2 << 20, container / 4},
		{"more than there can be", 100 << 20, 2 << 20, container / 4},
		{"Go has more than is in memory", 10 << 20, 12 << 20, most},
	} {
		resident = c.resident
		if h.adjust(c.held); applied != c.want {
			t.Errorf("%s: the limit is %d, want %d", c.what, applied, c.want)
		}
	}
	failure = errors.New("no such file")
	resident = 40 << 20
	if h.adjust(0); applied != most {
		t.Errorf("without the size of the process: the limit is %d, want %d as before", applied, most)
	}
}

func TestResidentMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux's file")
	}
	if n, err := residentMemory(); err != nil || n < 1<<20 || n > 1<<40 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
