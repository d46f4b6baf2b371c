package rtls_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// Go's client and an echo server, from the handshake to both close_notifies.
func TestServer(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		for seed := range seeds(20) {
			n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
			h := &player{}
			serve(n, h, serverConfig(version))
			c := handshake(t, n.Dial("tcp", "127.0.0.1:7"), clientConfig())
			for _, size := range []int{1, 100, 16 << 10, 16<<10 + 1, 200_000} {
				roundTrip(t, c, string(bytes.Repeat([]byte{byte(size)}, size)))
			}
			n.Run()
			state, ok := rtls.ConnectionState(h.conn)
			if !ok || state.Version != version || state.ServerName != host || state.CipherSuite != c.ConnectionState().CipherSuite {
				t.Errorf("the connection's state: %v, %+v", ok, state)
			}
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if k, err := c.Read(make([]byte, 1)); k != 0 || err != io.EOF {
				t.Errorf("after CloseWrite: %d, %v", k, err)
			}
			c.Close()
			n.Run()
			if h.opened != 1 || !h.ended || !h.closed || h.err != nil {
				t.Errorf("opened %d times, ended %v, closed %v, %v", h.opened, h.ended, h.closed, h.err)
			}
			if t.Failed() {
				return
			}
			n.Close()
		}
	})
}

// A client and a server on rondo, with all that a handshake can agree on.
func TestClient(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
		server := &player{}
		config := serverConfig(version)
		config.NextProtos = []string{"two", "one"}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = authority().Pool()
		config.Certificates = nil
		asked := ""
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			asked = hello.ServerName
			if hello.Conn.RemoteAddr() == nil || hello.Conn.LocalAddr() == nil {
				return nil, errors.New("no addresses")
			}
			cert := hostCert()
			return &cert, nil
		}
		serve(n, server, config)

		mine := authority().Issue(testcert.RSA, "client.test")
		own := clientConfig()
		own.NextProtos = []string{"one", "three"}
		own.Certificates = []tls.Certificate{mine}
		var got []byte
		client := &player{
			data: func(c *rondo.Conn, in []byte) (int, error) {
				if got = append(got, in...); len(got) == 5 {
					c.Close()
				}
				return len(in), nil
			},
		}
		failed := dial(n, "127.0.0.1:7", client, func(c *rondo.Conn) { c.Write([]byte("hello")) }, rtls.Client(own))
		n.Run()
		if *failed != nil || string(got) != "hello" || asked != host {
			t.Fatalf("dialed: %v; got %q; asked for %q", *failed, got, asked)
		}
		if !client.closed || client.err != nil || !server.closed || server.err != nil || !server.ended {
			t.Errorf("client: closed %v, %v; server: ended %v, closed %v, %v", client.closed, client.err, server.ended, server.closed, server.err)
		}
		there, ok := rtls.ConnectionState(server.conn)
		if !ok || len(there.PeerCertificates) != 1 || !there.PeerCertificates[0].Equal(mine.Leaf) || there.NegotiatedProtocol != "one" {
			t.Errorf("the server knows %v, %+v", ok, there)
		}
		here, ok := rtls.ConnectionState(client.conn)
		if !ok || len(here.VerifiedChains) == 0 || here.NegotiatedProtocol != "one" || here.Version != version {
			t.Errorf("the client knows %v, %+v", ok, here)
		}
	})
}

// dial connects an engine of its own; opened is called with the connection. What
// it returns is why there is none.
func dial(n *rondotest.Network, address string, h *player, opened func(*rondo.Conn), filters ...rondo.FilterOpenFunc) *error {
	e := n.Engine(&rondo.Engine{})
	n.Await(func() { e.Start() })
	failed := new(error)
	for l := range e.Loops() {
		l.Post(func() {
			l.Dial("tcp", address, rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
				if *failed = err; err != nil {
					return nil
				}
				opened(c)
				return h.open(c)
			}, filters...))
		})
	}
	return failed
}

