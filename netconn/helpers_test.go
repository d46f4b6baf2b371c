package netconn_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/netconn"
	"github.com/rondo-go/rondo/rtls"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// A kind is what lies between a netconn.Conn and the wire.
type kind struct {
	name           string
	server, client []rondo.FilterOpenFunc
}

// pass is a filter that changes nothing.
func pass(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }

var cert = sync.OnceValue(func() tls.Certificate { return authority().Issue(testcert.ECDSA, "server.test") })

var authority = sync.OnceValue(func() *testcert.Authority { return testcert.New("rondo test CA") })

func serverConfig() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{cert()}} }

func clientConfig() *tls.Config {
	return &tls.Config{RootCAs: authority().Pool(), ServerName: "server.test"}
}

func kinds() []kind {
	return []kind{
		{name: "plain"},
		{name: "filter", server: []rondo.FilterOpenFunc{pass}, client: []rondo.FilterOpenFunc{pass}},
		{
			name:   "tls",
			server: []rondo.FilterOpenFunc{rtls.Server(serverConfig())},
			client: []rondo.FilterOpenFunc{rtls.Client(clientConfig())},
		},
	}
}

// onEach runs a test on each backend.
func onEach(t *testing.T, f func(t *testing.T, backend string)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// everywhere runs a test on each backend, with each kind of connection.
func everywhere(t *testing.T, f func(t *testing.T, e *rondo.Engine, k kind)) {
	onEach(t, func(t *testing.T, backend string) {
		for _, k := range kinds() {
			t.Run(k.name, func(t *testing.T) { f(t, engine(t, &rondo.Engine{Backend: backend, NumLoops: 2}), k) })
		}
	})
}

func engine(t testing.TB, e *rondo.Engine) *rondo.Engine {
	t.Helper()
	t.Cleanup(func() { e.Close() })
	must(t, e.Start())
	return e
}

// pair returns the ends of a connection, both the engine's.
func pair(t testing.TB, e *rondo.Engine, k kind) (server, client *netconn.Conn) {
	t.Helper()
	ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{Filters: k.server})
	must(t, err)
	defer ln.Close()
	d := netconn.Dialer{Engine: e, Options: netconn.Options{Filters: k.client}}
	dialed := make(chan net.Conn, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := d.DialContext(ctx, "tcp", ln.Addr().String())
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	ln.SetDeadline(time.Now().Add(patience))
	s, err := ln.Accept()
	must(t, err)
	c := <-dialed
	if c == nil {
		t.FailNow()
	}
	t.Cleanup(func() {
		s.Close()
		c.Close()
	})
	return s.(*netconn.Conn), c.(*netconn.Conn)
}

// withPeer returns a plain connection of the engine's, and its peer of package net.
func withPeer(t testing.TB, e *rondo.Engine) (*netconn.Conn, *net.TCPConn) {
	t.Helper()
	ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
	must(t, err)
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	ln.SetDeadline(time.Now().Add(patience))
	c, err := ln.Accept()
	must(t, err)
	t.Cleanup(func() {
		peer.Close()
		c.Close()
	})
	return c.(*netconn.Conn), peer.(*net.TCPConn)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expect reads want.
func expect(t testing.TB, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

func send(t testing.TB, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); err != nil || n != len(s) {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(s), err)
	}
}

// within fails the test if f does not return soon.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s does not return", what)
	}
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// pattern is n bytes that differ from place to place.
func pattern(n int) []byte {
	p := make([]byte, n)
	x := uint32(n) + 1
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
	}
	return p
}

func equal(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, which are not the %d expected", len(got), len(want))
	}
}

// is fails the test unless err is a *net.OpError of op for target.
func is(t testing.TB, err error, op string, target error) {
	t.Helper()
	var e *net.OpError
	if !errors.As(err, &e) || e.Op != op || !errors.Is(err, target) {
		t.Fatalf("%v (%T): want a *net.OpError of %s for %v", err, err, op, target)
	}
}

// quietLog drops what an engine logs.
var quietLog = slog.New(slog.DiscardHandler)
