package rtls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/loopstats"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// TestHandshakesAreCounted: each connection's handshake counts once: as done, or with the reason.
func TestHandshakesAreCounted(t *testing.T) {
	for name, o := range map[string]*rtls.Options{"on the loop": {}, "off the loop": {OffLoop: 1}} {
		t.Run(name, func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{})
			e := n.Engine(&rondo.Engine{NumLoops: 1})
			n.Listen(e, "tcp", ":7", rondo.Filtered((&player{}).open, o.Server(serverConfig(0))))
			var want loopstats.Loop
			counted := func(what string) {
				t.Helper()
				n.Run()
				got := loopstats.Of(e)[0]
				if got.Handshakes != want.Handshakes || got.FailedHandshakes != want.FailedHandshakes {
					t.Errorf("%s: %d done and %v failed, want %d and %v", what, got.Handshakes, got.FailedHandshakes, want.Handshakes, want.FailedHandshakes)
				}
			}
			c := n.Dial("tcp", "127.0.0.1:7")
			roundTrip(t, handshake(t, c, clientConfig()), "hello")
			want.Handshakes = 1
			counted("a handshake")
			c.Close()
			counted("its end")

			n.Dial("tcp", "127.0.0.1:7").Send("GET / HTTP/1.1\r\n\r\n")
			want.FailedHandshakes[loopstats.TLSForeign]++
			counted("HTTP")

			n.Dial("tcp", "127.0.0.1:7").Close()
			want.FailedHandshakes[loopstats.TLSGone]++
			counted("a client that goes")

			n.Dial("tcp", "127.0.0.1:7").Reset()
			want.FailedHandshakes[loopstats.TLSGone]++
			counted("a client that resets")

			distrusts := clientConfig()
			distrusts.RootCAs = x509.NewCertPool()
			tls.Client(n.Dial("tcp", "127.0.0.1:7"), distrusts).Handshake()
			want.FailedHandshakes[loopstats.TLSAlert]++
			counted("a client that does not trust the server")

			old := clientConfig()
			old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
			tls.Client(n.Dial("tcp", "127.0.0.1:7"), old).Handshake()
			want.FailedHandshakes[loopstats.TLSOther]++
			counted("a client of TLS 1.0")

			n.Dial("tcp", "127.0.0.1:7")
			n.Advance(time.Minute)
			want.FailedHandshakes[loopstats.TLSLate]++
			counted("a silent client")
		})
	}
	n := rondotest.New(t, rondotest.Options{})
	serve(n, &player{}, serverConfig(0))
	client := n.Engine(&rondo.Engine{NumLoops: 1})
	distrusts := clientConfig()
	distrusts.RootCAs = x509.NewCertPool()
	for _, config := range []*tls.Config{clientConfig(), distrusts} {
		n.Await(func() {
			client.Dial(context.Background(), "tcp", "127.0.0.1:7", rondo.SocketOptions{}, rondo.Filtered((&player{}).open, rtls.Client(config)))
		})
		n.Run()
	}
	if got := loopstats.Of(client)[0]; got.Handshakes != 1 || got.FailedHandshakes[loopstats.TLSCertificate] != 1 {
		t.Errorf("clients: %d done and %v failed", got.Handshakes, got.FailedHandshakes)
	}
}

// TestFailuresHaveNames: each reason has one word.
func TestFailuresHaveNames(t *testing.T) {
	names := make(map[string]bool)
	for f := loopstats.TLSFailure(0); f < loopstats.TLSFailures; f++ {
		names[f.String()] = true
	}
	if len(names) != loopstats.TLSFailures || names[""] || names["unknown"] {
		t.Errorf("the names are %v", names)
	}
	if s := loopstats.TLSFailure(loopstats.TLSFailures).String(); s != "unknown" {
		t.Errorf("an unknown reason is %q", s)
	}
}
