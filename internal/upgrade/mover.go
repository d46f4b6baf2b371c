package upgrade

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

const (
	// mostMoving is how many connections of a loop are on their way at once. While one is, its
	// bytes wait; so there are few.
	mostMoving = 16
	// passPause is the time between two passes.
	passPause = 10 * time.Millisecond
)

// A Mover hands over the connections of one loop, some at a time, in passes: until one that has
// begun when no connection could come any more finds none to hand over.
type Mover struct {
	Loop *rondo.Loop

	h        *handover
	window   int
	rest     []*rondo.Conn // of this pass
	behind   []*rondo.Conn // of this pass, behind all others
	moving   int
	found    int  // connections of this pass that go, or cannot leave yet
	last     bool // no connection has come since this pass began
	ahead    bool // the first pass has handed over those that are not behind
	forget   func()
	finished func() // nil: was called
}

// begin makes the first pass.
func (m *Mover) begin() {
	m.forget = m.Loop.OnClose(m.end) // the loop fires no timers then
	m.pass()
}

func (m *Mover) end() {
	if m.finished != nil {
		m.forget()
		m.finished()
		m.finished = nil
	}
}

// pass looks at each connection of the loop.
func (m *Mover) pass() {
	m.h.progress.Add(1)
	m.found, m.rest, m.behind, m.last = 0, nil, nil, m.h.still.Load()
	for c := range m.Loop.Conns() {
		if m.h.Behind != nil && m.h.Behind(c) {
			m.behind = append(m.behind, c)
		} else {
			m.rest = append(m.rest, c)
		}
	}
	m.step()
}

// step goes on with the pass, when there is room in the window.
func (m *Mover) step() {
	for m.finished != nil && !m.h.HasEnded() {
		if len(m.rest) == 0 && m.moving == 0 {
			if !m.ahead {
				m.ahead = true
				m.h.firsts.Add(-1)
			}
			m.rest, m.behind = m.behind, nil
		}
		if len(m.rest) == 0 || m.moving == m.window {
			break
		}
		c := m.rest[0]
		m.rest[0], m.rest = nil, m.rest[1:]
		switch m.h.Leave(m, c) {
		case bridge.LeavesNow:
			m.moving++
			m.found++
		case bridge.LeavesLater:
			m.found++
		}
	}
	switch {
	case m.moving > 0, m.finished == nil:
	case m.h.HasEnded(), m.last && (m.found == 0 || m.h.over.Load()):
		m.end()
	default:
		m.Loop.AfterFunc(passPause, m.pass)
	}
}

// AllAhead reports whether the connections that are not Behind have gone, on all loops, but for
// those that could not leave in the first pass.
func (m *Mover) AllAhead() bool { return m.h.firsts.Load() == 0 }

// Send sends a message with sockets. sent is called on the Mover's loop, when the system has taken
// it or with the reason why not: then the sockets are sent's, which closes them either way.
func (m *Mover) Send(data []byte, sent func(error), conns ...net.Conn) {
	m.h.SendConns(m.Loop, data, func(err error) {
		sent(err)
		m.Stays()
	}, conns...)
}

// Stays says that a connection for which Leave has returned LeavesNow is not sent after all.
func (m *Mover) Stays() {
	m.h.progress.Add(1)
	m.moving--
	m.step()
}

// untilMoved waits until moved is closed. Whenever progress has not changed for the time given
// by patience, it calls stalled.
func untilMoved(moved <-chan struct{}, progress *atomic.Uint64, patience time.Duration, stalled func()) {
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
