package serve

import (
	"bufio"
	"io"
	"net/http"
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

// TestHTTPToySplits gives the HTTP toy its requests in pieces of every size.
func TestHTTPToySplits(t *testing.T) {
	const requests = "GET /text HTTP/1.1\r\nHost: a\r\n\r\nGET /json HTTP/1.1\r\n\r\nGET /text HTTP/1.1\r\n\r\n"
	for size := 1; size <= len(requests); size++ {
		var toy httpToy
		var got strings.Builder
		for in := []byte(requests); len(in) > 0; {
			n := min(size, len(in))
			piece := append([]byte(nil), in[:n]...)
			in = in[n:]
			got.Write(toy.serve(piece))
			clear(piece) // the library uses its buffer again
		}
		all := bufio.NewReader(strings.NewReader(got.String()))
		for _, path := range []string{TextPath, JSONPath, TextPath} {
			kind, want := Content(path)
			answer, err := http.ReadResponse(all, nil)
			if err != nil {
				t.Fatalf("pieces of %d: %v", size, err)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.Header.Get("Content-Type") != kind || string(body) != string(want) {
				t.Fatalf("pieces of %d: %v, %q, %v", size, answer.Header, body, err)
			}
		}
		if rest, _ := io.ReadAll(all); len(rest) > 0 {
			t.Fatalf("pieces of %d: %q is left", size, rest)
		}
	}
}

// TestContent checks the sizes that the suite tells.
func TestContent(t *testing.T) {
	for path, size := range map[string]int{TextPath: 13, JSONPath: 1 << 10, LargePath: 64 << 10, "/none": 0} {
		if kind, body := Content(path); len(body) != size || (kind == "") != (size == 0) {
			t.Errorf("%s: %d bytes of %q, want %d", path, len(body), kind, size)
		}
	}
}
