// Package backendtest tests whether a backend keeps the laws. Everything above the seam
// relies on them, so every backend passes the same, unmodified suite. The quirks of a
// system are handled in its backend alone.
//
// The seam_ files test the seam itself, one behaviour per file. Both ends of a test's
// connections are Files of the backend under test; the test's single goroutine runs
// them. Where systems differ, the tests check the law and not the behaviour of one
// system.
package backendtest

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// Seam runs the suite on the backends that open makes.
//
// The suite closes the backends that it opened. Backends opened with the same t must be
// able to adopt each other's Handles and to connect to each other. If a backend's clock
// moves only in Wait, Wait(Forever) must block until Wake if nothing is going to
// happen. Connections must not break by themselves.
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

// seamBehaviours do not depend on a network, or choose their own.
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

// seamStreamBehaviours hold on every stream network.
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
	{"SendFile", seamSendFile},
	{"SendShortFile", seamSendShortFile},
	{"Pipe", seamPipe},
	{"TrySendOrder", seamTrySendOrder},
	{"ShortSend", seamShortSend},
	{"EOF", seamEOF},
	{"EndBehindBytes", seamEndBehindBytes},
	{"HalfClose", seamHalfClose},
	{"ShutdownAfterSend", seamShutdownAfterSend},
	{"CloseDelivers", seamCloseDelivers},
	{"BrokenPipe", seamBrokenPipe},
	{"Backpressure", seamBackpressure},
	{"OutputAndInput", seamOutputAndInput},
	{"CancelRecv", seamCancelRecv},
	{"CancelSend", seamCancelSend},
	{"CancelSendInTime", seamCancelSendInTime},
	{"SendAfterCancel", seamSendAfterCancel},
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
