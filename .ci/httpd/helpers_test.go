// Package httpd_test tries handlers of other projects, and of net/http's neighbours, on httpd, and
// h2spec. It is a module of its own, so that they stay out of the main one.
package httpd_test

import (
	"crypto/tls"
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

// patience is how long anything may take on a loaded machine.
const patience = time.Minute

// A site is a server, and what its clients need.
type site struct {
	addr   string
	scheme string // http or https
	client *http.Client
	tls    *tls.Config // of clients; nil: without TLS
	proto  string      // that requests of client have
}

// url returns the URL of a path.
func (s *site) url(path string) string { return s.scheme + "://" + s.addr + path }

// dial connects as a client does.
func (s *site) dial() (net.Conn, error) {
	if s.tls != nil {
		return tls.Dial("tcp", s.addr, s.tls)
	}
	return net.Dial("tcp", s.addr)
}

// get returns what a GET answers, and fails the test if it fails.
func (s *site) get(t *testing.T, path string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest("GET", s.url(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	return s.do(t, r)
}

// do sends a request and returns the answer and its body.
func (s *site) do(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("%s: the body: %v", r.URL.Path, err)
	}
	if answer.Proto != s.proto {
		t.Errorf("%s: %s, want %s", r.URL.Path, answer.Proto, s.proto)
	}
	return answer, string(body)
}

// onEach runs f with the handler on httpd over HTTP/1, over HTTP/1 with TLS, and over HTTP/2.
// make may be called several times.
func onEach(t *testing.T, make func() http.Handler, f func(t *testing.T, s *site)) {
	t.Run("HTTP1", func(t *testing.T) { f(t, serve(t, &http.Server{Handler: make()}, false, false)) })
	t.Run("HTTP1-TLS", func(t *testing.T) { f(t, serve(t, &http.Server{Handler: make()}, true, false)) })
	t.Run("HTTP2", func(t *testing.T) { f(t, serve(t, &http.Server{Handler: make()}, true, true)) })
}

// serve serves srv by httpd until the test ends.
func serve(t *testing.T, srv *http.Server, secure, h2 bool) *site {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if srv.ErrorLog == nil {
		srv.ErrorLog = log.New(io.Discard, "", 0)
	}
	s := &site{addr: ln.Addr().String(), scheme: "http", proto: "HTTP/1.1"}
	ended := make(chan error, 1)
	if secure {
		authority := testcert.New("test")
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "localhost")}}
		s.scheme = "https"
		s.tls = &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
		go func() { ended <- httpd.ServeTLS(srv, ln, "", "") }()
	} else {
		go func() { ended <- httpd.Serve(srv, ln) }()
	}
	transport := &http.Transport{TLSClientConfig: s.tls.Clone(), ForceAttemptHTTP2: h2}
	if h2 {
		s.proto = "HTTP/2.0"
	}
	s.client = &http.Client{Transport: transport, Timeout: patience}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		if err := <-ended; err != http.ErrServerClosed {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}
