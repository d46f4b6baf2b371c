package websocket

import (
	"unicode/utf8"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/wsframe"
)

// wire is a Conn, as the Handler of the rondo.Conn below.
type wire Conn

var (
	_ rondo.EOFHandler      = (*wire)(nil)
	_ rondo.DrainHandler    = (*wire)(nil)
	_ rondo.ShutdownHandler = (*wire)(nil)
)

func (w *wire) Data(raw *rondo.Conn, in []byte) (n int, err error) {
	c := (*Conn)(w)
	c.heard = true
	if c.state == handshaking {
		if n, err = c.handler.(handshake).data(c, in); err != nil || c.state == handshaking {
			return n, err
		}
	}
	c.shared.inflated = 0
	for first := true; n < len(in); first = false {
		switch {
		case c.state == over:
			return len(in), nil
		case !first && (c.paused || raw.Full()):
			return n, nil // the loop offers the rest later
		case c.shared.inflated > inflatedPerTurn:
			raw.Pause()
			raw.Resume() // offers the rest in the next turn
			return n, nil
		}
		p, took, want, err := c.reader.Read(in[n:])
		if err != nil {
			return len(in), c.fail(err)
		}
		if took == 0 {
			raw.Want(want)
			return n, nil
		}
		n += took
		if p.Opcode.IsControl() {
			err = c.received(p.Opcode, p.Payload)
		} else {
			err = c.data(&p)
		}
		if err != nil {
			return len(in), err
		}
	}
	return n, nil
}

// inflatedPerTurn bounds how many bytes the messages of one receive may have before the
// loop's other connections have their turn: compressed messages may be a thousand times as
// long as what was received.
const inflatedPerTurn = 1 << 20

// data handles a piece of a message. Its error ends the connection, and a Close frame was
// sent.
func (c *Conn) data(p *wsframe.Piece) error {
	if c.state != open { // the peer has not seen our Close frame yet
		return nil
	}
	whole := p.First && p.Last && !p.Deflated
	if p.First {
		c.text.Reset()
	}
	if p.Opcode == Text && !p.Deflated && !c.validText(p, whole) {
		return c.fail(errText)
	}
	if whole && len(p.Payload) <= c.set.maxMessage {
		return c.deliver(p.Opcode, p.Payload, true)
	}
	if c.streams && !p.Deflated {
		return c.stream(p)
	}
	most := c.set.maxMessage
	if p.Deflated {
		most = maxDeflated(most)
	}
	if left := most - len(c.message) - len(p.Payload); left < 0 || left < c.reader.Left() {
		return c.fail(errMessageSize)
	}
	if !p.First || !p.Last {
		c.message = c.shared.extend(c.message, p.Payload, c.reader.Left())
	}
	switch {
	case !p.Last:
		return nil
	case !p.Deflated:
		return c.deliverKept(p.Opcode)
	case p.First:
		return c.inflate(p.Opcode, p.Payload)
	}
	kept := c.message
	c.message = nil
	defer c.shared.free(kept)
	return c.inflate(p.Opcode, kept)
}

// validText checks a piece of a text, or a whole one.
func (c *Conn) validText(p *wsframe.Piece, whole bool) bool {
	if whole {
		return utf8.Valid(p.Payload)
	}
	return c.text.Valid(p.Payload) && (!p.Last || c.text.Complete())
}

var (
	errText        = &wsframe.ProtocolError{Code: wsframe.CodeInvalidPayload, Text: "text that is not UTF-8"}
	errMessageSize = &wsframe.ProtocolError{Code: wsframe.CodeTooBig, Text: "message over the limit"}
	errDeflated    = &wsframe.ProtocolError{Code: wsframe.CodeInvalidPayload, Text: "compressed message that cannot be decompressed"}
)

// stream delivers a piece of a message that is not kept.
func (c *Conn) stream(p *wsframe.Piece) error {
	if p.First {
		c.streamed = 0
	}
	c.streamed += int64(len(p.Payload))
	if c.streamed+int64(c.reader.Left()) > int64(c.set.maxMessage) {
		return c.fail(errMessageSize)
	}
	return c.deliver(p.Opcode, p.Payload, p.Last)
}

// deliverKept delivers the message that was kept.
func (c *Conn) deliverKept(op Opcode) error {
	kept := c.message
	c.message = nil
	defer c.shared.free(kept) // even if the handler panics
	return c.deliver(op, kept, true)
}

// deliver calls the handler.
func (c *Conn) deliver(op Opcode, p []byte, last bool) error {
	var err error
	if c.streams {
		err = c.handler.(FragmentHandler).Fragment(c, op, p, last)
	} else {
		err = c.handler.Message(c, op, p)
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}
