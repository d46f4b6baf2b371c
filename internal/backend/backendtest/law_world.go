package backendtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// A World is an environment for the engine's laws: real sockets on some backend, or the
// simulated network. Each law is written once, for any World.
type World interface {
	testing.TB
	// Listen serves open's handlers with e, and returns the address.
	Listen(e *rondo.Engine, open rondo.OpenFunc) net.Addr
	// ListenPacket serves a datagram socket with e, on a backend of the World.
	ListenPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn
	// DialPacket serves a connected datagram socket with e.
	DialPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn
	// Dial connects to addr. The Peer belongs to the test's goroutine.
	Dial(addr net.Addr) Peer
	// Conn returns the connection of a Peer, for Attach. Do not use the Peer
	// afterwards.
	Conn(p Peer) net.Conn
	// Now returns the time of the World's clock, which Peers' deadlines and the engine
	// use.
	Now() time.Time
	// Sleep lets d pass.
	Sleep(d time.Duration)
	// Timeout returns a Context that ends after d.
	Timeout(d time.Duration) context.Context
	// Until lets time pass until cond holds. It fails if cond never does.
	Until(what string, cond func() bool)
	// Call runs f, which waits for the engine.
	Call(f func())
}

// A Peer is the other end of a served connection.
type Peer interface {
	net.Conn
	CloseWrite() error
	// Reset closes so that the server sees an error.
	Reset()
}

// Laws tries every law of the engine in a new World, except the laws named in but,
// which cannot hold in such a World.
func Laws(t *testing.T, world func(t *testing.T) World, but ...string) {
	for _, l := range slices.Concat(laws, restLaws, coLaws, packetLaws, pairLaws) {
		if i := slices.Index(but, l.name); i >= 0 {
			but = slices.Delete(slices.Clone(but), i, i+1)
			continue
		}
		t.Run(l.name, func(t *testing.T) { l.try(world(t)) })
	}
	if len(but) > 0 {
		t.Errorf("there are no such laws: %q", but)
	}
}

type law struct {
	name string
	try  func(World)
}

