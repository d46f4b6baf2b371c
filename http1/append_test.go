package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAppend(t *testing.T) {
	header := http.Header{"B": {"2", "3"}, "A": {"1"}, "C": {"4"}, "D d": {"5"}}
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"Status", AppendStatus(nil, 1, 200), "HTTP/1.1 200 OK\r\n"},
		{"Status of HTTP/1.0", AppendStatus(nil, 0, 404), "HTTP/1.0 404 Not Found\r\n"},
		{"Status to HTTP/1.2", AppendStatus(nil, 2, 200), "HTTP/1.1 200 OK\r\n"},
		{"unknown Status", AppendStatus(nil, 1, 799), "HTTP/1.1 799 status code 799\r\n"},
		{"short Status", AppendStatus(nil, 1, 7), "HTTP/1.1 007 status code 7\r\n"},
		{"Request", AppendRequest(nil, "GET", "/a"), "GET /a HTTP/1.1\r\n"},
		{"Field", AppendField(nil, "A", "b"), "A: b\r\n"},
		{"Field with white space", AppendField(nil, "A", " \tb c\t \r\n"), "A: b c\r\n"},
		{"Field with line breaks", AppendField(nil, "A", "b\r\nC: d"), "A: b  C: d\r\n"},
		{"Field without a name", AppendField([]byte("x"), "", "b"), "x"},
		{"Field with an invalid name", AppendField([]byte("x"), "A\r\nB", "c"), "x"},
		{"Header", AppendHeader(nil, header, nil), "A: 1\r\nB: 2\r\nB: 3\r\nC: 4\r\n"},
		{"Header but", AppendHeader(nil, header, map[string]bool{"B": true}), "A: 1\r\nC: 4\r\n"},
		{"Length", AppendLength(nil, 1234), "Content-Length: 1234\r\n"},
		{"Chunked", AppendChunked(nil), "Transfer-Encoding: chunked\r\n"},
		{"Chunk", AppendChunk(nil, []byte(strings.Repeat("x", 26))), "1a\r\n" + strings.Repeat("x", 26) + "\r\n"},
		{"empty Chunk", AppendChunk([]byte("x"), nil), "x"},
		{"LastChunk", AppendLastChunk(nil, nil), "0\r\n\r\n"},
		{"LastChunk with a trailer", AppendLastChunk(nil, http.Header{"A": {"b"}}), "0\r\nA: b\r\n\r\n"},
		{"Error", AppendError(nil, errHead431()), "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n" +
			"Connection: close\r\nContent-Length: 53\r\n\r\n431 Request Header Fields Too Large: header too large"},
		{"another Error", AppendError(nil, errors.New("secret")), "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n" +
			"Connection: close\r\nContent-Length: 15\r\n\r\n400 Bad Request"},
	}
	for _, tt := range tests {
		if string(tt.got) != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func errHead431() error { return errHeadSize }

func TestDate(t *testing.T) {
	var d Date
	at := time.Date(2026, 11, 22, 23, 59, 59, 999, time.FixedZone("", 3600))
	for range 3 {
		want := "x" + "Date: " + at.UTC().Format(http.TimeFormat) + "\r\n"
		for range 2 {
			if got := string(d.Append([]byte("x"), at)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		at = at.Add(time.Second)
	}
	if got := string(new(Date).Append(nil, time.Unix(0, 0))); got != "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n" {
		t.Errorf("%q", got)
	}
}

// TestErrors: each error has a status that net/http knows, and its answer is a response.
func TestErrors(t *testing.T) {
	for _, c := range syntaxCases {
		_, err := outcome([]byte(c.in), Rules{})
		if err == nil {
			continue
		}
		b := AppendError(nil, err)
		answer, err2 := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
		if err2 != nil {
			t.Fatalf("%q: %v", b, err2)
		}
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != c.want || !answer.Close || !strings.HasSuffix(string(body), err.Error()) {
			t.Errorf("%q: %q", b, body)
		}
	}
}
