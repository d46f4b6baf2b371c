package backendtest_test

import (
	"net"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// filtered is a World whose connections have filters. These change nothing, so
// every law must hold as it does without.
type filtered struct{ backendtest.World }

func (w filtered) Listen(e *rondo.Engine, open rondo.OpenFunc) net.Addr {
	w.Helper()
	pass := func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
	return w.World.Listen(e, rondo.Filtered(open, pass, pass))
}

// notFiltered are laws of connections that leave their loops, or whose handlers have
// them use memory of theirs, which those with filters cannot; and of bounds on output
// too tight for filters, which add to it.
var notFiltered = []string{
	"DetachKeepsEveryByte", "DetachWaitsForOutput", "LeavingIsDefinite", "DetachFails", "DetachAtClose", "CloseWriteWhileLeaving",
	"MoveKeepsEveryByte", "MoveFromOpener", "MoveToAnEndedLoop", "EverybodyLeavesUnderLoad", "ReleaseWritesToALeaver", "CoLeaves",
	"BroadcastBeforeLeaving", "CountsMove", "CoLeavesThoughAChildWrites",
	"RecallTakesBack", "RecallDropsNoMore", "ReceiveInto", "NoOutputLimit",
}

// TestLawsFiltered tries the engine's laws through filters, on every backend of
// this platform.
func TestLawsFiltered(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of a law's time is waiting
			backendtest.Laws(t, func(t *testing.T) backendtest.World { return filtered{backendtest.Sockets(t, name)} }, notFiltered...)
		})
	}
}

// TestLawsFilteredSimulated tries them on the simulated network.
func TestLawsFilteredSimulated(t *testing.T) {
	trySeeds(t, func(w *simulated) backendtest.World { return filtered{w} }, notFiltered...)
}
