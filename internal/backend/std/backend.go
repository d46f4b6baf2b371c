// Package std implements the seam with package net. It runs wherever Go does, including
// Windows, and has no build tags. Every connection has a goroutine that feeds the loop.
// So a connection costs some kilobytes, and a completion costs a goroutine switch, as
// in any server with a goroutine per connection. epoll, kqueue and io_uring cost less
// where they exist.
//
// std does not bypass the loop: package net makes only the system calls for Ops that
// the loop submitted. It reads no byte ahead of a Recv, so the loop's backpressure
// reaches the peer.
//
// # Goroutines
//
//	loop     everything except blocking calls; also deadlines, half-close, and
//	         Close once nothing is in flight, which do not block
//	reader   one per connection, from its first Recv to its end; parked while no
//	         Recv is in flight
//	sender   one per Send, until the Send ends
//	acceptor one per Accept in flight
//	dialer   one per Connect
//	watcher  one per backend, for all polls
//
// The other goroutines hand their results to the loop through Backend.post and share
// nothing else with it. An Op's data belongs to its goroutine from the start of the Op
// to its post, and otherwise to the loop. All goroutines have ended when Close returns.
// returns.
package std

import (
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// Backend is a backend.Backend on package net.
type Backend struct {
	backend.Clock
	files  table
	turn   []result // this turn's results; Next took the first ones
	taken  int
	lender *file    // the file whose lent buffer the loop has
	packet *packets // the socket whose RecvFrom completed last
	closed bool

	watcher *watcher // nil before the first Watch
	shared  resultQueue
	bell    chan struct{}  // holds one ring of shared; nil beside another backend, whose Wait hears it
	alarm   *time.Timer    // ends a Wait with a deadline
	workers sync.WaitGroup // the goroutines
}

var _ backend.Backend = (*Backend)(nil)

// New returns a Backend.
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

// Beside returns a Backend that works beside another one, for the same loop. Its Wait
// must only be called with a time that does not block. Call Arm before the other
// backend's Wait blocks. The slots of its Files start at base.
func Beside(base uint32, ring func()) *Backend {
	b := &Backend{Clock: backend.NewClock()}
	b.files.base = base
	b.files.init()
	b.shared.ring = ring
	return b
}

// Arm makes the next result ring. It returns false if a result is already waiting.
func (b *Backend) Arm() bool { return b.shared.prepareSleep() }

// post gives the loop a result for a later turn.
func (b *Backend) post(r result) { b.shared.post(r) }

// done posts the result of an Op that used no goroutine and moved no bytes.
func (b *Backend) done(op *backend.Op, err error) { b.post(result{op: op, err: err}) }

// Wake may be called after Close: it uses nothing that Close releases.
func (b *Backend) Wake() { b.shared.wake() }

// Wait sleeps only if nothing was posted, so that a turn of a busy loop costs one
// uncontended lock.
func (b *Backend) Wait(until backend.Time) (ready bool, err error) {
	if b.closed {
		return false, backend.ErrClosed
	}
	// Results that Next did not take stay first.
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

// Next returns the results collected by Wait.
func (b *Backend) Next(c *backend.Completion) bool {
	if b.lender != nil {
		panic("std: Next was called before Return of the lent buffer")
	}
	for b.taken < len(b.turn) {
		r := b.turn[b.taken]
		b.turn[b.taken] = result{} // release the references
		b.taken++
		if r.file != nil && r.file.holds(&r) {
			continue
		}
		*c = backend.Completion{Op: r.op, N: r.n, Err: r.err, More: r.more}
		if r.file != nil {
			r.file.completed(&r, c)
		}
		return true
	}
	return false
}

// Return gives the reader its buffer back and starts a postponed Recv.
func (b *Backend) Return([]byte) {
	f := b.lender
	b.lender = nil
	if f != nil && f.postponed {
		f.postponed = false
		f.startRecv(f.in)
	}
}

// Close closes every socket, which ends every goroutine, and waits for the goroutines.
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
			CloseConn(r.conn, true) // may have the listener's SO_LINGER
		}
	}
	b.turn, b.taken = nil, 0
	return nil
}
