package workers

import (
	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// handler is a Queue as the Handler of its connection. It calls the user's Handler.
type handler Queue

// marked makes handler a bridge.Keeper, for calls that the engine does not make to a
// user's Handler.
type marked = bridge.Ours

var (
	_ rondo.Handler         = (*handler)(nil)
	_ rondo.EOFHandler      = (*handler)(nil)
	_ rondo.DrainHandler    = (*handler)(nil)
	_ rondo.ShutdownHandler = (*handler)(nil)
	_ bridge.Keeper         = (*handler)(nil)
	_ marked                = Queue{}.marked // staticcheck does not see the promotion to handler
)

// Data implements rondo.Handler. A full Queue stops reading only here, so a peer that
// waits for each answer costs no Pause. Data does not ask whether the pool is full;
// Submit does, so that only connections with work wait for room.
func (h *handler) Data(c *rondo.Conn, in []byte) (int, error) {
	q := (*Queue)(h)
	switch {
	case q.state&paused != 0:
		q.stop()
		return 0, nil
	case q.isOver() || q.state&waits != 0 || q.isFullHere():
		q.state |= waits
		q.stopFull()
		return 0, nil
	}
	n, err := q.handler.Data(c, in)
	switch {
	case err != nil && q.n > 0 && q.state&dropped == 0:
		q.end(err)
		return n, nil
	case err == nil && n < len(in) && q.state&waits != 0:
		q.stopFull()
	}
	return n, err
}

// stopFull is stop for a full queue. Full output needs no stop: the engine itself stops
// reading then, and calls Data afterwards.
func (q *Queue) stopFull() {
	if !q.outputFull() {
		q.stop()
	}
}

// EOF implements rondo.EOFHandler.
func (h *handler) EOF(*rondo.Conn) {
	q := (*Queue)(h)
	q.state |= eof
	q.settle()
}

// tellEOF calls the user's EOF. All work has been answered.
func (q *Queue) tellEOF() {
	q.state |= eofTold
	if h, ok := q.handler.(rondo.EOFHandler); ok {
		h.EOF(q.conn)
	} else {
		q.Close()
	}
}

// Drained implements rondo.DrainHandler.
func (h *handler) Drained(c *rondo.Conn) {
	q := (*Queue)(h)
	q.answer()
	q.settle()
	if d, ok := q.handler.(rondo.DrainHandler); ok && q.state&(closing|dropped) == 0 {
		d.Drained(c)
	}
}

// Shutdown implements rondo.ShutdownHandler.
func (h *handler) Shutdown(c *rondo.Conn) {
	q := (*Queue)(h)
	if s, ok := q.handler.(rondo.ShutdownHandler); ok {
		s.Shutdown(c)
	} else {
		q.Close()
	}
}

// Closing implements bridge.Keeper. The connection takes no more work. Its unanswered
// work is dropped when the present event ends, before the peer has closed too.
func (h *handler) Closing() {
	q := (*Queue)(h)
	q.state |= closing
	if q.n > 0 {
		q.ref.Do(q.wake) // fails if Closed comes now
	}
}

// Replaced implements bridge.Keeper. Another Handler will get Drained, so answers that
// waited for it are written now.
func (h *handler) Replaced() {
	q := (*Queue)(h)
	if q.ready.first != nil {
		q.ref.Do(q.wake)
	}
}

// Installed implements bridge.Keeper.
func (h *handler) Installed() {}

// Closed implements rondo.Handler.
func (h *handler) Closed(c *rondo.Conn, err error) {
	q := (*Queue)(h)
	q.drop(err)
	q.handler.Closed(c, err)
}
