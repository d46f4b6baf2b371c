package websocket

import (
	"sync/atomic"

	"github.com/rondo-go/rondo/internal/meter"
	"github.com/rondo-go/rondo/wsframe"
)

// Stats counts what the Conns of a Server have done. Streams do not count.
type Stats struct {
	// Open is how many connections are open: their handshake is done, and they have not ended.
	// Opened and Closed count all that were.
	Open           int
	Opened, Closed uint64
	// MessagesIn and BytesIn count received messages, after decompression. MessagesOut and
	// BytesOut count those of WriteMessage and WritePrepared, before compression, but not
	// those of Broadcast.
	MessagesIn, MessagesOut uint64
	BytesIn, BytesOut       uint64
	// PingsIn and PongsIn count received frames, and PingsOut sent ones. Each Ping is answered.
	PingsIn, PongsIn, PingsOut uint64
	// Closes counts Closed by the code of the peer's Close frame, or of the error that this side
	// has told the peer of. wsframe.CodeAbnormal stands for an end without a closing handshake,
	// and 0 for codes above 1015.
	Closes map[Code]uint64
}

// counts are the counts of some connections.
type counts struct {
	opened                  atomic.Uint64
	messagesIn, messagesOut atomic.Uint64
	bytesIn, bytesOut       atomic.Uint64
	pingsIn, pongsIn        atomic.Uint64
	pingsOut                atomic.Uint64
	closes                  [codes + 1]atomic.Uint64 // the last one: other codes
}

// The codes that have names: from 1000 on.
const (
	firstCode = wsframe.CodeNormal
	codes     = 16
)

type allCounts = meter.Sharded[counts]

// Stats returns the counts. Any goroutine may call it at any time. It does not wait for the loops;
// what happens meanwhile may be missing in some of the counts.
func (s *Server) Stats() (all Stats) {
	all.Closes = make(map[Code]uint64)
	s.counts.All(func(c *counts) {
		for i := range c.closes {
			n := c.closes[i].Load()
			all.Closed += n
			code := Code(0)
			if i < codes {
				code = firstCode + Code(i)
			}
			if n > 0 {
				all.Closes[code] += n
			}
		}
		all.Opened += c.opened.Load() // after Closed, so that Open is not negative
		all.MessagesIn += c.messagesIn.Load()
		all.MessagesOut += c.messagesOut.Load()
		all.BytesIn += c.bytesIn.Load()
		all.BytesOut += c.bytesOut.Load()
		all.PingsIn += c.pingsIn.Load()
		all.PongsIn += c.pongsIn.Load()
		all.PingsOut += c.pingsOut.Load()
	})
	all.Open = int(all.Opened - all.Closed)
	return all
}

// counts returns where the connection counts; nil: it is a client's.
func (c *Conn) counts() *counts {
	if c.set.counts == nil {
		return nil
	}
	return c.set.counts.Of(c.shared.id)
}

func (c *Conn) countOpened() {
	if n := c.counts(); n != nil {
		n.opened.Add(1)
	}
}

// countIn counts a received message. size counts its last piece, or all of it.
func (c *Conn) countIn(size int, last bool) {
	if n := c.counts(); n != nil {
		n.bytesIn.Add(uint64(size))
		if last {
			n.messagesIn.Add(1)
		}
	}
}

// countOut counts a message, if it was sent.
func (c *Conn) countOut(size int, err error) error {
	if n := c.counts(); n != nil && err == nil {
		n.messagesOut.Add(1)
		n.bytesOut.Add(uint64(size))
	}
	return err
}

// countControl counts a Ping or a Pong that was received.
func (c *Conn) countControl(op Opcode) {
	switch n := c.counts(); {
	case n == nil:
	case op == wsframe.Ping:
		n.pingsIn.Add(1)
	default:
		n.pongsIn.Add(1)
	}
}

// countClosed counts the end of a connection that was open.
func (c *Conn) countClosed(err error) {
	n := c.counts()
	if n == nil {
		return
	}
	code := wsframe.CodeAbnormal
	switch e := err.(type) { // the error may be a user's: its methods are not called
	case *CloseError:
		code = e.Code
	case *wsframe.ProtocolError:
		code = e.Code
	}
	n.closes[min(uint(code-firstCode), codes)].Add(1)
}
