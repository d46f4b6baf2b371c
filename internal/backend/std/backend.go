// Package std is the seam on package net: it runs wherever Go does, Windows
// among them, and has no build tags. Every connection has a goroutine of its
// own that feeds the loop, so it costs what such servers cost: some kilobytes a
// connection, and a switch between goroutines for every completion. Where
// epoll, kqueue or io_uring exist they do the same for less.
//
// It is not a way around the loop: package net is used for its system calls
// alone, and only for what the loop submitted. No byte is read ahead of a Recv,
// so the loop's backpressure reaches the peer.
//
// # Goroutines
//
//	loop     everything but the calls that block; it also makes those that
//	         cannot: deadlines, half-close, and Close once nothing is in flight
//	reader   one a connection, from its first Recv to its end; parked while no
//	         Recv is in flight
//	sender   one a Send, for as long as that lasts
//	acceptor one an Accept in flight
//	dialer   one a Connect
//	watcher  one a backend, for all Polls
//
// The others hand their results to the loop through Backend.post and share
// nothing else with it: what they work on belongs to them from the start of an
// Op to its post, and to the loop otherwise. They are all gone when Close
// returns.
package std

import (
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// Backend is the backend on package net.
type Backend struct {
	backend.Clock
	files  table
	turn   []result // this turn's, and how many of them Next took
	taken  int
	lender *file    // whose lent buffer is with the loop
	packet *packets // whose RecvFrom completed last
	closed bool

	watcher *watcher // nil: no Watch yet
	shared  resultQueue
	bell    chan struct{}  // holds one ring of the resultQueue; nil: another's Wait hears it
	alarm   *time.Timer    // for a Wait with an end
	workers sync.WaitGroup // the goroutines
}

var _ backend.Backend = (*Backend)(nil)

// New makes a Backend.
func New() (backend.Backend, error) {
	b := &Backend{Clock: backend.NewClock(), alarm: time.NewTimer(time.Hour), bell: make(chan struct{}, 1)}
	b.alarm.Stop()
	b.files.init()
	b.shared.ring = func() {
		select {
		case b.bell <- struct{}{}:
		default:
		}
	}
	return b, nil
}

// Beside makes a Backend that works beside another one, for the same loop. Its
// own Wait is only called not to block; before the other's may, Arm is. Its Files
// have slots from base on.
func Beside(base uint32, ring func()) *Backend {
	b := &Backend{Clock: backend.NewClock()}
	b.files.base = base
	b.files.init()
	b.shared.ring = ring
	return b
}

// Arm has the next thing that there is to collect ring. It reports false if there
// is something already.
func (b *Backend) Arm() bool { return b.shared.prepareSleep() }

// post gives the loop a result, for a later turn.
func (b *Backend) post(r result) { b.shared.post(r) }

// done posts the result of an Op that needed no goroutine and moved no bytes.
func (b *Backend) done(op *backend.Op, err error) { b.post(result{op: op, err: err}) }

// Wake may be called after Close: it touches nothing that Close releases.
func (b *Backend) Wake() { b.shared.wake() }

// Wait sleeps only if nothing was posted, so that a busy loop pays a turn with
// one uncontended lock.
func (b *Backend) Wait(until backend.Time) (ready bool, err error) {
	if b.closed {
		return false, backend.ErrClosed
	}
	// What Next did not take stays in front.
	left := copy(b.turn, b.turn[b.taken:])
	clear(b.turn[left:])
	b.turn, b.taken = b.turn[:left], 0
	for left == 0 && until > b.Now() && b.shared.prepareSleep() {
		b.sleep(until)
	}
	b.turn = b.shared.collect(b.turn)
	return len(b.turn) > 0, nil
}

func (b *Backend) sleep(until backend.Time) {
	if until == backend.Forever {
		<-b.bell
		return
	}
	b.alarm.Reset(time.Duration(until - b.Now()))
	select {
	case <-b.bell:
		b.alarm.Stop()
	case <-b.alarm.C:
	}
}

// Next hands out what Wait collected.
func (b *Backend) Next(c *backend.Completion) bool {
	if b.lender != nil {
		panic("std: Next was called before the lent buffer came home by Return")
	}
	if b.taken == len(b.turn) {
		return false
	}
	r := b.turn[b.taken]
	b.turn[b.taken] = result{} // let go of what it refers to
	b.taken++
	*c = backend.Completion{Op: r.op, N: r.n, Err: r.err, More: r.more}
	if r.file != nil {
		r.file.completed(&r, c)
	}
	return true
}

// Return lets the reader have its buffer back, and the next Recv begin.
func (b *Backend) Return([]byte) {
	f := b.lender
	b.lender = nil
	if f != nil && f.postponed {
		f.postponed = false
		f.startRecv(f.in)
	}
}

// Close closes every socket, which ends every goroutine, and waits for them.
func (b *Backend) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	b.lender = nil
	for f := range b.files.all() {
		f.abandon()
	}
	b.files = table{base: b.files.base}
	b.files.init()
	if b.watcher != nil {
		b.watcher.close()
	}
	b.workers.Wait()
	for _, r := range b.shared.collect(b.turn[b.taken:]) {
		if r.conn != nil {
			closeConn(r.conn, true) // perhaps with its listener's SO_LINGER
		}
	}
	b.turn, b.taken = nil, 0
	return nil
}
