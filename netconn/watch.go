package netconn

import "github.com/rondo-go/rondo"

// A watch holds the functions of Watch.
type watch struct{ shutdown, closed func() }

// Watch sets two functions, each of which the loop calls at most once. Either may be nil.
//
// The loop calls shutdown when Engine.Shutdown begins, and then leaves the connection open.
// Make somebody close it soon: Engine.Shutdown waits for that. Without the function the
// loop closes the connection.
//
// The loop calls closed when the connection has closed: its output was sent or given up.
// That is later than Close. It is not called when another Handler takes the connection.
//
// Call Watch on the connection's loop, right after New.
func (c *Conn) Watch(shutdown, closed func()) { c.watch = &watch{shutdown, closed} }

// Shutdown implements rondo.ShutdownHandler.
func (h *handler) Shutdown(rc *rondo.Conn) {
	if w := h.c.watch; w != nil && w.shutdown != nil {
		w.shutdown()
		return
	}
	rc.Close()
}

// tellClosed calls the function of Watch.
func (c *Conn) tellClosed() {
	if w := c.watch; w != nil && w.closed != nil && !c.taken {
		w.closed()
	}
}
