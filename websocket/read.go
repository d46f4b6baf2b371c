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
	before := c.shared.inflated
	for frames := 0; n < len(in); frames++ {
		switch {
		case c.state == over:
			return len(in), nil
		case frames > 0 && (c.paused || raw.Full()):
			return n, nil // the loop offers the rest later
		case frames == framesPerTurn, c.isSpent(before):
			c.shared.hold(c)
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
	c.heavy = c.shared.inflated-before > inflatedShare
	return n, nil
}

// framesPerTurn bounds how many frames of a receive are handled before other connections have
// their turn: it may have ten thousand.
const framesPerTurn = 1024

// isSpent reports whether the connection must wait for the next turn. before is what inflated
// was when its turn began.
func (c *Conn) isSpent(before int) bool {
	if c.shared.inflated <= inflatedPerTurn {
		return false
	}
	c.heavy = c.heavy || c.shared.inflated-before > inflatedShare
	return c.heavy
}

// Compressed messages may be a thousand times as long as what was received. So there is a
// bound for the bytes that they may have in a turn of the loop, all connections together.
// When it is reached, connections that have had more than their share wait for the next turn,
// in the order of their coming. Others are served.
const (
	inflatedPerTurn = 1 << 20
	inflatedShare   = 64 << 10
)

// data handles a piece of a message. Its error ends the connection, and a Close frame was
// sent.
func (c *Conn) data(p *wsframe.Piece) error {
	if c.state != open { // the peer has not seen our Close frame yet
		return nil
	}
	if p.First && p.Last {
		return c.whole(p)
	}
	r := c.some()
	if p.First {
		r.size = 0
		r.text.Reset()
	}
	if p.Opcode == Text && !p.Deflated && !(r.text.Valid(p.Payload) && (!p.Last || r.text.Complete())) {
		return c.fail(errText)
	}
	r.size += int64(len(p.Payload))
	if r.size > int64(c.mostOf(p)-c.reader.Left()) {
		return c.fail(errMessageSize)
	}
	if c.streams && !p.Deflated {
		if p.Last {
			c.doneWithRare()
		}
		return c.deliver(p.Opcode, p.Payload, p.Last)
	}
	r.message = c.shared.extend(r.message, p.Payload, c.reader.Left())
	if !p.Last {
		return nil
	}
	message := r.message
	c.doneWithRare()
	defer c.shared.free(message) // even if the handler panics
	if p.Deflated {
		return c.inflate(p.Opcode, message)
	}
	return c.deliver(p.Opcode, message, true)
}

// whole handles a message that has arrived in one piece.
func (c *Conn) whole(p *wsframe.Piece) error {
	switch {
	case p.Opcode == Text && !p.Deflated && !utf8.Valid(p.Payload):
		return c.fail(errText)
	case len(p.Payload) > c.mostOf(p):
		return c.fail(errMessageSize)
	case p.Deflated:
		return c.inflate(p.Opcode, p.Payload)
	}
	return c.deliver(p.Opcode, p.Payload, true)
}

// mostOf is how many bytes the message of a piece may have on the wire.
func (c *Conn) mostOf(p *wsframe.Piece) int {
	if p.Deflated {
		return maxDeflated(c.set.maxMessage)
	}
	return c.set.maxMessage
}

// doneWithRare gives c.rare back when a message has arrived, unless there is more in it.
func (c *Conn) doneWithRare() {
	r := c.rare
	r.message = nil
	if r.protocol == "" && r.err == nil {
		c.rare = nil
		c.shared.freeRare(r)
	}
}

var (
	errText        = &wsframe.ProtocolError{Code: wsframe.CodeInvalidPayload, Text: "text that is not UTF-8"}
	errMessageSize = &wsframe.ProtocolError{Code: wsframe.CodeTooBig, Text: "message over the limit"}
	errDeflated    = &wsframe.ProtocolError{Code: wsframe.CodeInvalidPayload, Text: "compressed message that cannot be decompressed"}
)

// deliver calls the handler.
func (c *Conn) deliver(op Opcode, p []byte, last bool) error {
	c.countIn(len(p), last)
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
