package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/testkit"
)

// serveBackend serves a handler by net/http, and returns its URL.
func serveBackend(t *testing.T, h http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestHTTPProxy(t *testing.T) {
	backend := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusTeapot)
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via", "Connection", "X-Hop", "Accept-Encoding"} {
			fmt.Fprintf(w, "%s=%s\n", name, strings.Join(r.Header[name], ","))
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
	})
	_, address := serveHTTP(t, "--proxy", backend+"/base", "--max-body", "1KiB")
	got := askWith(t, dial(t, address), "PUT /path?q=1;2&r=100%", "hello", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "Connection: X-Hop", "X-Hop: 1", "Via: 1.0 before")
	want := "X-Forwarded-For=127.0.0.1\nX-Forwarded-Host=example.test\nX-Forwarded-Proto=http\nVia=1.0 before,1.1 rondo\n" +
		"Connection=\nX-Hop=\nAccept-Encoding=\nPUT /base/path?q=1;2&r=100% hello"
	if got.StatusCode != http.StatusTeapot || got.Header.Get("X-Answer") != "yes" || got.body != want {
		t.Errorf("%s, %v, %q, want %q", got.Status, got.Header, got.body, want)
	}
	if got := ask(t, address, "POST /", "Content-Length: 1025"); got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too long: %s", got.Status)
	}
	chunk := fmt.Sprintf("401\r\n%s\r\n0", strings.Repeat("x", 1025))
	if got := ask(t, address, "POST /", "Transfer-Encoding: chunked\r\n\r\n"+chunk); got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("chunks that are too long: %s", got.Status)
	}
	if got := ask(t, address, "CONNECT example.test:443"); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("CONNECT: %s", got.Status)
	}
}

func TestHTTPProxyWithoutServer(t *testing.T) {
	p, address := serveHTTP(t, "--proxy", "http://"+testkit.FreeAddress(t))
	if got := ask(t, address, "GET /x"); got.StatusCode != http.StatusBadGateway || got.body != "502 Bad Gateway\n" {
		t.Errorf("%s, %q", got.Status, got.body)
	}
	p.stop(syscall.SIGTERM, 0)
	if want := `msg="proxy: the server did not answer" method=GET uri=/x status=502 error="dial tcp `; !strings.Contains(p.stderr(), want) {
		t.Errorf("no %q in\n%s", want, p.stderr())
	}
}

func TestHTTPProxyOfASlowServer(t *testing.T) {
	end := make(chan bool)
	defer close(end)
	backend := serveBackend(t, func(http.ResponseWriter, *http.Request) { <-end })
	_, address := serveHTTP(t, "--proxy", backend, "--proxy-timeout", "100ms")
	if got := ask(t, address, "GET /"); got.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("%s, %q", got.Status, got.body)
	}
}

// An upgrade passes, and then bytes in both directions.
func TestHTTPProxyOfAnUpgrade(t *testing.T) {
	backend := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buf.ReadString('\n')
		io.WriteString(conn, "echo: "+line)
	})
	_, plain := serveHTTP(t, "--proxy", backend, "--send-timeout", "100ms")
	f := newKeyFiles(t)
	p, encrypted := start(t, f.args("http", "--proxy", backend, "--access-log", "text")...)
	for _, conn := range []net.Conn{dial(t, plain), f.connect(t, encrypted[0], false)} {
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		in := bufio.NewReader(conn)
		answer, err := http.ReadResponse(in, nil)
		if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v, %v", answer, err)
		}
		time.Sleep(200 * time.Millisecond) // a connection that was upgraded has no time limits
		io.WriteString(conn, "hello\n")
		if line, err := in.ReadString('\n'); line != "echo: hello\n" {
			t.Errorf("%q, %v", line, err)
		}
		if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
			t.Errorf("behind the end: %q, %v", rest, err)
		}
	}
	p.stop(syscall.SIGTERM, 0)
	if !strings.Contains(p.stderr(), "status=101") {
		t.Errorf("no request of status 101 in\n%s", p.stderr())
	}
}
