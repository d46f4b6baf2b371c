package netconn

import (
	"fmt"

	"github.com/rondo-go/rondo"
)

// Options of a Listener or a Dialer. The zero Options are right for most uses.
type Options struct {
	// Socket is how the engine listens or dials. A DialTimeout is for all of a dial, with
	// what Filters do until they are ready.
	Socket rondo.SocketOptions
	// Filters are put between the wire and each connection, the first next to the wire:
	// TLS by package rtls, the PROXY protocol by package filter. Accept and Dial return a
	// connection when all of them are ready, after a handshake for instance.
	Filters []rondo.FilterOpenFunc
	// Backlog is how many connections may wait for Accept. When that many do, accepting
	// pauses, and goes on when half of them were taken: meanwhile connections wait in the
	// system's queue. What the loops accept in one turn, and connections whose Filters
	// become ready meanwhile, may wait beyond it. 0: DefaultBacklog.
	Backlog int
	// ReadAhead is how many bytes of a connection the loop may receive before a Read
	// wants them; it may be exceeded by one receive (72 KiB). 0: DefaultReadAhead.
	ReadAhead int
}

const (
	// DefaultBacklog is what Options.Backlog 0 stands for.
	DefaultBacklog = 128
	// DefaultReadAhead is what Options.ReadAhead 0 stands for.
	DefaultReadAhead = 64 << 10
)

// check returns an error for a field that means nothing.
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
