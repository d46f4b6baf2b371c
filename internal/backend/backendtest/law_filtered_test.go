package backendtest_test

import (
	"net"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/pick"
)

// filtered is a World whose connections have filters. The filters change nothing, so
// every law must hold as without them.
type filtered struct{ backendtest.World }

func (w filtered) Listen(e *rondo.Engine, open rondo.OpenFunc) net.Addr {
	w.Helper()
	pass := func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
	return w.World.Listen(e, rondo.Filtered(open, pass, pass))
}

// notFiltered are the laws that cannot hold with filters: connections cannot leave
// their loops or receive into a handler's memory, and some limits of output are too low
// for the bytes that filters add.
var notFiltered = []string{
	"DetachKeepsEveryByte", "DetachWaitsForOutput", "LeavingIsDefinite", "DetachFails", "DetachAtClose", "CloseWriteWhileLeaving",
	"MoveKeepsEveryByte", "MoveFromOpener", "MoveToAnEndedLoop", "EverybodyLeavesUnderLoad", "ReleaseWritesToALeaver", "CoLeaves",
	"DepartKeepsEveryByte", "StayGoesOn", "RestMeetsAReset", "DepartAllOrNone", "RestIsRefused", "RestBeforeAHandler", "ArrivalsCount",
	"LeavesWhileItGetsFilters", "ReadBeforeItOpens", "MovedRefusedAtOnce", "MovedInVainArrives", "MovedInVainAreFew",
	"ClosedBeforeItOpens", "DeliveredBeforeItOpens", "DetachedInData",
	"BroadcastBeforeLeaving", "CountsMove", "CoLeavesThoughAChildWrites",
	"RecallTakesBack", "RecallThenGoexit", "RecallDropsNoMore", "ReceiveInto", "NoOutputLimit",
}

// TestLawsFiltered runs the engine's laws through filters, on every backend of this
// platform.
func TestLawsFiltered(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a law mostly waits
			backendtest.Laws(t, func(t *testing.T) backendtest.World { return filtered{backendtest.Sockets(t, name)} }, notFiltered...)
		})
	}
}

// TestLawsFilteredSimulated runs them on the simulated network.
func TestLawsFilteredSimulated(t *testing.T) {
	trySeeds(t, func(w *simulated) backendtest.World { return filtered{w} }, notFiltered...)
}
