package websocket

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/wsframe"
)

// NetConn returns a net.Conn whose bytes travel in messages of the type op: Text or Binary.
// Where messages begin and end has no meaning: Read returns bytes as they arrive, and Write
// sends messages of at most 16 KiB. Read returns io.EOF after a Close frame with
// wsframe.CodeNormal or CodeGoingAway. A message of the other type ends the connection with
// CodeUnsupportedData. MaxMessage bounds compressed messages alone.
//
// Deadlines are those of package net: after os.ErrDeadlineExceeded, reading and writing may
// go on. Close sends a Close frame, does not wait for the peer's, and does not flush what a
// Write under a deadline has left. The rules about goroutines and coroutines are the
// Stream's. Do not use the Stream's own methods beside the net.Conn.
func (s *Stream) NetConn(op Opcode) net.Conn {
	if op != Text && op != Binary {
		panic("websocket: Stream.NetConn: the opcode is " + op.String() + ": want Text or Binary")
	}
	s.timed.Store(true)
	return &streamConn{s: s, op: op}
}

type streamConn struct {
	s      *Stream
	op     Opcode
	closed atomic.Bool
}

func (c *streamConn) LocalAddr() net.Addr                { return c.s.nc.LocalAddr() }
func (c *streamConn) RemoteAddr() net.Addr               { return c.s.nc.RemoteAddr() }
func (c *streamConn) SetDeadline(t time.Time) error      { return c.s.limits.set(c.s.nc, &t, &t) }
func (c *streamConn) SetReadDeadline(t time.Time) error  { return c.s.limits.set(c.s.nc, &t, nil) }
func (c *streamConn) SetWriteDeadline(t time.Time) error { return c.s.limits.set(c.s.nc, nil, &t) }

// limits are the deadlines of a NetConn. The one for reading also bounds the Pongs that Read sends.
type limits struct {
	mu          sync.Mutex
	read, write time.Time
	pong        bool // a Read is sending
}

// set sets one of the deadlines, or both; nil: it stays.
func (l *limits) set(nc net.Conn, read, write *time.Time) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if read != nil {
		l.read = *read
		err = nc.SetReadDeadline(l.read)
	}
	if write != nil {
		l.write = *write
	}
	if write != nil || l.pong {
		if writeErr := nc.SetWriteDeadline(l.forWriting()); err == nil {
			err = writeErr
		}
	}
	return err
}

// sending notes that a Read begins to send, or has ended that.
func (l *limits) sending(nc net.Conn, pong bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pong = pong
	if !l.read.IsZero() {
		nc.SetWriteDeadline(l.forWriting()) // an error comes again
	}
}

func (l *limits) forWriting() time.Time {
	if l.pong && !l.read.IsZero() && (l.write.IsZero() || l.read.Before(l.write)) {
		return l.read
	}
	return l.write
}

// Read implements net.Conn.
func (c *streamConn) Read(p []byte) (n int, err error) {
	s, in := c.s, &c.s.in
	if err := in.turn.begin(byDeadline, s.alone); err != nil {
		return 0, err
	}
	defer in.turn.end()
	if len(p) == 0 {
		return 0, nil
	}
	s.resend(byDeadline)
	for len(in.rest) == 0 {
		chunk, err := s.chunk(byDeadline, false)
		switch {
		case err != nil:
			return 0, ending(err)
		case chunk.op != c.op:
			return 0, s.broken(&wsframe.ProtocolError{Code: wsframe.CodeUnsupportedData, Text: "want messages of type " + c.op.String()})
		}
		in.rest = chunk.data
	}
	n = copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// ending returns what Read of a net.Conn returns in place of err.
func ending(err error) error {
	var e *CloseError
	if errors.As(err, &e) && (e.Code == wsframe.CodeNormal || e.Code == wsframe.CodeGoingAway) {
		return io.EOF
	}
	return err
}

// Write implements net.Conn. Bytes of a message that was begun count as written: the rest of
// it goes first in the next Write.
func (c *streamConn) Write(p []byte) (n int, err error) {
	s := c.s
	if err := s.out.turn.begin(byDeadline, s.alone); err != nil {
		return 0, err
	}
	defer s.endTurn(byDeadline)
	for n < len(p) {
		k := min(len(p)-n, pieceSize)
		begun, err := s.message(byDeadline, c.op, p[n:n+k])
		if begun {
			n += k
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// farewell is how long Close tries to send a Close frame to a peer that does not read.
const farewell = 100 * time.Millisecond

// Close implements net.Conn.
func (c *streamConn) Close() error {
	s := c.s
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if s.out.queueClose(wsframe.AppendClose(nil, wsframe.CodeNormal, "")) && s.out.turn.try() {
		s.nc.SetWriteDeadline(time.Now().Add(farewell))
		s.flushQueued(byDeadline)
		s.out.turn.end()
	}
	if err := s.nc.Close(); !errors.Is(err, net.ErrClosed) { // a Read has closed it, behind the peer's Close frame
		return err
	}
	return nil
}
