package netconn

import (
	"fmt"

	"github.com/rondo-go/rondo"
)

// Options configure a Listener or a Dialer. The zero Options are right for most uses.
type Options struct {
	// Socket says how the engine listens or dials. A DialTimeout covers the whole dial,
	// including the handshakes of Filters.
	Socket rondo.SocketOptions
	// Filters stand between the wire and each connection, the first next to the wire: TLS
	// by package rtls, the PROXY protocol by package filter. Accept and Dial return a
	// connection when all its Filters are ready, after a handshake for instance.
	Filters []rondo.FilterOpenFunc
	// Backlog is how many connections may wait for Accept. At that number the engine
	// stops accepting; it goes on when half of them have been taken. Meanwhile new
	// connections wait in the system's queue. More than Backlog may wait: those that the
	// loops accept in one turn, and those whose Filters become ready meanwhile. 0:
	// DefaultBacklog.
	Backlog int
	// ReadAhead is how many bytes of a connection the loop may receive before a Read asks
	// for them. One receive (72 KiB) may exceed it. 0: DefaultReadAhead.
	ReadAhead int
}

const (
	// DefaultBacklog is the default of Options.Backlog.
	DefaultBacklog = 128
	// DefaultReadAhead is the default of Options.ReadAhead.
	DefaultReadAhead = 64 << 10
)

// check returns an error for a field with an invalid value.
func (o *Options) check() error {
	switch {
	case o.Backlog < 0:
		return fieldError("Options.Backlog", o.Backlog)
	case o.ReadAhead < 0:
		return fieldError("Options.ReadAhead", o.ReadAhead)
	}
	for i, f := range o.Filters {
		if f == nil {
			return fmt.Errorf("netconn: Options.Filters[%d] is nil: want a rondo.FilterOpenFunc", i)
		}
	}
	return nil
}
