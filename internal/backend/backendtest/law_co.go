package backendtest

import (
	"errors"
	"net"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// coLaws are the laws of coroutines.
var coLaws = []law{
	{"CoReadsAndWrites", coReadsAndWrites},
	{"CoReadsWhatWasLeft", coReadsWhatWasLeft},
	{"CoReturnsInOrder", coReturnsInOrder},
	{"CoReturnFlushesToASlowPeer", coReturnFlushesToASlowPeer},
	{"CoReturnsAnError", coReturnsAnError},
	{"CoPeerHalfCloses", coPeerHalfCloses},
	{"CoHalfCloses", coHalfCloses},
	{"CoStaysThoughBothEnded", coStaysThoughBothEnded},
	{"CoIdleReaderIsNotRead", coIdleReaderIsNotRead},
	{"CoWriteWaits", coWriteWaits},
	{"CoWritesDoNotMix", coWritesDoNotMix},
	{"CoReadsWhileItsWriteWaits", coReadsWhileItsWriteWaits},
	{"CoHandsOver", coHandsOver},
	{"CoTakesOver", coTakesOver},
	{"CoTakesOverAnUnreadConn", coTakesOverAnUnreadConn},
	{"CoTakesOverFromCo", coTakesOverFromCo},
	{"CoLeaves", coLeaves},
	{"CoStaysHandedOver", coStaysHandedOver},
	{"CoLeavesThoughAChildWrites", coLeavesThoughAChildWrites},
	{"CoTakesBackItsOwn", coTakesBackItsOwn},
	{"CoThatIsNotTheHandler", coThatIsNotTheHandler},
	{"CoShakesHandsUnread", coShakesHandsUnread},
	{"CoOfAHandlersConnIsRead", coOfAHandlersConnIsRead},
	{"CoReadDeadline", coReadDeadline},
	{"CoReadDeadlineMoves", coReadDeadlineMoves},
	{"CoWriteDeadline", coWriteDeadline},
	{"CoDeadlineFromElsewhere", coDeadlineFromElsewhere},
	{"CoReadsAfterAFailedWrite", coReadsAfterAFailedWrite},
	{"CoEndsWithItsConn", coEndsWithItsConn},
	{"CoEndsWithTheEngine", coEndsWithTheEngine},
	{"CoShutdownFlushes", coShutdownFlushes},
	{"CoThatIgnoresErrorsEnds", coThatIgnoresErrorsEnds},
	{"CoPanicCostsItsConnAlone", coPanicCostsItsConnAlone},
	{"CoGoexitCostsItsConnAlone", coGoexitCostsItsConnAlone},
	{"CoMisuseIsTold", coMisuseIsTold},
	{"CoIsClosedByAnotherLoop", coIsClosedByAnotherLoop},
	{"CoClosesNoOthersConn", coClosesNoOthersConn},
	{"CoReadsOnWhatItTookOver", coReadsOnWhatItTookOver},
	{"CoUpgrades", coUpgrades},
	{"CoWriteIsDelivered", coWriteIsDelivered},
	{"CoWriteTurnIsPassedOn", coWriteTurnIsPassedOn},
	{"CoStarvesNobody", coStarvesNobody},
	{"CoSleeps", coSleeps},
	{"CoGoes", coGoes},
	{"CoChildrenEnd", coChildrenEnd},
	{"CoCondWakes", coCondWakes},
	{"CoAwaits", coAwaits},
	{"CoAwaitIsLeft", coAwaitIsLeft},
	{"CoAwaitsOn", coAwaitsOn},
	{"CoContextEnds", coContextEnds},
	{"CoDials", coDials},
	{"CoDialFails", coDialFails},
	{"CoProxies", coProxies},
	{"CoCopiesPieces", coCopiesPieces},
	{"CoMany", coMany},
	{"CoBufio", coBufio},
	{"CoTextproto", coTextproto},
	{"CoHTTP", coHTTP},
	{"CoGob", coGob},
	{"CoTLS", coTLS},
}

// A script runs coroutines and counts them.
type script struct {
	w World

	mu           sync.Mutex
	began, ended int
	err          error // of the last coroutine that ended
}

// opener serves connections with f.
func (s *script) opener(f func(co *coro.Co, c net.Conn) error) rondo.OpenFunc {
	return coro.Handler(func(co *coro.Co, c net.Conn) (err error) {
		defer s.counts()(&err)
		return f(co, c)
	})
}

// counts counts a started coroutine. Defer the function that it returns.
func (s *script) counts() func(*error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began++
	return func(err *error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended++
		s.err = *err
	}
}

func (s *script) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began - s.ended
}

func (s *script) hasBegun(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began >= n
}

// untilEnded waits until n coroutines have started and all have ended. It returns the
// error of the last one.
func (s *script) untilEnded(n int) error {
	s.w.Helper()
	s.w.Until("the coroutines' end", func() bool { return s.hasBegun(n) && s.running() == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != n {
		s.w.Errorf("%d coroutines ended, want %d", s.ended, n)
	}
	return s.err
}

// serve serves with f on an engine with one loop, and connects to it.
func (s *script) serve(f func(co *coro.Co, c net.Conn) error) Peer {
	s.w.Helper()
	return s.w.Dial(s.w.Listen(&rondo.Engine{NumLoops: 1}, s.opener(f)))
}

// wantErr fails the test unless err is want.
func wantErr(w World, what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// timedOut fails the test unless err is package net's error at a deadline.
func timedOut(w World, what string, n, wantN int, err error) {
	w.Helper()
	var timeout net.Error
	if n != wantN || !errors.As(err, &timeout) || !timeout.Timeout() {
		w.Errorf("%s: %d, %v; want %d and a timeout", what, n, err, wantN)
	}
}
