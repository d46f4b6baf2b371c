package websocket

import (
	"errors"
	"io"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/wsframe"
)

// Close begins the closing handshake: it sends a Close frame, and closes the connection
// when the peer has answered, or after CloseTimeout. Messages that still come are dropped.
// It does nothing if a Close frame was sent before.
//
// A reason of more than 123 bytes is cut. Close panics if code may not be sent (see
// Code.MaySend), except for wsframe.CodeNoStatus, which sends a frame without code.
func (c *Conn) Close(code Code, reason string) {
	if c.state != open {
		c.raw.Loop() // panics on another goroutine, with Engine.Check
		return
	}
	if !c.sendClose(code, reason) {
		return
	}
	c.state = closing
	c.shared.wait(c, c.set.close)
	c.raw.Use(nil, func(*rondo.Conn) rondo.Filter { return seal{} })
}

// seal is a Filter that drops output. No message may follow a Close frame: not even a
// Broadcast that is on its way to the loop.
type seal struct{ rondo.PassThrough }

func (seal) Outbound(*rondo.FilterPort, []byte) error { return nil }

// Abort ends the connection at once, without a Close frame. Closed gets err; nil stands for
// ErrClosed.
func (c *Conn) Abort(err error) {
	if err == nil {
		err = ErrClosed
	}
	c.end(err)
	c.raw.Abort(err)
}

// sendClose sends a Close frame. If there is no room for it, it closes the connection, and
// returns false.
func (c *Conn) sendClose(code Code, reason string) bool {
	var payload [wsframe.MaxControl]byte
	err := c.write(wsframe.Header{Fin: true, Opcode: wsframe.Close}, wsframe.AppendClose(payload[:0], code, reason))
	if err == nil {
		return true
	}
	c.end(err)
	c.raw.CloseWith(err)
	return false
}

// end makes err the connection's last error, unless there is one already, and returns that.
func (c *Conn) end(err error) error {
	c.state = over
	r := c.some()
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// fail sends a Close frame that tells of err, unless one was sent. It returns err, with
// which the caller closes the connection below.
func (c *Conn) fail(err error) error {
	if c.state == open {
		code, reason := wsframe.CodeInternalError, ""
		var protocol *wsframe.ProtocolError
		var own *CloseError
		switch {
		case errors.As(err, &protocol):
			code, reason = protocol.Code, protocol.Text
		case errors.As(err, &own) && (own.Code.MaySend() || own.Code == wsframe.CodeNoStatus):
			code, reason = own.Code, own.Reason
		}
		c.sendClose(code, reason)
	}
	c.end(err)
	return err
}

// received handles a control frame. Its error ends the connection, and a Close frame was
// sent.
func (c *Conn) received(op Opcode, p []byte) error {
	if op == wsframe.Close {
		return c.peerClosed(p)
	}
	c.countControl(op)
	switch {
	case c.state != open:
	case op == wsframe.Ping:
		c.control(wsframe.Pong, p) // without room there is none: the peer does not read
		if h, ok := c.handler.(PingHandler); ok {
			h.Ping(c, p)
		}
	default:
		if h, ok := c.handler.(PongHandler); ok {
			h.Pong(c, p)
		}
	}
	return nil
}

// peerClosed handles the peer's Close frame.
func (c *Conn) peerClosed(p []byte) error {
	code, reason, err := wsframe.ReadClose(p)
	if err != nil {
		return c.fail(err)
	}
	e := &CloseError{code, string(reason)}
	if h, ok := c.handler.(CloseHandler); ok && c.state == open {
		h.Closing(c, code, e.Reason)
	}
	if c.state == open {
		c.sendClose(code, "")
	}
	c.end(e)
	if c.set.client {
		c.shared.wait(c, c.set.close) // the server closes first (RFC 6455, 7.1.1)
		return nil
	}
	return e
}

// EOF is the end of the peer's stream.
func (w *wire) EOF(raw *rondo.Conn) {
	raw.CloseWith((*Conn)(w).end(io.ErrUnexpectedEOF))
}

func (w *wire) Closed(_ *rondo.Conn, err error) {
	c := (*Conn)(w)
	c.shared.wait(c, 0)
	c.state = over
	if r := c.rare; r != nil {
		c.shared.free(r.message)
		r.message = nil
		if r.err != nil {
			err = r.err
		}
	}
	if c.wasOpen {
		c.countClosed(err)
	}
	c.handler.Closed(c, err)
}

func (w *wire) Drained(*rondo.Conn) {
	c := (*Conn)(w)
	if h, ok := c.handler.(DrainHandler); ok && c.state == open {
		h.Drained(c)
	}
}

// Shutdown closes the connection when the engine shuts down.
func (w *wire) Shutdown(raw *rondo.Conn) {
	c := (*Conn)(w)
	if c.state == handshaking {
		raw.Close()
	} else {
		c.Close(wsframe.CodeGoingAway, "")
	}
}

// tick is called when the time for which c waits has passed: for the end of a handshake, or
// for another look at what was received.
func (c *Conn) tick() {
	switch c.state {
	case handshaking:
		c.handler.(handshake).late(c)
		return
	case closing:
		c.end(ErrCloseTimeout)
		c.raw.CloseWith(ErrCloseTimeout)
		return
	case over:
		c.raw.CloseWith(c.rare.err)
		return
	}
	if c.heard {
		c.heard, c.silent = false, 0
	} else {
		c.silent++
		if c.set.idle > 0 && int64(c.silent)*int64(c.set.tick) >= int64(c.set.idle) {
			c.sendClose(wsframe.CodeGoingAway, "idle")
			c.end(rondo.ErrIdle)
			c.raw.CloseWith(rondo.ErrIdle)
			return
		}
		if c.set.ping > 0 {
			c.Ping(nil)
		}
	}
	c.shared.wait(c, c.set.tick)
}
