package backendtest_test

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rtls"
)

// secured is a World whose connections are TLS, with Go's client at the other end.
type secured struct {
	backendtest.World
	o *rtls.Options
}

var secrets = sync.OnceValues(func() (server, client *tls.Config) {
	a := testcert.New("laws")
	server = &tls.Config{Certificates: []tls.Certificate{a.Issue(testcert.ECDSA, "law.test")}}
	return server, &tls.Config{RootCAs: a.Pool(), ServerName: "law.test"}
})

func (w secured) Listen(e *rondo.Engine, open rondo.OpenFunc) net.Addr {
	w.Helper()
	server, _ := secrets()
	return w.World.Listen(e, rondo.Filtered(open, w.o.Server(server)))
}

func (w secured) Dial(addr net.Addr) backendtest.Peer {
	w.Helper()
	raw := w.World.Dial(addr)
	_, client := secrets()
	c := tls.Client(raw, client)
	c.Handshake() // if it fails, later calls fail too
	return securedPeer{c, raw}
}

func (w secured) Conn(p backendtest.Peer) net.Conn { return p.(securedPeer).Conn }

type securedPeer struct {
	*tls.Conn
	raw backendtest.Peer
}

func (p securedPeer) Reset() { p.raw.Reset() }

// CloseWrite also ends the stream below TLS, as an ordinary program's Close does.
func (p securedPeer) CloseWrite() error {
	if err := p.Conn.CloseWrite(); err != nil {
		return err
	}
	return p.raw.CloseWrite()
}

// notOfTLS are laws whose peers cannot be Go's TLS client, and notFiltered.
var notOfTLS = append([]string{
	// A write that runs out of time is its last.
	"HighWaterStopsReading", "PauseStopsReading", "CoIdleReaderIsNotRead", "RelayOfPeersThatOnlySend",
	"PairIsBounded", "PairDirectionsAreIndependent", "PairPassesResetsOfStreams",
	// Those that are refused are told in plain text.
	"ConnsAreBounded", "RefusedAreFew", "RefuseFails",
	// They count the wire's bytes.
	"TraceAndStats", "CoWriteWaits",
	// They listen or dial without the World.
	"ListenerCloseKeepsConns", "DialedConnIsServed", "CoDials", "CoHTTP", "CoProxies",
	// They use TLS already.
	"CoTLS",
	// Not every backend attaches a *tls.Conn.
	"AttachedConnIsServed", "AttachFails",
}, notFiltered...)

// TestLawsTLS runs the engine's laws through TLS, on every backend of this platform.
func TestLawsTLS(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a law mostly waits
			backendtest.Laws(t, func(t *testing.T) backendtest.World {
				return secured{backendtest.Sockets(t, name), &rtls.Options{}}
			}, notOfTLS...)
		})
	}
}

// TestLawsTLSSimulated runs them on simulated networks, with handshakes on the loop and
// off it.
func TestLawsTLSSimulated(t *testing.T) {
	for name, o := range map[string]*rtls.Options{
		"on the loop":  {},
		"off the loop": {OffLoop: 1},
	} {
		t.Run(name, func(t *testing.T) {
			trySeeds(t, func(w *simulated) backendtest.World { return secured{w, o} }, notOfTLS...)
		})
	}
}
