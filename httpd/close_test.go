package httpd_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
)

// onEngine serves h with an engine of the test's.
func onEngine(t *testing.T, e *rondo.Engine, srv *http.Server) string {
	t.Helper()
	srv.ErrorLog = log.New(io.Discard, "", 0)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, (&httpd.Server{HTTP: srv}).Open)
	if err != nil {
		t.Fatal(err)
	}
	return ln.Addr().String()
}

// A client that goes on sending when its request is refused, or answered early, is not read for
// long: net/http's server waits for half a second, too.
func TestFloodBehindTheAnswer(t *testing.T) {
	for _, c := range []struct{ name, head, more, status string }{
		{"head too large", "GET / HTTP/1.1\r\nHost: a\r\n", strings.Repeat("X-Flood: y\r\n", 1000), "431"},
		{"no request", "GET /\r\n\r\n", strings.Repeat("x", 10_000), "400"},
		{"a body that nobody wants", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n", strings.Repeat("x", 10_000), "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &rondo.Engine{NumLoops: 1}
			addr := onEngine(t, e, &http.Server{MaxHeaderBytes: 4 << 10, Handler: http.HandlerFunc(path)})
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			go func() {
				io.WriteString(conn, c.head)
				for {
					if _, err := io.WriteString(conn, c.more); err != nil {
						return
					}
				}
			}()
			answer, err := io.ReadAll(conn)
			if !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.status) {
				t.Errorf("%.100q, %v", answer, err)
			}
			eventually(t, "the connection ends", func() bool { return e.Stats().Open == 0 })
			if n := e.Stats().BytesIn; n > 1<<20 {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
}

// A client may take as long as it likes to read the last answer of its connection: the engine's
// Linger does not cut it.
func TestSlowReaderOfTheLastAnswer(t *testing.T) {
	const size = 12 << 20
	long := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		io.WriteString(w, strings.Repeat("x", size-100_000))
		io.WriteString(w, strings.Repeat("x", 100_000))
	})
	for name, h := range map[string]http.Handler{"goroutine": long, "loop": httpd.OnLoop(long)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := onEngine(t, &rondo.Engine{NumLoops: 1, Linger: 20 * time.Millisecond, HighWater: 16 << 20, MaxOutput: 16 << 20}, &http.Server{Handler: h})
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.(*net.TCPConn).SetReadBuffer(16 << 10)
			c.SetDeadline(time.Now().Add(patience))
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			got, buf := 0, make([]byte, 64<<10)
			for {
				n, err := c.Read(buf)
				if got += n; err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("after %d bytes: %v", got, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if got < size {
				t.Errorf("%d bytes", got)
			}
		})
	}
}

// A client of HTTP/2 that goes on sending behind the server's GOAWAY is not read for long.
func TestFloodBehindGoAway(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	srv := &http.Server{Handler: http.HandlerFunc(path), Protocols: new(http.Protocols)}
	srv.Protocols.SetUnencryptedHTTP2(true)
	c, err := net.Dial("tcp", onEngine(t, e, srv))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	go io.Copy(io.Discard, c)
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	ping := strings.Repeat("\x00\x00\x01\x06\x00\x00\x00\x00\x00x", 1000) // of a wrong length
	for {
		if _, err := io.WriteString(c, ping); err != nil {
			break
		}
	}
	eventually(t, "the connection ends", func() bool { return e.Stats().Open == 0 })
}

// A connection that a limit of time ends is not read for longer, either.
func TestLateHeadEndsSoon(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	addr := onEngine(t, e, &http.Server{ReadHeaderTimeout: 50 * time.Millisecond, Handler: http.HandlerFunc(path)})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\n")
	eventually(t, "the connection ends", func() bool {
		io.WriteString(c, "X") // it stays open on this side
		return e.Stats().Accepted > 0 && e.Stats().Open == 0
	})
}
