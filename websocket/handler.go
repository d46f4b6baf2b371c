package websocket

import (
	"errors"
	"fmt"
	"os"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/wsframe"
)

// An Opcode is the type of a message: Text or Binary.
type Opcode = wsframe.Opcode

// The types of messages. A text must be UTF-8.
const (
	Text   = wsframe.Text
	Binary = wsframe.Binary
)

// A Code says why a connection is closed. Package wsframe has the names of all codes.
type Code = wsframe.Code

// A Handler serves one WebSocket connection. Its methods run on the connection's loop, one
// at a time, and must not block.
type Handler interface {
	// Message handles a message. p is valid until Message returns, which may change it. An
	// error closes the connection: with the code and the reason of a *CloseError, with
	// wsframe.CodeInternalError for any other; Closed gets the error.
	Message(c *Conn, op Opcode, p []byte) error

	// Closed is the last call, made exactly once for each Handler that Open has returned.
	// err is a *CloseError after a closing handshake: it has the code of the peer's Close
	// frame. A connection that ended without one gives io.ErrUnexpectedEOF or the system's
	// error, and a peer that violates the protocol a *wsframe.ProtocolError. err is nil if
	// the rondo.Conn below was closed by its Close.
	Closed(c *Conn, err error)
}

// HandlerFunc is a Handler that has only Message.
type HandlerFunc func(c *Conn, op Opcode, p []byte) error

// Message calls f.
func (f HandlerFunc) Message(c *Conn, op Opcode, p []byte) error { return f(c, op, p) }

// Closed does nothing.
func (f HandlerFunc) Closed(*Conn, error) {}

// A FragmentHandler is a Handler that gets messages in pieces, in place of Message: as they
// arrive, without being kept. The sizes of pieces have no meaning, and a piece may be
// empty. last is set in the last piece of a message. A text may be cut within a character.
// A compressed message comes in one piece.
type FragmentHandler interface {
	Fragment(c *Conn, op Opcode, p []byte, last bool) error
}

// A PingHandler is a Handler that is told of Pings. They are answered whether it is or not.
type PingHandler interface {
	Ping(c *Conn, p []byte)
}

// A PongHandler is a Handler that is told of Pongs.
type PongHandler interface {
	Pong(c *Conn, p []byte)
}

// A CloseHandler is a Handler that is told of the peer's Close frame, unless it answers
// ours. Closing may still write. When it returns, the Close frame is answered with the
// same code, unless Closing has called Conn.Close. A code of wsframe.CodeNoStatus means
// that the frame had none.
type CloseHandler interface {
	Closing(c *Conn, code Code, reason string)
}

// A DrainHandler is a Handler that is told when output that was full has drained, as a
// rondo.DrainHandler is.
type DrainHandler interface {
	Drained(c *Conn)
}

// A CloseError is the code and the reason of a Close frame.
type CloseError struct {
	Code   Code
	Reason string
}

func (e *CloseError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("websocket: closed with %v", e.Code)
	}
	return fmt.Sprintf("websocket: closed with %v: %q", e.Code, e.Reason)
}

// CodeOf returns the code of the Close frame that err tells of, wsframe.CodeAbnormal if err
// tells of another end of the connection, and 0 for nil.
func CodeOf(err error) Code {
	var e *CloseError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return wsframe.CodeAbnormal
}

var (
	// ErrClosed is the error of writes after Close, or after the connection has ended. It
	// is rondo.ErrClosed.
	ErrClosed = rondo.ErrClosed
	// ErrCloseTimeout ends a connection whose peer has not answered a Close frame in time.
	// It is an os.ErrDeadlineExceeded.
	ErrCloseTimeout error = &timeout{"websocket: the peer has not answered the close frame in time"}
	// ErrHandshakeTimeout is the error of a dial whose server has not answered in time. It
	// is an os.ErrDeadlineExceeded.
	ErrHandshakeTimeout error = &timeout{"websocket: the server has not answered the handshake in time"}
)

type timeout struct{ text string }

func (e *timeout) Error() string        { return e.text }
func (e *timeout) Timeout() bool        { return true }
func (e *timeout) Temporary() bool      { return true }
func (e *timeout) Is(target error) bool { return target == os.ErrDeadlineExceeded }
