package httpd_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
)

// late writes an answer of n bytes behind WriteTimeout, after moving the deadline or not.
func late(n int, move bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if move {
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
		}
		time.Sleep(200 * time.Millisecond)
		io.WriteString(w, strings.Repeat("x", n))
	}
}

// An answer behind WriteTimeout does not arrive, and the connection ends; a handler may move
// the deadline.
func TestLateAnswer(t *testing.T) {
	for _, size := range []int{10, 100_000} {
		for _, move := range []bool{false, true} {
			for name, h := range map[string]http.Handler{"goroutine": late(size, move), "loop": httpd.OnLoop(late(size, move))} {
				addr := serve(t, &http.Server{Handler: h, WriteTimeout: 50 * time.Millisecond})
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				io.WriteString(c, get)
				got, err := io.ReadAll(c)
				if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
					t.Errorf("%d bytes, %s, moved %t: the connection does not end", size, name, move)
				}
				if name == "loop" && !move {
					continue // the loop's own time has not passed
				}
				if arrived := strings.Count(string(got), "x") >= size; arrived != move {
					t.Errorf("%d bytes, %s, moved %t: %.100q, %v", size, name, move, got, err)
				}
			}
		}
	}
}

// A handler's deadline does not hold for the next request of the connection.
func TestDeadlineEnds(t *testing.T) {
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			c := http.NewResponseController(w)
			c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			return
		}
		time.Sleep(200 * time.Millisecond)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Write(body)
	})})
	got := raw(t, addr, "GET /first HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
	if !strings.HasSuffix(got, "hello") {
		t.Errorf("%q", got)
	}
}