// Who is not trusted is told so, and nobody's OpenFunc hears of it.
func TestHandshakeFails(t *testing.T) {
	t.Run("server's certificate", func(t *testing.T) {
		n := rondotest.New(t, rondotest.Options{})
		server := &player{}
		var why error
		e := n.Engine(&rondo.Engine{Trace: &rondo.Trace{FilterFailed: func(_ *rondo.Conn, _ rondo.Filter, err error) { why = err }}})
		n.Listen(e, "tcp", ":7", rondo.Filtered(server.open, rtls.Server(serverConfig(0))))
		failed := dial(n, "127.0.0.1:7", &player{}, func(*rondo.Conn) { t.Error("connected") },
			rtls.Client(&tls.Config{RootCAs: x509.NewCertPool(), ServerName: host}))
		n.Run()
		var unknown x509.UnknownAuthorityError
		if !errors.As(*failed, &unknown) {
			t.Errorf("the client hears %v", *failed)
		}
		if !isAlert(why) || server.opened != 0 {
			t.Errorf("the server hears %v; opened %d times", why, server.opened)
		}
		if got := e.Stats().FiltersFailed; got != 1 {
			t.Errorf("%d failures by the counts", got)
		}
	})
	t.Run("client's certificate", func(t *testing.T) {
		eachVersion(t, func(t *testing.T, version uint16) {
			n := rondotest.New(t, rondotest.Options{})
			config := serverConfig(version)
			config.ClientAuth = tls.RequireAndVerifyClientCert
			config.ClientCAs = authority().Pool()
			server := &player{}
			serve(n, server, config)
			c := tls.Client(n.Dial("tcp", "127.0.0.1:7"), clientConfig())
			err := c.Handshake()
			if err == nil { // in TLS 1.3 the client is done before the server knows
				_, err = c.Read(make([]byte, 1))
			}
			if !isAlert(err) || server.opened != 0 {
				t.Errorf("without a certificate: %v; the handler was made %d times", err, server.opened)
			}
		})
	})
	t.Run("version", func(t *testing.T) {
		n := rondotest.New(t, rondotest.Options{})
		serve(n, &player{}, serverConfig(tls.VersionTLS13))
		config := clientConfig()
		config.MaxVersion = tls.VersionTLS12
		if err := tls.Client(n.Dial("tcp", "127.0.0.1:7"), config).Handshake(); !isAlert(err) {
			t.Errorf("with TLS 1.2: %v", err)
		}
	})
}

// isAlert reports whether err is an alert of the peer's.
func isAlert(err error) bool {
	return err != nil && strings.Contains(err.Error(), "remote error: tls: ")
}

// A session is resumed, with tickets that Go's client keeps.
func TestResumption(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		n := rondotest.New(t, rondotest.Options{})
		h := &player{}
		serve(n, h, serverConfig(version))
		config := clientConfig()
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		for i, want := range []bool{false, true, true} {
			c := handshake(t, n.Dial("tcp", "127.0.0.1:7"), config)
			roundTrip(t, c, "hello")
			if got := c.ConnectionState().DidResume; got != want {
				t.Errorf("connection %d: resumed %v", i, got)
			}
			if state, ok := rtls.ConnectionState(h.conn); !ok || state.DidResume != want {
				t.Errorf("connection %d, of the server: resumed %v", i, state.DidResume)
			}
			c.Close()
			n.Run()
		}
	})
}

// Either side ends its direction, and the other goes on.
func TestHalfClose(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		n := rondotest.New(t, rondotest.Options{})
		big := bytes.Repeat([]byte("0123456789"), 100_000)
		h := &player{data: func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
		h.eof = func(c *rondo.Conn) {
			c.Write(big)
			c.CloseWrite()
		}
		serve(n, h, serverConfig(version))
		raw := n.Dial("tcp", "127.0.0.1:7")
		c := handshake(t, raw, clientConfig())
		io.WriteString(c, "question")
		c.CloseWrite()
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, big) {
			t.Errorf("after CloseWrite %d bytes came, %v", len(got), err)
		}
		raw.Close()
		n.Run()
		if string(h.got) != "question" || !h.closed || h.err != nil {
			t.Errorf("got %q, closed %v, %v", h.got, h.closed, h.err)
		}

		h = &player{data: func(c *rondo.Conn, in []byte) (int, error) {
			if string(in) == "end" {
				c.Write([]byte("yours"))
				c.CloseWrite()
			}
			return len(in), nil
		}}
		n.Serve(":8", rondo.Filtered(h.open, rtls.Server(serverConfig(version))))
		c = handshake(t, n.Dial("tcp", "127.0.0.1:8"), clientConfig())
		io.WriteString(c, "end")
		if got, err := io.ReadAll(c); err != nil || string(got) != "yours" {
			t.Errorf("to the server's end: %q, %v", got, err)
		}
		io.WriteString(c, "mine")
		c.Close()
		n.Run()
		if string(h.got) != "endmine" || !h.ended || !h.closed || h.err != nil {
			t.Errorf("got %q, ended %v, closed %v, %v", h.got, h.ended, h.closed, h.err)
		}
	})
}