var laws = []law{
	{"ClosedOnceAndLast", closedOnceAndLast},
	{"ClosedAfterDataError", closedAfterDataError},
	{"CloseFlushesToASlowPeer", closeFlushesToASlowPeer},
	{"CloseSurvivesUnreadInput", closeSurvivesUnreadInput},
	{"FailedWriteKeepsInput", failedWriteKeepsInput},
	{"FailedWriteOfAPausedConn", failedWriteOfAPausedConn},
	{"ResetEndsWaitingOutput", resetEndsWaitingOutput},
	{"ResetDuringASend", resetDuringASend},
	{"LingerEndsUndelivered", lingerEndsUndelivered},
	{"LingerEndsUnclosed", lingerEndsUnclosed},
	{"CloseWithinIsForTheEnd", closeWithinIsForTheEnd},
	{"CloseWithinBehindCloseWrite", closeWithinBehindCloseWrite},
	{"CloseWithinOfAnUnreadyFilter", closeWithinOfAnUnreadyFilter},
	{"CloseWithinOfAClosing", closeWithinOfAClosing},
	{"CloseWithinOfUnreadyOutput", closeWithinOfUnreadyOutput},
	{"AbortDropsOutput", abortDropsOutput},
	{"PeerHalfCloses", peerHalfCloses},
	{"ServerHalfCloses", serverHalfCloses},
	{"EOFWithoutEOFHandlerCloses", eofWithoutEOFHandlerCloses},
	{"EOFIsAfterTheLastData", eofIsAfterTheLastData},
	{"NewHandlerHearsOfEOF", newHandlerHearsOfEOF},
	{"EndingIsTheHandlers", endingIsTheHandlers},
	{"EndingIsBeforeTheEnd", endingIsBeforeTheEnd},
	{"UnreadyCostsNoTurns", unreadyCostsNoTurns},
	{"UnreadyGetsInput", unreadyGetsInput},
	{"PauseAfterCloseStopsNobody", pauseAfterCloseStopsNobody},
	{"CloseInOutboundKeepsTheWrite", closeInOutboundKeepsTheWrite},
	{"StageWithoutAPlace", stageWithoutAPlace},
	{"OutputIsBounded", outputIsBounded},
	{"HighWaterStopsReading", highWaterStopsReading},
	{"NeverReadingIsBounded", neverReadingIsBounded},
	{"ExpandingFilterIsBounded", expandingFilterIsBounded},
	{"DrainedOffersTheRest", drainedOffersTheRest},
	{"InputIsBounded", inputIsBounded},
	{"SlowHandlerIsBounded", slowHandlerIsBounded},
	{"FloodStarvesNobody", floodStarvesNobody},
	{"AnySplitIsTheSame", anySplitIsTheSame},
	{"WantWaits", wantWaits},
	{"WantingALittleMoreIsLinear", wantingALittleMoreIsLinear},
	{"PauseStopsReading", pauseStopsReading},
	{"UpgradeKeepsTheRest", upgradeKeepsTheRest},
	{"UpgradeOffersALongRest", upgradeOffersALongRest},
	{"WritesKeepOrder", writesKeepOrder},
	{"WritesToMany", writesToMany},
	{"OwnedIsReleasedOnce", ownedIsReleasedOnce},
	{"OwnedShowsProgress", ownedShowsProgress},
	{"FilesKeepOrder", filesKeepOrder},
	{"FilesDrain", filesDrain},
	{"FilesEnd", filesEnd},
	{"FilesAreReleasedOnce", filesAreReleasedOnce},
	{"FilesStarveNobody", filesStarveNobody},
	{"FilesStayWhole", filesStayWhole},
	{"FilesUnderSmallLimits", filesUnderSmallLimits},
	{"FilesOutliveAFilter", filesOutliveAFilter},
	{"RefOfAClosedConn", refOfAClosedConn},
	{"RefWritesKeepOrder", refWritesKeepOrder},
	{"RefWriteIsBounded", refWriteIsBounded},
	{"SmallRefWritesAreBounded", smallRefWritesAreBounded},
	{"RefWriteAfterTheEnd", refWriteAfterTheEnd},
	{"PanicCostsItsConnAlone", panicCostsItsConnAlone},
	{"PanicAnywhere", panicAnywhere},
	{"GoexitAnywhere", goexitAnywhere},
	{"FailuresOfNobody", failuresOfNobody},
	{"MadeFiltersAreClosed", madeFiltersAreClosed},
	{"ReleaseMayDoAnything", releaseMayDoAnything},
	{"ChainsLetTheTurnEnd", chainsLetTheTurnEnd},
	{"DeferKeepsOrder", deferKeepsOrder},
	{"RefWriteLeavesNoHole", refWriteLeavesNoHole},
	{"FiltersThatAnswer", filtersThatAnswer},
	{"FilterCoveredInWrite", filterCoveredInWrite},
	{"FiltersAreNotReentered", filtersAreNotReentered},
	{"RemovedInOutbound", removedInOutbound},
	{"HandlerIsNotReentered", handlerIsNotReentered},
	{"RemovedInMidReceive", removedInMidReceive},
	{"RemovedGetsNoInput", removedGetsNoInput},
	{"NothingIsBehindEOF", nothingIsBehindEOF},
	{"FullIsToldOf", fullIsToldOf},
	{"HookWritesAreSent", hookWritesAreSent},
	{"HooksAreNotReentered", hooksAreNotReentered},
	{"ReleaseWritesToOthers", releaseWritesToOthers},
	{"ReleaseWritesToALeaver", releaseWritesToALeaver},
	{"AnswersAreSent", answersAreSent},
	{"LargeWritesGoInParts", largeWritesGoInParts},
	{"RefusedWritesWait", refusedWritesWait},
	{"EndlessWritesAreRefused", endlessWritesAreRefused},
	{"LimitsTakeEffect", limitsTakeEffect},
	{"RelayDirectionsAreIndependent", relayDirectionsAreIndependent},
	{"RelayOfPeersThatOnlySend", relayOfPeersThatOnlySend},
	{"RelayBetweenLoops", relayBetweenLoops},
	{"SlowReaderGetsTheEnd", slowReaderGetsTheEnd},
	{"BroadcastReachesAll", broadcastReachesAll},
	{"BroadcastInCallbacks", broadcastInCallbacks},
	{"BroadcastSkipsTheFull", broadcastSkipsTheFull},
	{"BroadcastIsBounded", broadcastIsBounded},
	{"BroadcastFailures", broadcastFailures},
	{"BroadcastToMany", broadcastToMany},
	{"BroadcastAtTheEnd", broadcastAtTheEnd},
	{"BroadcastBeforeLeaving", broadcastBeforeLeaving},
	{"ConnsAreBounded", connsAreBounded},
	{"ConnsOfAnAddressAreBounded", connsOfAnAddressAreBounded},
	{"AcceptRateIsBounded", acceptRateIsBounded},
	{"CountsOutliveNobody", countsOutliveNobody},
	{"CountsMove", countsMove},
	{"RefusedAreFew", refusedAreFew},
	{"RefuseFails", refuseFails},
	{"BuffersAreBounded", buffersAreBounded},
	{"ShedsWhatRests", shedsWhatRests},
	{"ShedsTheLarge", shedsTheLarge},
	{"ShedsWhoDoesNotRead", shedsWhoDoesNotRead},
	{"EngineOnItsLoop", engineOnItsLoop},
	{"IdleCloses", idleCloses},
	{"ActivityIsNotIdle", activityIsNotIdle},
	{"ReadDeadlineCloses", readDeadlineCloses},
	{"WriteDeadlineAborts", writeDeadlineAborts},
	{"FarDeadlinesNeverCome", farDeadlinesNeverCome},
	{"ShutdownDrains", shutdownDrains},
	{"ShutdownAsks", shutdownAsks},
	{"CloseAborts", closeAborts},
	{"ListenerCloseKeepsConns", listenerCloseKeepsConns},
	{"TimersFireInOrder", timersFireInOrder},
	{"PostsKeepOrder", postsKeepOrder},
	{"LocalIsEachLoopsOwn", localIsEachLoopsOwn},
	{"BalanceSpreads", balanceSpreads},
	{"RefusedConnCloses", refusedConnCloses},
	{"RefusedOutputArrives", refusedOutputArrives},
	{"LeavesWhileItGetsFilters", leavesWhileItGetsFilters},
	{"ReadBeforeItOpens", readBeforeItOpens},
	{"MovedRefusedAtOnce", movedRefusedAtOnce},
	{"MovedInVainArrives", movedInVainArrives},
	{"MovedInVainAreFew", movedInVainAreFew},
	{"ClosedBeforeItOpens", closedBeforeItOpens},
	{"DeliveredBeforeItOpens", deliveredBeforeItOpens},
	{"DeliveredWhileItOpens", deliveredWhileItOpens},
	{"DeliveredInData", deliveredInData},
	{"DeliveredInHook", deliveredInHook},
	{"RemovedInData", removedInData},
	{"RemovedWhilePaused", removedWhilePaused},
	{"DetachedInData", detachedInData},
	{"ResumedByOpen", resumedByOpen},
	{"ResumedInShutdown", resumedInShutdown},
	{"SetInOpen", setInOpen},
	{"ChangedOnFullInput", changedOnFullInput},
	{"UsedByCoroutine", usedByCoroutine},
	{"RefusedFiltersFlush", refusedFiltersFlush},
	{"RefusedDirectArrives", refusedDirectArrives},
	{"ManyConns", manyConns},
	{"TraceAndStats", traceAndStats},
	{"CausesAreCounted", causesAreCounted},
	{"WaitingIsCounted", waitingIsCounted},
	{"DialedConnIsServed", dialedConnIsServed},
	{"DialFails", dialFails},
	{"EngineDial", engineDial},
	{"DialIsCanceled", dialIsCanceled},
	{"DialEndsWithTheEngine", dialEndsWithTheEngine},
	{"DialTriesAll", dialTriesAll},
	{"DialFrom", dialFrom},
	{"DetachKeepsEveryByte", detachKeepsEveryByte},
	{"DetachWaitsForOutput", detachWaitsForOutput},
	{"LeavingIsDefinite", leavingIsDefinite},
	{"DetachFails", detachFails},
	{"DetachAtClose", detachAtClose},
	{"CloseWriteWhileLeaving", closeWriteWhileLeaving},
	{"DepartKeepsEveryByte", departKeepsEveryByte},
	{"StayGoesOn", stayGoesOn},
	{"RestMeetsAReset", restMeetsAReset},
	{"DepartAllOrNone", departAllOrNone},
	{"RestIsRefused", restIsRefused},
	{"RestBeforeAHandler", restBeforeAHandler},
	{"ArrivalsCount", arrivalsCount},
	{"AttachedConnIsServed", attachedConnIsServed},
	{"AttachFails", attachFails},
	{"MoveKeepsEveryByte", moveKeepsEveryByte},
	{"MoveFromOpener", moveFromOpener},
	{"MoveToAnEndedLoop", moveToAnEndedLoop},
	{"EverybodyLeavesUnderLoad", everybodyLeavesUnderLoad},
	{"ReleaseWritesAgain", releaseWritesAgain},
	{"RecallTakesBack", recallTakesBack},
	{"RecallThenGoexit", recallThenGoexit},
	{"RecallDropsNoMore", recallDropsNoMore},
	{"ReceiveInto", receiveInto},
	{"ReceiveIntoIsNotForFilters", receiveIntoIsNotForFilters},
	{"NoOutputLimit", noOutputLimit},
	{"DeliverEndsTheTurn", deliverEndsTheTurn},
}

