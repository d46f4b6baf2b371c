package tls

import (
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// serve listens for TLS, and returns the address and the handler of the one
// connection that is to come.
func serve(t *testing.T, backend string, config *tls.Config) (string, *handler) {
	t.Helper()
	config.Certificates = keyPair(t, "server")
	h := &handler{}
	e := &rondo.Engine{NumLoops: 1, Backend: backend}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(h.open, rtls.Server(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ln.Addr().String(), h
}

// client is openssl's.
func client(t *testing.T, address string, more ...string) *openssl {
	t.Helper()
	return start(t, append([]string{"s_client", "-connect", address, "-CAfile", file("ca.crt"),
		"-verify_return_error", "-verify_hostname", "localhost", "-servername", "localhost"}, more...)...)
}

// A conversation, and an orderly end.
func TestClientTalks(t *testing.T) {
	each(t, func(t *testing.T, backend string, _ uint16, version string) {
		address, h := serve(t, backend, &tls.Config{})
		c := client(t, address, version)
		c.typed("hello, rondo")
		h.received(t, "hello, rondo\n")
		long := strings.Repeat("0123456789", 5000)
		c.typed(long)
		c.await(long)
		c.stdin.Close() // s_client sends close_notify at the end of its input
		c.exit()
		if eof, err := h.closed(t); !eof || err != nil {
			t.Errorf("the end was announced: %v; Closed got %v", eof, err)
		}
	})
}

// A client that shows a certificate, resumes its session, and agrees on a protocol.
func TestClientIsKnown(t *testing.T) {
	each(t, func(t *testing.T, backend string, _ uint16, version string) {
		config := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities(t), NextProtos: []string{"rondo"}}
		address, h := serve(t, backend, config)
		session := t.TempDir() + "/session"
		identity := []string{version, "-cert", file("client.crt"), "-key", file("client.key"), "-alpn", "other,rondo"}
		c := client(t, address, append(identity, "-sess_out", session)...)
		c.typed("one")
		h.received(t, "one\n")
		c.await("ALPN protocol: rondo")
		if version == "-tls1_3" {
			c.await("New Session Ticket arrived") // behind the handshake
		}
		c.typed("Q")
		c.exit()
		c = client(t, address, append(identity, "-sess_in", session)...)
		c.typed("two")
		h.received(t, "two\n")
		c.await("Reused")
		c.typed("Q")
		c.exit()

		c = client(t, address, version)
		c.typed("nobody")
		c.exit()
		if out := c.output(); !strings.Contains(out, "alert") {
			t.Errorf("without a certificate openssl says: %s", out)
		}
	})
}

// A client that ends in the middle, or breaks off, has not said so.
func TestClientBreaksOff(t *testing.T) {
	each(t, func(t *testing.T, backend string, _ uint16, version string) {
		address, h := serve(t, backend, &tls.Config{})
		c := client(t, address, version)
		c.typed("hello")
		h.received(t, "hello\n")
		c.cmd.Process.Kill()
		if eof, err := h.closed(t); eof || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the end was announced: %v; Closed got %v", eof, err)
		}
	})
}

// Keys are updated by the client, with and without asking for the server's.
func TestClientUpdatesKeys(t *testing.T) {
	each(t, func(t *testing.T, backend string, v uint16, version string) {
		if v != tls.VersionTLS13 {
			return
		}
		address, h := serve(t, backend, &tls.Config{})
		c := client(t, address, version)
		for _, step := range []string{"before", "k", "one", "K", "both", "K", "again"} {
			if len(step) == 1 {
				c.command(step, "KEYUPDATE")
				continue
			}
			c.typed(step)
			h.received(t, step+"\n")
			c.await(step)
		}
		c.typed("Q")
		c.exit()
		if _, err := h.closed(t); err != nil {
			t.Errorf("Closed got %v", err)
		}
	})
}

// A client that wants to renegotiate gets an alert, as crypto/tls has it.
func TestClientRenegotiates(t *testing.T) {
	each(t, func(t *testing.T, backend string, v uint16, version string) {
		if v != tls.VersionTLS12 {
			return
		}
		address, h := serve(t, backend, &tls.Config{})
		c := client(t, address, version)
		c.typed("hello")
		h.received(t, "hello\n")
		c.typed("R")
		c.exit()
		if eof, err := h.closed(t); eof || err == nil {
			t.Errorf("the end was announced: %v; Closed got %v", eof, err)
		}
		if out := c.output(); !strings.Contains(out, "alert") {
			t.Errorf("openssl says: %s", out)
		}
	})
}

// Go's own client.
func TestGoClient(t *testing.T) {
	each(t, func(t *testing.T, backend string, v uint16, _ string) {
		address, h := serve(t, backend, &tls.Config{MinVersion: v, MaxVersion: v})
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: authorities(t), ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		msg := strings.Repeat("hello", 20_000)
		got := make([]byte, len(msg))
		go io.WriteString(c, msg)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != msg {
			t.Errorf("the echo differs: %v", err)
		}
		c.CloseWrite()
		if _, err := c.Read(got); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
		c.Close()
		if eof, err := h.closed(t); !eof || err != nil {
			t.Errorf("the end was announced: %v; Closed got %v", eof, err)
		}
	})
}
