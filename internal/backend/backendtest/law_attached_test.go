package backendtest_test

import (
	"net"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestLawsAttached runs the engine's laws on connections that package net accepted and
// the engine attached. Only their methods are visible, so a backend with descriptors
// serves them through std.
func TestLawsAttached(t *testing.T) {
	backendtest.Laws(t, func(t *testing.T) backendtest.World { return &attached{backendtest.Sockets(t, pick.Names()[0])} }, notAttached...)
}

// notAttached are laws of the limits of accepted connections, of which attached ones are
// none.
var notAttached = []string{
	"ConnsAreBounded", "ConnsOfAnAddressAreBounded", "AcceptRateIsBounded", "CountsOutliveNobody", "CountsMove",
	"RefusedAreFew", "RefuseFails", "ArrivalsCount",
	"MovedInVainAreFew",
	"MovedRefusedAtOnce", // what an attached one has sent before is not known
}

// veiled embeds a connection, so its type might override any method.
type veiled struct{ *net.TCPConn }

// attached is the World of real sockets with attached server ends.
type attached struct{ backendtest.World }

func (w *attached) Listen(e *rondo.Engine, open rondo.OpenFunc) net.Addr {
	w.Helper()
	e.Backend = pick.Names()[0]
	if err := e.Start(); err != nil {
		w.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { e.Close(); ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			if _, err := e.Attach(veiled{nc.(*net.TCPConn)}, open); err != nil {
				nc.Close()
			}
		}
	}()
	return ln.Addr()
}
