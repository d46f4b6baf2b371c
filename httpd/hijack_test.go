package httpd_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// A hijacker finds in its Reader what was received behind the request, and what was not read of
// the body, byte for byte as with net/http. What comes later comes from the net.Conn, too.
func TestHijackedReader(t *testing.T) {
	cases := []struct {
		name, request string
		read          int // bytes of the body that the handler reads before
		want          string
	}{
		{"nothing", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, ""},
		{"behind a head", "GET / HTTP/1.1\r\nHost: a\r\n\r\nbehind", 0, "behind"},
		{"behind a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhellobehind", 5, "behind"},
		{"a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhellobehind", 0, "hellobehind"},
		{"half a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhellobehind", 2, "llobehind"},
		{"an incomplete body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", 2, "llo"},
		{"chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\nbehind", 0, "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\nbehind"},
		{"half a chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\nbehind", 2, "llo\r\n3\r\nabc\r\n0\r\n\r\nbehind"},
		{"100-continue", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", 0, ""},
	}
	for _, c := range cases {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.ReadFull(r.Body, make([]byte, c.read))
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			ahead, err := rw.Reader.Peek(rw.Reader.Buffered())
			if string(ahead) != c.want {
				t.Errorf("the Reader has %q, %v, want %q", ahead, err, c.want)
			}
			if _, ok := conn.(*net.TCPConn); !ok && r.TLS == nil {
				t.Errorf("a %T", conn)
			}
			fmt.Fprint(conn, "x")
			later := make([]byte, 5)
			if _, err := io.ReadFull(conn, later); err != nil || string(later) != "later" {
				t.Errorf("the net.Conn returns %q, %v", later, err)
			}
			rw.Reader.Discard(len(ahead))
			if b, err := rw.ReadByte(); b != '!' || err != nil {
				t.Errorf("the Reader returns %q, %v", b, err)
			}
			rw.WriteString("end")
			rw.Flush()
		})
		talk := func(t *testing.T, conn net.Conn, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			io.WriteString(conn, c.request)
			hijacked := make([]byte, 1)
			if _, err := io.ReadFull(conn, hijacked); err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, "later")
			io.WriteString(conn, "!")
			if got, err := io.ReadAll(conn); string(got) != "end" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		}
		t.Run(c.name, func(t *testing.T) {
			for _, backend := range pick.Available() {
				t.Run("backend "+backend, func(t *testing.T) {
					addr := onEngine(t, &rondo.Engine{Backend: backend, NumLoops: 1}, &http.Server{Handler: h})
					conn, err := net.Dial("tcp", addr)
					talk(t, conn, err)
				})
			}
			t.Run("TLS", func(t *testing.T) {
				addr, config := serveTLS(t, h)
				conn, err := tls.Dial("tcp", addr, config)
				talk(t, conn, err)
			})
			t.Run("nethttp", func(t *testing.T) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				srv := &http.Server{Handler: h}
				go srv.Serve(ln)
				defer srv.Close()
				conn, err := net.Dial("tcp", ln.Addr().String())
				talk(t, conn, err)
			})
		})
	}
}
