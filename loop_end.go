package rondo

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

// stop aborts everything on the loop, which ends once that is done.
func (l *Loop) stop() {
	l.rest() // with many connections the engine itself takes long
	l.stopping = true
	for _, a := range inOrder(l.acceptors, func(a *acceptor) backend.File { return a.op.File }) {
		a.close()
	}
	l.endDials()
	for p := range l.polls {
		p.Close()
	}
	for c := range l.Conns() {
		c.Abort(ErrClosed)
	}
	for _, c := range l.packets {
		c.abort(ErrClosed)
	}
	for _, f := range l.atEnd {
		l.Defer(*f)
	}
	l.atEnd = nil
}

// OnClose calls f on the loop when the engine closes: by Close, or at the end of Shutdown.
// That is in the loop's last turns, after the connections were aborted. Use it to release
// resources that the loop does not know. forget cancels the call; it must be called on the
// loop.
func (l *Loop) OnClose(f func()) (forget func()) {
	l.check()
	mustGive(f != nil, "Loop.OnClose", "function")
	if l.stopping {
		l.Defer(f)
		return func() {}
	}
	l.atEnd = append(l.atEnd, &f)
	return func() {
		l.atEnd = slices.DeleteFunc(l.atEnd, func(g *func()) bool { return g == &f })
	}
}

// inOrder sorts a set by its elements' keys, so that a simulated run is repeatable.
func inOrder[T comparable, K cmp.Ordered](set map[T]struct{}, key func(T) K) []T {
	return slices.SortedFunc(maps.Keys(set), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// drain closes the loop's connections.
func (l *Loop) drain() {
	l.rest() // as in stop
	l.draining = true
	l.endDials()
	for c := range l.Conns() {
		c.drain()
	}
	for _, c := range l.packets {
		c.close()
	}
}

// drain closes the connection, or queues a call of its ShutdownHandler.
func (c *Conn) drain() {
	if _, ok := c.handler.(ShutdownHandler); !ok || c.life != connOpen && !c.rests() {
		c.Close()
		return
	}
	c.loop.callSoon(due{conn: c, f: c.tellShutdown})
}

// tellShutdown calls the handler's Shutdown. The handler may have changed since drain.
func (c *Conn) tellShutdown() {
	h, ok := c.handler.(ShutdownHandler)
	if !ok || c.life != connOpen && !c.rests() {
		c.Close()
		return
	}
	c.within(func() { c.occupied(func() { h.Shutdown(c) }) })
}

func (l *Loop) checkDrained() {
	if !l.draining || l.open > 0 || len(l.packets) > 0 || l.expected.Load() > 0 || !l.calls.empty() {
		return
	}
	select {
	case <-l.drained:
	default:
		close(l.drained)
	}
}

// expect counts a connection that sets out for the loop, and reports true, unless the engine ends:
// then the connection has to close where it is. It counts first: so either Shutdown is seen here, or
// the loop sees the connection when it drains, and waits for it. No loop (nil) is always ready.
func (l *Loop) expect() bool {
	if l == nil {
		return true
	}
	l.expected.Add(1)
	l.arrivals.Add(1)
	if l.engine.ends.Load() {
		l.unexpect()
		return false
	}
	return true
}

// unexpect takes back a call of expect.
func (l *Loop) unexpect() {
	if l != nil {
		l.expected.Add(-1)
		l.post(task{f: func() {}}) // a turn, for checkDrained
	}
}

// moved serves a connection from another loop. inherited are flags of the Conn that it was
// there. within: the engine counts it already, if a Listener accepted it.
func (l *Loop) moved(h backend.Handle, rest []byte, open OpenFunc, inherited connFlags, within bool) {
	if c := l.arrived(h, inherited, within); c != nil {
		c.keep(rest)
		c.opened(open)
	}
}

// arrived makes moved's Conn, or closes the connection and returns nil. Until it counts as open it
// stays in l.expected.
func (l *Loop) arrived(h backend.Handle, inherited connFlags, within bool) *Conn {
	defer l.expected.Add(-1)
	addr, admission, counts := h.Peer.Addr(), l.engine.admission, inherited&accepted != 0
	if counts && !within {
		if limit := admission.enter(addr, l, false); limit != "" {
			l.refuse(h, limit, inherited, &l.stats.Attached)
			return nil
		}
	}
	if l.stopping || l.draining {
		if counts {
			admission.leave(addr)
		}
		l.turnAway(h, inherited)
		return nil
	}
	file, err := l.own(h)
	if err != nil {
		if counts {
			admission.leave(addr)
		}
		l.engine.log().With("loop", l.id).Warn("rondo: cannot serve a connection of another loop", "remote", h.Peer, "error", err)
		return nil
	}
	l.stats.Attached++
	c := newConn(l, file, h.Peer)
	c.flags |= inherited
	return c
}

// lastTurns bounds the turns for the last calls. A function that defers or posts itself
// again and again must not keep the loop from ending.
const lastTurns = 1000

// end makes the last calls and releases the backend.
func (l *Loop) end() {
	l.stopping = true
	l.splits = false // no turn ends early: there may be no later one for its completions
	l.endDials()
	l.inbox.Close()
	for l.work(); l.due() || l.isPosted(); l.work() {
		if l.turnsLeft--; l.turnsLeft < 0 {
			break
		}
	}
	l.show()
	if err := l.backend.Close(); err != nil {
		l.engine.log().With("loop", l.id).Warn("rondo: closing the backend", "error", err)
	}
}

// isPosted reports whether a task is left to run: runtime.Goexit may
// have left some.
func (l *Loop) isPosted() bool {
	return l.casting != nil || len(l.tasks) > 0 || !l.inbox.Empty()
}

// ended reports whether the loop is stopping and waits for nothing more.
func (l *Loop) ended() bool {
	return l.stopping && l.open == 0 && len(l.packets) == 0 && len(l.dialing) == 0 && len(l.acceptors) == 0 && len(l.polls) == 0 && !l.hasRuns()
}

// due reports whether there is work that needs no event.
func (l *Loop) due() bool {
	return !l.again.empty() || !l.calls.empty() || !l.dirty.empty() || !l.dirtyPackets.empty() ||
		!l.deferred.empty() || !l.failedDials.empty() || l.hasRuns() || len(l.outbox.parts) > 0 || l.casting != nil
}
