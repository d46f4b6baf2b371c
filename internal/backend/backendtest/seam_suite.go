// Package backendtest tells whether a backend keeps the laws. Everything above
// the seam relies on it, so every backend passes the same suite, unmodified; a
// system's quirk is worked around in its backend alone.
//
// The seam_ files are the suite of the seam itself, a file for each behaviour.
// Both ends of their connections are Files of the backend under test, driven by
// the test's one goroutine. Where systems differ they ask for the law and not
// for what one of them happens to do.
package backendtest

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// Seam runs the suite on the backends that open makes.
//
// The suite closes what it opened. Backends opened with the same t must be able
// to adopt each other's Handles and to connect to each other. A backend whose
// clock moves only in Wait must block in Wait(Forever) until Wake, if nothing
// is to happen before. No connection may break by itself.
//
// In -short mode the amounts of data are smaller; the behaviours are the same.
func Seam(t *testing.T, open func(t testing.TB) backend.Backend) {
	for _, b := range seamBehaviours {
		t.Run(b.name, func(t *testing.T) { b.run(newDriver(t, open)) })
	}
	for _, b := range seamStreamBehaviours {
		for _, network := range streams() {
			t.Run(b.name+"/"+network, func(t *testing.T) { b.run(newDriver(t, open), network) })
		}
	}
}

// seamBehaviours do not depend on the network or choose their own.
var seamBehaviours = []struct {
	name string
	run  func(d *driver)
}{
	{"Listen", seamListen},
	{"ListenDualStack", seamListenDualStack},
	{"ListenInUse", seamListenInUse},
	{"AcceptAborted", seamAcceptAborted},
	{"ConnectRefused", seamConnectRefused},
	{"ConnectFrom", seamConnectFrom},
	{"ResetIsAnError", seamResetIsAnError},
	{"WaitDeadline", seamWaitDeadline},
	{"WaitReady", seamWaitReady},
	{"WakeBeforeWait", seamWakeBeforeWait},
	{"WakeDuringWait", seamWakeDuringWait},
	{"WakeStorm", seamWakeStorm},
	{"StaleFile", seamStaleFile},
	{"NeverAFile", seamNeverAFile},
	{"UnconnectedFile", seamUnconnectedFile},
	{"ImportForeign", seamImportForeign},
	{"Packets", seamPackets},
	{"PacketError", seamPacketError},
	{"PacketCancel", seamPacketCancel},
	{"PacketClose", seamPacketClose},
	{"PacketFlood", seamPacketFlood},
	{"PollPipe", polling(seamPollPipe)},
	{"PollBoth", polling(seamPollBoth)},
	{"PollKeepsItsOwn", polling(seamPollKeepsItsOwn)},
	{"PollMany", polling(seamPollMany)},
	{"PollRefused", polling(seamPollRefused)},
}

// seamStreamBehaviours hold on every stream.
var seamStreamBehaviours = []struct {
	name string
	run  func(d *driver, network string)
}{
	{"AcceptMany", seamAcceptMany},
	{"AcceptFlood", seamAcceptFlood},
	{"TwoBackends", seamTwoBackends},
	{"Discard", seamDiscard},
	{"RecvLent", seamRecvLent},
	{"RecvOwn", seamRecvOwn},
	{"OneByte", seamOneByte},
	{"Transfer", seamTransfer},
	{"SendManyBufs", seamSendManyBufs},
	{"SendNothing", seamSendNothing},
	{"TrySendOrder", seamTrySendOrder},
	{"ShortSend", seamShortSend},
	{"EOF", seamEOF},
	{"HalfClose", seamHalfClose},
	{"ShutdownAfterSend", seamShutdownAfterSend},
	{"CloseDelivers", seamCloseDelivers},
	{"BrokenPipe", seamBrokenPipe},
	{"Backpressure", seamBackpressure},
	{"CancelRecv", seamCancelRecv},
	{"CancelSend", seamCancelSend},
	{"CancelAccept", seamCancelAccept},
	{"CancelConnect", seamCancelConnect},
	{"CancelShutdown", seamCancelShutdown},
	{"CancelNothing", seamCancelNothing},
	{"CloseLast", seamCloseLast},
	{"CloseListener", seamCloseListener},
	{"CloseTwice", seamCloseTwice},
	{"Release", seamRelease},
	{"ReleaseBusy", seamReleaseBusy},
	{"Export", seamExport},
	{"Control", seamControl},
	{"Churn", seamChurn},
	{"BackendClose", seamBackendClose},
}
