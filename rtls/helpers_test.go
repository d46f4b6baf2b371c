package rtls_test

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

var (
	echo      = testkit.Echo
	listen    = testkit.Listen // on a real socket: what blocks is real
	roundTrip = testkit.Echoes
)

// authority signs everybody's certificates; host is the servers' name.
var authority = sync.OnceValue(func() *testcert.Authority { return testcert.New("rondo test CA") })

const host = "server.test"

var hostCert = sync.OnceValue(func() tls.Certificate { return authority().Issue(testcert.ECDSA, host) })

// serverConfig is of a server of the given version, 0 for any.
func serverConfig(version uint16) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{hostCert()}, MinVersion: version, MaxVersion: version}
}

// clientConfig is of a client that trusts it.
func clientConfig() *tls.Config {
	return &tls.Config{RootCAs: authority().Pool(), ServerName: host}
}

var versions = map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13}

// eachVersion tries f with each.
func eachVersion(t *testing.T, f func(t *testing.T, version uint16)) {
	for name, v := range versions {
		t.Run(name, func(t *testing.T) { f(t, v) })
	}
}

// seeds returns how many seeds to try: a tenth with -short.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return all / 10
	}
	return all
}

// player is a handler that echoes, and notes what happens.
type player struct {
	data func(c *rondo.Conn, in []byte) (int, error) // nil: echo
	eof  func(c *rondo.Conn)                         // nil: Close

	conn   *rondo.Conn
	opened int
	got    []byte
	ended  bool
	closed bool
	err    error
}

func (h *player) open(c *rondo.Conn) rondo.Handler {
	h.conn = c
	h.opened++
	return h
}

func (h *player) Data(c *rondo.Conn, in []byte) (int, error) {
	data := h.data
	if data == nil {
		data = func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }
	}
	n, err := data(c, in)
	h.got = append(h.got, in[:n]...)
	return n, err
}

func (h *player) EOF(c *rondo.Conn) {
	h.ended = true
	if h.eof != nil {
		h.eof(c)
	} else {
		c.Close()
	}
}

func (h *player) Closed(_ *rondo.Conn, err error) { h.closed, h.err = true, err }

// handshake is a tls.Client's, on a simulated connection.
func handshake(t *testing.T, conn net.Conn, config *tls.Config) *tls.Conn {
	t.Helper()
	c := tls.Client(conn, config)
	if err := c.Handshake(); err != nil {
		t.Fatalf("handshake: %v", err)
	}
	return c
}

// serve is n.Serve with TLS.
func serve(n *rondotest.Network, h *player, config *tls.Config) *rondo.Engine {
	return n.Serve(":7", rondo.Filtered(h.open, rtls.Server(config)))
}
