package httpd_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
)

// onOneLoop serves h with OnLoop on an engine with one loop, and returns its address.
func onOneLoop(t *testing.T, backend string, h http.HandlerFunc) string {
	t.Helper()
	engine := &rondo.Engine{Backend: backend, NumLoops: 1}
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	s := httpd.Server{HTTP: &http.Server{Handler: httpd.OnLoop(h), ErrorLog: log.New(io.Discard, "", 0)}}
	ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return ln.Addr().String()
}

// dialed connects for the time of a test.
func dialed(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// Handlers on the loop that wait for their bodies let others run, and get their bodies.
func TestOnLoopWaitsForBodies(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			addr := onOneLoop(t, backend, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %d %v", r.URL.Path, len(body), err)
			})
			const slow, size = 20, 200_000
			var conns []net.Conn
			for i := range slow {
				c := dialed(t, addr)
				conns = append(conns, c)
				fmt.Fprintf(c, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nConnection: close\r\n\r\nbegin", i, size)
			}
			for range 3 {
				if got := raw(t, addr, get); !strings.HasSuffix(got, "/ 0 <nil>") {
					t.Errorf("a bystander: %q", got)
				}
				for _, c := range conns {
					c.Write(make([]byte, 50_000))
				}
			}
			for i, c := range conns {
				c.Write(make([]byte, size-150_000-len("begin")))
				answer, err := io.ReadAll(c)
				if want := fmt.Sprintf("/%d %d <nil>", i, size); err != nil || !strings.HasSuffix(string(answer), want) {
					t.Errorf("%q, %v, want %q", answer, err, want)
				}
			}
		})
	}
}

// A handler on the loop that writes more than may wait for the client lets others run.
func TestOnLoopWaitsForRoom(t *testing.T) {
	const pieces, size = 500, 100_000 // more than the Engine's MaxOutput
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			addr := onOneLoop(t, backend, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/short" {
					io.WriteString(w, "short")
					return
				}
				p := bytes.Repeat([]byte("x"), size)
				for i := range pieces {
					if n, err := w.Write(p[:size-i]); n != size-i || err != nil {
						t.Errorf("piece %d: %d, %v", i, n, err)
						return
					}
				}
			})
			c := dialed(t, addr)
			io.WriteString(c, get)
			time.Sleep(50 * time.Millisecond)
			if got := raw(t, addr, strings.Replace(get, "/", "/short", 1)); !strings.HasSuffix(got, "short") {
				t.Errorf("a bystander: %q", got)
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, answer.Body)
			if want := int64(pieces*size - pieces*(pieces-1)/2); n != want || err != nil {
				t.Errorf("%d bytes, %v, want %d", n, err, want)
			}
		})
	}
}

// Whatever ends the wait of a handler on the loop, it returns, and the loop goes on.
func TestOnLoopWaitEnds(t *testing.T) {
	result := make(chan error, 1)
	addr := onOneLoop(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		if r.URL.Path == "/full" {
			if r.Header.Get("X-Late") != "" {
				http.NewResponseController(w).SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			}
			var err error
			for err == nil {
				_, err = w.Write(make([]byte, 100_000))
			}
			result <- err
			return
		}
		if r.Method == "GET" {
			io.WriteString(w, "alive")
			return
		}
		_, err := io.ReadAll(r.Body)
		result <- err
		switch r.URL.Path {
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/exit":
			runtime.Goexit()
		}
	})
	const begin = " HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"
	for _, c := range []struct {
		request string
		then    func(c *net.TCPConn)
		is      error // nil: any
	}{
		{"POST /gone" + begin, func(c *net.TCPConn) { c.SetLinger(0); c.Close() }, nil},
		{"POST /ended" + begin, func(c *net.TCPConn) { c.CloseWrite() }, io.ErrUnexpectedEOF},
		{"POST /late" + begin, func(*net.TCPConn) {}, os.ErrDeadlineExceeded},
		{"POST /panic" + begin, func(c *net.TCPConn) { c.CloseWrite() }, io.ErrUnexpectedEOF},
		{"POST /exit" + begin, func(c *net.TCPConn) { c.CloseWrite() }, io.ErrUnexpectedEOF},
		{"GET /full HTTP/1.1\r\nHost: a\r\n\r\n", func(c *net.TCPConn) { c.SetLinger(0); c.Close() }, nil},
		{"GET /full HTTP/1.1\r\nHost: a\r\nX-Late: x\r\n\r\n", func(*net.TCPConn) {}, os.ErrDeadlineExceeded},
	} {
		for range 3 {
			conn := dialed(t, addr).(*net.TCPConn)
			io.WriteString(conn, c.request)
			time.Sleep(20 * time.Millisecond)
			c.then(conn)
			select {
			case err := <-result:
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%.20q: %v, want %v", c.request, err, c.is)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%.20q: the handler waits for ever", c.request)
			}
			if got := raw(t, addr, get); !strings.HasSuffix(got, "alive") {
				t.Errorf("%.20q: then %q", c.request, got)
			}
		}
	}
}
