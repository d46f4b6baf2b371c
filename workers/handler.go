package workers

import (
	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// handler is a Queue as the Handler of its connection. It calls the user's, and stands
// between where work is not done.
type handler Queue

// marked makes it a Handler that the engine tells more than a user's, see bridge.Keeper.
type marked = bridge.Ours

var (
	_ rondo.Handler         = (*handler)(nil)
	_ rondo.EOFHandler      = (*handler)(nil)
	_ rondo.DrainHandler    = (*handler)(nil)
	_ rondo.ShutdownHandler = (*handler)(nil)
	_ bridge.Keeper         = (*handler)(nil)
)

// Data implements rondo.Handler. A Queue that is full stops the reading only here: a
// peer that waits for each answer costs no Pause. Whether the pool is full Submit will
// tell, if it is called: only those that have something to submit wait for room.
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

// stopFull is stop for a queue that is full. Full output stops the reading without it, and
// ends with a call of Data, which looks again.
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

// tellEOF tells the user's Handler, all of whose work has been answered.
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

// Closing implements bridge.Keeper: the connection takes no more work. What it has is
// dropped as soon as the event at hand has ended, and not when the peer, too, has closed.
func (h *handler) Closing() {
	q := (*Queue)(h)
	q.state |= closing
	if q.n > 0 {
		q.ref.Do(q.wake) // fails if Closed comes now
	}
}

// Replaced implements bridge.Keeper: Drained will be another Handler's, so answers that
// waited for it are given now.
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