// handler records its calls and checks their order: Data..., then EOF at most once,
// then Closed exactly once and last.
type handler struct {
	w       World
	data    func(c *rondo.Conn, in []byte) (int, error) // nil: echo
	eof     func(c *rondo.Conn)                         // nil: Close
	drained func(c *rondo.Conn)

	mu     sync.Mutex
	ref    rondo.Ref
	calls  string
	got    bytes.Buffer // all consumed input
	closed bool
	err    error // from Closed
}

// opener serves every connection with the handler that made returns.
func opener(made func(c *rondo.Conn) *handler) rondo.OpenFunc {
	return func(c *rondo.Conn) rondo.Handler {
		h := made(c)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ref = c.Ref()
		return h
	}
}

// one serves a single connection with h.
func (h *handler) one() rondo.OpenFunc {
	return opener(func(*rondo.Conn) *handler { return h })
}

func (h *handler) call(name byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	bad := h.closed || name == 'E' && bytes.IndexByte([]byte(h.calls), 'E') >= 0
	if h.calls == "" || h.calls[len(h.calls)-1] != name {
		h.calls += string(name)
	}
	if name == 'D' && bytes.IndexByte([]byte(h.calls), 'E') >= 0 {
		bad = true
	}
	if bad {
		h.w.Errorf("calls of the handler: %s, now %c again or too late", h.calls, name)
	}
}

