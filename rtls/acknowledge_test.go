package rtls_test

import (
	"crypto/tls"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// countAcknowledged counts the connections that are asked to acknowledge, for the rest
// of the test.
func countAcknowledged(t *testing.T) *int {
	n, of := 0, bridge.Of
	bridge.Of = func(c any) bridge.Conn { return &acknowledged{of(c), &n} }
	t.Cleanup(func() { bridge.Of = of })
	return &n
}

// acknowledged counts calls of Acknowledge.
type acknowledged struct {
	bridge.Conn
	n *int
}

func (a *acknowledged) Acknowledge() {
	*a.n++
	a.Conn.Acknowledge()
}

// A server acknowledges the handshake's last message once, if it is the client's and
// nothing was sent in answer.
func TestAcknowledges(t *testing.T) {
	greet := func(c *rondo.Conn) { c.Write([]byte("hello")) }
	wantCert := func(c *tls.Config) {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs = authority().Pool()
	}
	noTickets := func(c *tls.Config) { c.SessionTicketsDisabled = true }
	for what, test := range map[string]struct {
		version uint16
		open    func(*rondo.Conn)
		server  []func(*tls.Config)
		forgets bool // the client has no use for tickets
		resume  bool
		want    int
	}{
		"TLS 1.3":                            {version: tls.VersionTLS13, want: 1},
		"TLS 1.3, and no ticket":             {version: tls.VersionTLS13, forgets: true, want: 1},
		"TLS 1.3, resumed":                   {version: tls.VersionTLS13, resume: true, want: 1},
		"TLS 1.3, the server speaks first":   {version: tls.VersionTLS13, open: greet, want: 0},
		"TLS 1.3, a client's certificate":    {version: tls.VersionTLS13, server: []func(*tls.Config){wantCert}, want: 0}, // the ticket comes last
		"TLS 1.3, that and no ticket":        {version: tls.VersionTLS13, server: []func(*tls.Config){wantCert, noTickets}, want: 1},
		"TLS 1.2":                            {version: tls.VersionTLS12, want: 0},
		"TLS 1.2, resumed":                   {version: tls.VersionTLS12, resume: true, want: 1},
		"TLS 1.2, resumed, and spoken first": {version: tls.VersionTLS12, resume: true, open: greet, want: 0},
	} {
		for _, offLoop := range []int{0, 1} {
			n := rondotest.New(t, rondotest.Options{Seed: 1, Fragment: -1})
			config, own := serverConfig(test.version), clientConfig()
			for _, set := range test.server {
				set(config)
			}
			own.Certificates = []tls.Certificate{hostCert()}
			if !test.forgets {
				own.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			}
			h := &player{}
			open := func(c *rondo.Conn) rondo.Handler {
				if test.open != nil {
					test.open(c)
				}
				return h.open(c)
			}
			n.Serve(":7", rondo.Filtered(open, (&rtls.Options{OffLoop: offLoop}).Server(config)))
			if test.resume {
				first := handshake(t, n.Dial("tcp", "127.0.0.1:7"), own)
				if test.open == nil {
					roundTrip(t, first, "hello") // and a ticket of TLS 1.3 comes before it
				}
				first.Close()
				n.Run()
			}
			count := countAcknowledged(t)
			c := handshake(t, n.Dial("tcp", "127.0.0.1:7"), own)
			n.Run()
			if resumed := c.ConnectionState().DidResume; resumed != test.resume {
				t.Fatalf("%s: resumed: %v", what, resumed)
			}
			if test.open == nil {
				roundTrip(t, c, "ping")
			}
			n.Run()
			if *count != test.want {
				t.Errorf("%s, OffLoop %d: acknowledged %d times, want %d", what, offLoop, *count, test.want)
			}
		}
	}
}

// So does a client, if the last message is the server's.
func TestClientAcknowledges(t *testing.T) {
	for version, want := range map[uint16]int{tls.VersionTLS13: 1, tls.VersionTLS12: 1} {
		n := rondotest.New(t, rondotest.Options{Seed: 1, Fragment: -1})
		serve(n, &player{}, serverConfig(version))
		count := countAcknowledged(t)
		client := &player{}
		failed := dial(n, "127.0.0.1:7", client, func(*rondo.Conn) {}, rtls.Client(clientConfig()))
		n.Run()
		if *failed != nil || *count != want {
			t.Errorf("%s: acknowledged %d times, want %d; %v", tls.VersionName(version), *count, want, *failed)
		}
	}
}

// A client that has a request to send at once does not.
func TestClientThatWritesAcknowledgesNothing(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Seed: 1, Fragment: -1})
	server := &player{}
	serve(n, server, serverConfig(tls.VersionTLS12))
	count := countAcknowledged(t)
	client := &player{data: func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
	failed := dial(n, "127.0.0.1:7", client, func(c *rondo.Conn) { c.Write([]byte("ping")) }, rtls.Client(clientConfig()))
	n.Run()
	if *failed != nil || *count != 0 || string(server.got) != "ping" {
		t.Errorf("acknowledged %d times, the server got %q; %v", *count, server.got, *failed)
	}
}