// A stream that ends without close_notify was cut off.
func TestTruncation(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		n := rondotest.New(t, rondotest.Options{})
		h := &player{}
		serve(n, h, serverConfig(version))
		raw := n.Dial("tcp", "127.0.0.1:7")
		roundTrip(t, handshake(t, raw, clientConfig()), "hello")
		raw.CloseWrite()
		n.Run()
		raw.Close()
		n.Run()
		if h.ended || !h.closed || !errors.Is(h.err, io.ErrUnexpectedEOF) {
			t.Errorf("ended %v, closed %v, %v", h.ended, h.closed, h.err)
		}
	})
	t.Run("handshake", func(t *testing.T) {
		n := rondotest.New(t, rondotest.Options{})
		var why error
		n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
			c.Use(nil, rtls.Server(serverConfig(0)))
			return closing(func(err error) { why = err })
		})
		c := n.Dial("tcp", "127.0.0.1:7")
		c.Send("\x16\x03\x01")
		c.Close()
		n.Run()
		if !errors.Is(why, io.ErrUnexpectedEOF) {
			t.Errorf("Closed got %v", why)
		}
	})
}

// closing is a handler of Closed alone.
type closing func(error)

func (closing) Data(*rondo.Conn, []byte) (int, error) { return 0, nil }
func (f closing) Closed(_ *rondo.Conn, err error)     { f(err) }

// A connection becomes TLS in its middle, and the handler learns of it.
func TestStartTLS(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	secret := &player{}
	config := rtls.Server(serverConfig(0))
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if !bytes.HasPrefix(in, []byte("STARTTLS\n")) {
				return 0, nil
			}
			if _, ok := rtls.ConnectionState(c); ok {
				t.Error("a state before TLS")
			}
			c.Write([]byte("GO\n"))
			c.Use(func(c *rondo.Conn) rondo.Handler {
				state, ok := rtls.ConnectionState(c)
				fmt.Fprintf(c, "%v %s\n", ok, state.ServerName)
				return secret.open(c)
			}, config)
			if _, ok := rtls.ConnectionState(c); ok {
				t.Error("a state before the handshake")
			}
			return len("STARTTLS\n"), nil
		})
	})
	raw := n.Dial("tcp", "127.0.0.1:7")
	raw.Send("STARTTLS\n")
	raw.Expect("GO\n")
	c := handshake(t, raw, clientConfig())
	want := "true " + host + "\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	roundTrip(t, c, "hello")
}

// TLS in TLS.
func TestTwice(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	h := &player{}
	n.Serve(":7", rondo.Filtered(h.open, rtls.Server(serverConfig(tls.VersionTLS12)), rtls.Server(serverConfig(tls.VersionTLS13))))
	outer := handshake(t, n.Dial("tcp", "127.0.0.1:7"), clientConfig())
	inner := handshake(t, outer, clientConfig())
	roundTrip(t, inner, string(make([]byte, 100_000)))
	if state, ok := rtls.ConnectionState(h.conn); !ok || state.Version != tls.VersionTLS13 {
		t.Errorf("%v, %x", ok, state.Version)
	}
	inner.Close()
	n.Run()
	if !h.closed || h.err != nil {
		t.Errorf("closed %v, %v", h.closed, h.err)
	}
}
