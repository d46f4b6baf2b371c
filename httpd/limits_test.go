package httpd_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
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

// A request's memory is free when the request has ended, however that was: its limits of time do
// not hold it.
func TestLimitsHoldNoRequest(t *testing.T) {
	const requests, some, size = 12, 4, 2 << 20
	var round atomic.Pointer[atomic.Int32] // how many of this round's requests are free
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runtime.AddCleanup(r, func(freed *atomic.Int32) { freed.Add(1) }, round.Load())
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Write(make([]byte, size)) // waits: the system does not take as much
		if r.URL.Path == "/aborted" {
			panic(http.ErrAbortHandler)
		}
	})
	try := func(addr, path string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", path)
		io.ReadFull(c, make([]byte, 20)) // of the answer that the handler's Read asks for
		if path == "/unsent" {
			return
		}
		io.WriteString(c, "hello")
		if path == "/gone" {
			io.ReadFull(c, make([]byte, 1000))
			return
		}
		if n, _ := io.Copy(io.Discard, c); n < size && path == "/read" {
			t.Errorf("%d bytes of the answer arrived", n)
		}
	}
	for kind, h := range map[string]http.Handler{"goroutine": answer, "loop": httpd.OnLoop(answer)} {
		for _, backend := range pick.Available() {
			engine := rondo.Engine{Backend: backend, NumLoops: 1}
			s := httpd.Server{HTTP: &http.Server{Handler: h, ReadTimeout: time.Hour, WriteTimeout: time.Hour, ErrorLog: log.New(io.Discard, "", 0)}}
			ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{SendBuffer: 64 << 10}, s.Open)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/read", "/gone", "/aborted", "/unsent"} {
				freed := new(atomic.Int32)
				round.Store(freed)
				for range requests {
					try(ln.Addr().String(), path)
				}
				eventually(t, kind+" "+backend+": all requests of "+path+" but the last ones are free", func() bool {
					runtime.GC()
					return freed.Load() >= requests-some // a loop may know its last connections
				})
			}
			engine.Close()
		}
	}
}
