package httpd_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/testcert"
)

// serveTLS is serve with TLS. client trusts it.
func serveTLS(t *testing.T, h http.HandlerFunc) (addr string, client *tls.Config) {
	authority := testcert.New("test")
	srv := &http.Server{
		Handler:   h,
		ErrorLog:  log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "localhost")}},
		// A thousand handshakes at once take longer than the default on a slow machine.
		ReadHeaderTimeout: time.Minute,
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- httpd.ServeTLS(srv, ln, "", "") }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("ServeTLS: %v", err)
		}
	})
	return ln.Addr().String(), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
}

func TestTLS(t *testing.T) {
	addr, config := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !r.TLS.HandshakeComplete || r.TLS.ServerName != "localhost" {
			t.Errorf("TLS: %v", r.TLS)
		}
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	for _, size := range []int{0, 5, 1 << 20} {
		answer, err := client.Post("https://"+addr, "a/b", io.LimitReader(zeros{}, int64(size)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if len(got) != size || err != nil || answer.ProtoMajor != 1 {
			t.Errorf("%d bytes of %d, %v, %s", len(got), size, err, answer.Proto)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestHijackTLS(t *testing.T) {
	addr, config := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(rw, "HTTP/1.1 101 x\r\n\r\n%s", line)
		rw.Flush()
		line, _ = rw.ReadString('\n')
		io.WriteString(c, line)
	})
	c, err := tls.Dial("tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\nfirst\n")
	r := bufio.NewReader(c)
	for _, want := range []string{"HTTP/1.1 101 x\r\n", "\r\n", "first\n"} {
		if line, err := r.ReadString('\n'); line != want {
			t.Fatalf("%q, want %q, %v", line, want, err)
		}
	}
	io.WriteString(c, "second\n")
	if got, err := io.ReadAll(r); string(got) != "second\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A client that forgets TLS gets an answer, and one that sends nonsense an end, soon: with any
// split of the bytes.
func TestPlainToTLS(t *testing.T) {
	addr, config := serveTLS(t, path)
	const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, piece := range []int{1, 4, 5, len(request)} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		c.(*net.TCPConn).SetNoDelay(true)
		for rest := request; rest != ""; rest = rest[min(piece, len(rest)):] {
			io.WriteString(c, rest[:min(piece, len(rest))])
			time.Sleep(time.Millisecond)
		}
		got, err := io.ReadAll(c)
		if !strings.HasPrefix(string(got), "HTTP/1.0 400 Bad Request\r\n\r\nClient sent") {
			t.Errorf("in pieces of %d: %q, %v", piece, got, err)
		}
	}
	c, err := tls.Dial("tcp", addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if got, err := io.ReadAll(c); !strings.HasSuffix(string(got), "/a") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A client that speaks HTTP without TLS to a listener of crypto/tls is told so, too.
func TestPlainToTLSListener(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{testcert.New("test").Issue(testcert.ECDSA, "localhost")}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(path), ErrorLog: log.New(io.Discard, "", 0)}
	go httpd.Serve(srv, tls.NewListener(ln, config))
	defer srv.Close()
	const want = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
	if got := raw(t, ln.Addr().String(), get); got != want {
		t.Errorf("%q", got)
	}
}
