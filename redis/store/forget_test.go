package store

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// mappedPages returns the program's address space in pages, on Linux.
func mappedPages() (n int) {
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		fmt.Sscan(string(text), &n)
	}
	return n
}

// Stores that are forgotten give their mappings back.
func TestForgottenStoresAreUnmapped(t *testing.T) {
	before := mappedPages()
	if before == 0 {
		t.Skip("no /proc/self/statm")
	}
	const stores = 50
	for range stores {
		s := New(Options{})
		s.DB(0).Put([]byte("k"), BytesValue(String, make([]byte, 100_000), false), Never)
		s.DB(0).Snapshot(func(Item) {})
	}
	limit := before + stores/2*slabChunks*chunkSize/pageSize
	for range 6000 {
		runtime.GC()
		if mappedPages() < limit {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d pages are mapped, %d before", mappedPages(), before)
}