func (h *handler) Data(c *rondo.Conn, in []byte) (int, error) {
	h.call('D')
	data := h.data
	if data == nil {
		data = func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }
	}
	n, err := data(c, in)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got.Write(in[:max(0, min(n, len(in)))])
	return n, err
}

func (h *handler) EOF(c *rondo.Conn) {
	h.call('E')
	if h.eof != nil {
		h.eof(c)
	} else {
		c.Close()
	}
}

func (h *handler) Drained(c *rondo.Conn) {
	if h.drained != nil {
		h.drained(c)
	}
}

func (h *handler) Closed(_ *rondo.Conn, err error) {
	h.call('C')
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.err = true, err
}

func (h *handler) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (h *handler) isOpened() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ref != rondo.Ref{}
}

func (h *handler) hasEOF() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.calls, "E")
}

func (h *handler) received() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got.Len()
}

// untilClosed waits for Closed and returns its error.
func (h *handler) untilClosed() error {
	h.w.Helper()
	h.w.Until("Closed", h.isClosed)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// conn waits for the connection to open and returns its Ref.
func (h *handler) conn() rondo.Ref {
	h.w.Helper()
	h.w.Until("an open connection", h.isOpened)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ref
}

// do runs f on the loop with h's connection, and waits for it.
func (h *handler) do(f func(c *rondo.Conn)) {
	h.w.Helper()
	done := make(chan struct{})
	if err := h.conn().Do(func(c *rondo.Conn) { defer close(done); f(c) }); err != nil {
		h.w.Fatalf("Ref.Do: %v", err)
	}
	h.w.Until("Ref.Do", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// patience is how long a peer waits for expected bytes: longer than a machine may stop
// a process.
const patience = 90 * time.Second

// send writes all of p, or fails.
func send(w World, peer Peer, p []byte) {
	w.Helper()
	peer.SetWriteDeadline(w.Now().Add(patience))
	if _, err := peer.Write(p); err != nil {
		w.Fatalf("peer's write: %v", err)
	}
}

// push writes as much of p as possible within d, and returns the number of bytes.
func push(w World, peer Peer, p []byte, d time.Duration) int {
	w.Helper()
	peer.SetWriteDeadline(w.Now().Add(d))
	n, err := peer.Write(p)
	var timeout net.Error
	if err != nil && !(errors.As(err, &timeout) && timeout.Timeout()) {
		w.Fatalf("peer's write after %d bytes: %v", n, err)
	}
	return n
}

// expect reads len(want) bytes and compares them.
func expect(w World, peer Peer, want []byte) {
	w.Helper()
	got := make([]byte, len(want))
	peer.SetReadDeadline(w.Now().Add(patience))
	if n, err := io.ReadFull(peer, got); err != nil {
		w.Fatalf("peer read %d bytes of %d: %v", n, len(want), err)
	}
	if i := mismatch(got, want); i >= 0 {
		w.Fatalf("peer read wrong bytes from byte %d on: %.40q, want %.40q", i, got[i:], want[i:])
	}
}

// expectEOF reads the end of the stream.
func expectEOF(w World, peer Peer) {
	w.Helper()
	peer.SetReadDeadline(w.Now().Add(patience))
	if n, err := peer.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		w.Fatalf("peer read %d bytes, %v; want the end of the stream", n, err)
	}
}

// expectReset reads until an error that is not the end of the stream.
func expectReset(w World, peer Peer) {
	w.Helper()
	peer.SetReadDeadline(w.Now().Add(patience))
	b := make([]byte, 64<<10)
	for {
		_, err := peer.Read(b)
		var timeout net.Error
		switch {
		case err == nil:
		case err == io.EOF && resetIsEnd():
			return
		case err == io.EOF || errors.As(err, &timeout) && timeout.Timeout():
			w.Fatalf("peer read %v, want a reset", err)
		default:
			return
		}
	}
}

func mismatch(a, b []byte) int {
	if bytes.Equal(a, b) { // a third of the time of all laws with -race, if each byte is looked at
		return -1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// pattern returns n bytes of noise, at most 16 MiB. The bytes are shared: do not write
// to them.
func pattern(n int) []byte { return allPattern()[:n:n] }

var allPattern = sync.OnceValue(func() []byte { return noise(16 << 20) })
