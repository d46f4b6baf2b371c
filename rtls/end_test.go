package rtls_test

import (
	"testing"

	"github.com/rondo-go/rondo/rondotest"
)

// A client that has its answer closes: close_notify, then the connection. The
// server's own close_notify comes too late for it, and a reset answers it. That is an
// orderly end, also if the system takes the server's close_notify in pieces.
func TestOrderlyEndIsNoError(t *testing.T) {
	for seed := range seeds(100) {
		n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Faults{ShortWrite: 0.5}})
		h := &player{}
		serve(n, h, serverConfig(0))
		c := handshake(t, n.Dial("tcp", "127.0.0.1:7"), clientConfig())
		roundTrip(t, c, "x")
		c.Close()
		n.Run()
		if !h.closed || h.err != nil {
			t.Fatalf("closed %v, %v", h.closed, h.err)
		}
		n.Close()
	}
}
