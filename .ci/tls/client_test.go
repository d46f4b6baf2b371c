package tls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// server is openssl's. What is typed goes to its client.
func server(t *testing.T, more ...string) (s *openssl, address string) {
	t.Helper()
	s = start(t, append([]string{"s_server", "-accept", "127.0.0.1:0", "-cert", file("server.crt"), "-key", file("server.key")}, more...)...)
	s.await("ACCEPT")
	port := regexp.MustCompile(`ACCEPT [^ \n]*:(\d+)`).FindStringSubmatch(s.output())
	if port == nil {
		t.Fatalf("no port in %s", s.output())
	}
	return s, "127.0.0.1:" + port[1]
}

// dial connects rondo's client to it. The handler does not echo.
func dial(t *testing.T, backend, address string, config *tls.Config) *handler {
	t.Helper()
	config.RootCAs, config.ServerName = authorities(t), "localhost"
	h := &handler{mute: true}
	e := &rondo.Engine{NumLoops: 1, Backend: backend, Trace: &rondo.Trace{FilterReady: func(*rondo.Conn, rondo.Filter) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ready++
	}}}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	for l := range e.Loops() {
		l.Post(func() {
			l.Dial("tcp", address, rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					h.Closed(c, err)
					return nil
				}
				return h.open(c)
			}, rtls.Client(config)))
		})
	}
	h.await(t, "a connection", func() bool { return h.ref != rondo.Ref{} || h.over })
	return h
}

func (h *handler) write(t *testing.T, s string) {
	t.Helper()
	if err := h.ref.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

// A conversation.
func TestServerTalks(t *testing.T) {
	each(t, func(t *testing.T, backend string, _ uint16, version string) {
		s, address := server(t, version)
		h := dial(t, backend, address, &tls.Config{})
		h.write(t, "hello, openssl\n")
		s.await("hello, openssl\n")
		long := strings.Repeat("0123456789", 5000)
		s.typed(long)
		h.received(t, long+"\n")
		h.ref.Close()
		s.await("DONE")
	})
}

// A server that ends in order.
func TestServerEnds(t *testing.T) {
	each(t, func(t *testing.T, backend string, _ uint16, version string) {
		_, address := server(t, version, "-www")
		h := dial(t, backend, address, &tls.Config{})
		h.write(t, "GET / HTTP/1.0\r\n\r\n")
		h.received(t, "200 ok")
		if eof, err := h.closed(t); !eof || err != nil {
			t.Errorf("the end was announced: %v; Closed got %v", eof, err)
		}
	})
}

// A server that ends in the middle has not said so.
func TestServerBreaksOff(t *testing.T) {
	each(t, func(t *testing.T, backend string, _ uint16, version string) {
		s, address := server(t, version)
		h := dial(t, backend, address, &tls.Config{})
		h.write(t, "hello\n")
		s.await("hello\n")
		s.cmd.Process.Kill()
		if eof, err := h.closed(t); eof || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the end was announced: %v; Closed got %v", eof, err)
		}
	})
}

// A server asks for the client's certificate.
func TestServerVerifies(t *testing.T) {
	each(t, func(t *testing.T, backend string, _ uint16, version string) {
		s, address := server(t, version, "-CAfile", file("ca.crt"), "-Verify", "1", "-verify_return_error")
		h := dial(t, backend, address, &tls.Config{Certificates: keyPair(t, "client")})
		h.write(t, "hello\n")
		s.await("hello\n")
		if out := s.output(); !strings.Contains(out, "CN = client") {
			t.Errorf("openssl does not know the client: %s", out)
		}
	})
}

// Keys are updated by the server, with and without asking for the client's.
func TestServerUpdatesKeys(t *testing.T) {
	each(t, func(t *testing.T, backend string, v uint16, version string) {
		if v != tls.VersionTLS13 {
			return
		}
		s, address := server(t, version, "-msg")
		h := dial(t, backend, address, &tls.Config{})
		for _, step := range []string{"before", "k", "one", "K", "both", "K", "again"} {
			if len(step) == 1 {
				s.command(step, "KeyUpdate")
				continue
			}
			s.typed(step)
			h.received(t, step+"\n")
			h.write(t, "echo of "+step+"\n")
			s.await("echo of " + step + "\n")
		}
	})
}

// A server renegotiates, with a client that is configured for it: once or as often
// as it likes. Output of the time between waits.
func TestServerRenegotiates(t *testing.T) {
	each(t, func(t *testing.T, backend string, v uint16, version string) {
		if v != tls.VersionTLS12 {
			return
		}
		for _, test := range []struct {
			how  tls.RenegotiationSupport
			most int
		}{{tls.RenegotiateFreelyAsClient, 4}, {tls.RenegotiateOnceAsClient, 2}, {tls.RenegotiateNever, 1}} {
			s, address := server(t, version)
			h := dial(t, backend, address, &tls.Config{Renegotiation: test.how})
			h.write(t, "first\n")
			s.await("first\n")
			for i := 1; i < test.most; i++ {
				s.command("r", "SSL_do_handshake -> 1")
				name := fmt.Sprint("after handshake ", i)
				h.write(t, name+"\n")
				s.await(name + "\n")
				s.typed("typed " + name)
				h.received(t, "typed "+name+"\n")
			}
			if test.how != tls.RenegotiateFreelyAsClient {
				s.typed("r")
				if eof, err := h.closed(t); eof || err == nil {
					t.Errorf("after one too many: the end was announced: %v; Closed got %v", eof, err)
				}
			}
			if h.ready != test.most {
				t.Errorf("%d handshakes, want %d", h.ready, test.most)
			}
		}
	})
}
