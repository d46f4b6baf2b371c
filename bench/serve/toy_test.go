package serve

import (
	"strings"
	"testing"
)

// TestSessionSplits gives a toy its requests in pieces of every size.
func TestSessionSplits(t *testing.T) {
	const requests = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n" +
		"*2\r\n$3\r\nget\r\n$1\r\nk\r\n" +
		"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n" +
		"*1\r\n$4\r\nPING\r\n"
	const want = "+OK\r\n$5\r\nhello\r\n$-1\r\n-"
	for size := 1; size <= len(requests); size++ {
		var s session
		store := newStore()
		var got strings.Builder
		for in := []byte(requests); len(in) > 0; {
			n := min(size, len(in))
			piece := append([]byte(nil), in[:n]...)
			in = in[n:]
			out, err := s.serve(store, piece)
			if err != nil {
				t.Fatalf("pieces of %d: %v", size, err)
			}
			got.Write(out)
			clear(piece) // the library uses its buffer again
		}
		if !strings.HasPrefix(got.String(), want) || strings.Count(got.String(), "\r\n") != 5 {
			t.Errorf("pieces of %d: replies %q, want %q and one error", size, got.String(), want)
		}
	}
	var s session
	if _, err := s.serve(newStore(), []byte("*x\r\n")); err == nil {
		t.Error("no error for what is no request")
	}
}
