package upgrade

import (
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
)

const (
	// mostMoving is how many connections of a loop are on their way at once. While one is, its
	// bytes wait; so there are few.
	mostMoving = 16
	// mostUnsent is how much output a connection may take along: a message has a bound.
	mostUnsent = fdpass.MaxBytes / 2
	// passPause is the time between two passes. After enoughEmpty without anything to hand over
	// there is no more to come: listeners that pause may still deliver what they had accepted.
	passPause   = 10 * time.Millisecond
	enoughEmpty = 3
)

// A mover hands over the connections of one loop, some at a time.
type mover struct {
	h        *handover
	loop     *rondo.Loop
	window   int
	rest     []*rondo.Conn // of this pass
	moving   int
	found    int // connections of this pass that go, or cannot leave yet
	empty    int // passes in a row without such
	forget   func()
	finished func() // nil: was called
}

// begin makes the first pass.
func (m *mover) begin() {
	m.forget = m.loop.OnClose(m.end) // the loop fires no timers then
	m.pass()
}

func (m *mover) end() {
	if m.finished != nil {
		m.forget()
		m.finished()
		m.finished = nil
	}
}

// pass looks at each connection of the loop.
func (m *mover) pass() {
	m.h.progress.Add(1)
	m.found, m.rest = 0, nil
	for c := range m.loop.Conns() {
		m.rest = append(m.rest, c)
	}
	m.step()
}

// step goes on with the pass, when there is room in the window.
func (m *mover) step() {
	for m.finished != nil && !m.h.HasEnded() && len(m.rest) > 0 && m.moving < m.window {
		c := m.rest[0]
		m.rest[0], m.rest = nil, m.rest[1:]
		m.move(c)
	}
	if m.moving > 0 || m.finished == nil {
		return
	}
	if m.empty++; m.found > 0 {
		m.empty = 0
	}
	if m.empty == enoughEmpty || m.h.over.Load() || m.h.HasEnded() {
		m.end()
		return
	}
	m.loop.AfterFunc(passPause, m.pass)
}

// move brings a connection to rest, if it can leave.
func (m *mover) move(c *rondo.Conn) {
	p, ok := c.Handler().(bridge.Passer)
	if !ok || c.Buffered() > mostUnsent {
		return
	}
	switch p.Leaves() {
	case bridge.LeavesNever:
		return
	case bridge.LeavesLater:
		m.found++
		return
	}
	w := bridge.Of(c)
	err := w.Rest(func(err error) {
		if err == nil {
			m.take(c, w)
		} else {
			m.moved() // it goes on, or ends
		}
	})
	if err == nil {
		m.found++
		m.moving++
	}
}

// take takes a connection that is at rest from its loop, and sends it.
func (m *mover) take(c *rondo.Conn, w bridge.Conn) {
	p, ok := c.Handler().(bridge.Passer)
	if !ok || p.Leaves() != bridge.LeavesNow {
		w.Stay() // something has begun meanwhile
		m.moved()
		return
	}
	text := &message{Kind: kindConn, State: p.State()}
	all, err := w.Loop().Depart(w)
	if err != nil {
		m.moved()
		return
	}
	d := all[0]
	text.Unread, text.Ended = len(d.Unread), d.Ended
	m.h.SendConns(m.loop, Encode(text, d.Unread, d.Unsent), func(err error) {
		if err != nil {
			m.h.server.arrive(m.loop, text, d.Conn, d.Unread, d.Unsent) // it comes back
		} else {
			d.Conn.Close()
		}
		m.moved()
	}, d.Conn)
}

// moved is called when a connection has gone, or stays after all.
func (m *mover) moved() {
	m.h.progress.Add(1)
	m.moving--
	m.step()
}

// UntilMoved waits until moved is closed. Whenever progress has not changed for the time given
// by patience, it calls stalled.
func UntilMoved(moved <-chan struct{}, progress *atomic.Uint64, patience time.Duration, stalled func()) {
	check := time.NewTicker(patience)
	defer check.Stop()
	for last := uint64(0); ; {
		select {
		case <-moved:
			return
		case <-check.C:
		}
		now := progress.Load()
		if now == last {
			stalled()
		}
		last = now
	}
}
