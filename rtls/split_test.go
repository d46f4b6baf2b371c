package rtls_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// cutter is a connection that cuts what is written at one place, 0 for none, or
// everywhere (-1): what comes behind it is written when the network is quiet.
type cutter struct {
	net.Conn
	n       *rondotest.Network
	at      int
	written int
}

func (c *cutter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		k := len(rest)
		switch {
		case c.at < 0:
			k = 1
		case c.written < c.at && c.at < c.written+k:
			k = c.at - c.written
		}
		if _, err := c.Conn.Write(rest[:k]); err != nil {
			return 0, err
		}
		c.written += k
		if rest = rest[k:]; len(rest) > 0 {
			c.n.Run()
		}
	}
	return len(p), nil
}

// mutual makes the handshake as long as it gets, with keys that are short.
func mutual(version uint16) (server, client *tls.Config) {
	server, client = serverConfig(version), clientConfig()
	server.ClientAuth = tls.RequireAndVerifyClientCert
	server.ClientCAs = authority().Pool()
	client.Certificates = []tls.Certificate{hostCert()}
	client.CurvePreferences = []tls.CurveID{tls.X25519}
	return server, client
}

// on runs f with handshakes on the loop, for every place, and off it, for some:
// what is cut is read by the same code. -short means some for both.
func on(t *testing.T, f func(t *testing.T, o *rtls.Options, step int)) {
	on, off := 1, 13
	if testing.Short() {
		on, off = 29, 61
	}
	t.Run("on the loop", func(t *testing.T) { f(t, &rtls.Options{}, on) })
	t.Run("off the loop", func(t *testing.T) { f(t, &rtls.Options{OffLoop: 2}, off) })
}

// Wherever what a client sends is cut, in the handshake, in a message or in
// close_notify, the server understands the same.
func TestServerSplit(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		on(t, func(t *testing.T, o *rtls.Options, step int) {
			serverSide, clientSide := mutual(version)
			n := rondotest.New(t, rondotest.Options{Seed: 1, Fragment: -1})
			var h *player
			n.Serve(":7", rondo.Filtered(func(c *rondo.Conn) rondo.Handler { h = &player{}; return h.open(c) }, o.Server(serverSide)))
			for at, total := -1, 1; at < total && !t.Failed(); at += step {
				h = nil
				raw := &cutter{n.Dial("tcp", "127.0.0.1:7"), n, at, 0}
				c := handshake(t, raw, clientSide)
				roundTrip(t, c, "hello")
				c.CloseWrite()
				if _, err := c.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("cut at %d: at the end: %v", at, err)
				}
				total = raw.written
				raw.Close()
				n.Run()
				if string(h.got) != "hello" || !h.ended || !h.closed || h.err != nil {
					t.Errorf("cut at %d: got %q, ended %v, closed %v, %v", at, h.got, h.ended, h.closed, h.err)
				}
			}
		})
	})
}

// cut is a filter that sends everything, or what comes behind one place, late.
type cut struct {
	rondo.PassThrough
	at, sent int
	waiting  []byte
}

func (f *cut) Outbound(s *rondo.FilterPort, out []byte) error {
	f.waiting = append(f.waiting, out...)
	if len(f.waiting) == len(out) {
		f.send(s)
	}
	return nil
}

func (f *cut) send(s *rondo.FilterPort) {
	k := len(f.waiting)
	switch {
	case f.at < 0:
		k = min(k, 1)
	case f.sent < f.at && f.at < f.sent+k:
		k = f.at - f.sent
	}
	s.Send(f.waiting[:k])
	f.sent += k
	f.waiting = f.waiting[k:]
	if len(f.waiting) > 0 {
		s.Conn().Loop().AfterFunc(10*time.Millisecond, func() { f.send(s) })
	}
}

func (f *cut) CloseWrite(s *rondo.FilterPort) error {
	s.Send(f.waiting)
	return nil
}

// Wherever what a server sends is cut, the client understands the same.
func TestClientSplit(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		on(t, func(t *testing.T, o *rtls.Options, step int) {
			serverSide, clientSide := mutual(version)
			for at, total := -1, 1; at < total && !t.Failed(); at += step {
				n := rondotest.New(t, rondotest.Options{Seed: 1, Fragment: -1})
				knife := &cut{at: at}
				n.Serve(":7", rondo.Filtered((&player{}).open,
					func(*rondo.Conn) rondo.Filter { return knife }, rtls.Server(serverSide)))
				client := &player{data: func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
				failed := dial(n, "127.0.0.1:7", client, func(c *rondo.Conn) {
					c.Write([]byte("hello"))
					c.CloseWrite()
				}, o.Client(clientSide))
				n.Advance(time.Minute)
				if *failed != nil || string(client.got) != "hello" || !client.ended || !client.closed || client.err != nil {
					t.Errorf("cut at %d: %v; got %q, ended %v, closed %v, %v", at, *failed, client.got, client.ended, client.closed, client.err)
				}
				total = knife.sent
				n.Close()
			}
		})
	})
}
