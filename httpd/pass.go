package httpd

import (
	"net/http"

	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/rtls"
)

// This file is about connections that pass to another process, by package upgrade: those without
// a request in progress. The bytes of an incomplete head go along. One whose answer has not been
// sent waits, since its time limit stays here.

// What Leaves passes of a connection.
const (
	served    = 1 << iota // a request was served
	afterPost             // the last one was a POST
)

// Leaves implements bridge.Passer.
func (c *conn) Leaves() bridge.CanLeave {
	c.settle()
	if _, secure := rtls.ConnectionState(c.conn); secure || c.over || c.ended || c.about != nil && c.about.stock != nil {
		return bridge.LeavesNever
	}
	if c.x != nil || c.conn.Buffered() > 0 {
		return bridge.LeavesLater
	}
	return bridge.LeavesNow
}

// State implements bridge.Passer.
func (c *conn) State() []byte {
	var s byte
	if !c.first {
		s |= served
	}
	if c.post {
		s |= afterPost
	}
	return []byte{s}
}

// Arrived implements bridge.Passer. A connection that was idle is idle again; one that was not
// has the time for a head anew.
func (c *conn) Arrived(state []byte) {
	if len(state) != 1 || state[0]&served == 0 {
		return
	}
	c.first, c.fresh, c.post = false, false, state[0]&afterPost != 0
	c.await(0)
	c.setState(http.StateIdle)
	c.loop.list(c)
}
