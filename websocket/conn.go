package websocket

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/wsframe"
)

// A Conn is a WebSocket connection. It belongs to its loop: only that loop may call its
// methods, from handlers, timers and posted functions. Other goroutines use a Ref.
type Conn struct {
	// What a Broadcast looks at comes first.

	raw     *rondo.Conn
	set     *settings
	deflate *deflate // nil: no compression

	handler Handler // a handshake, until that is done
	shared  *shared // of the loop
	reader  wsframe.Reader
	wait    *wait // nil: it waits for nothing
	rare    *rare // nil: none
	state   connState
	streams bool  // the handler is a FragmentHandler
	paused  bool  // Pause was called
	heard   bool  // something was received since the last tick
	silent  uint8 // ticks since then
	wasOpen bool  // its handshake was done
	heavy   bool  // its compressed messages took more than their share of a turn
}

// rare is what few connections have, or only at times: so it adds nothing to most idle ones.
type rare struct {
	protocol string
	err      error // for Closed, in place of the one of raw

	// Of a message that arrives in pieces:

	message []byte // what is kept of it
	size    int64  // bytes that have arrived
	text    wsframe.UTF8
}

// connState is the state of a Conn. The states follow each other in this order; any of
// them may be left out.
type connState uint8

const (
	handshaking connState = iota
	open
	closing // our Close frame was sent first, and the peer's has not come
	over    // nothing more is sent, and what still comes is dropped
)

// A handshake is the Handler of a connection before it is open.
type handshake interface {
	Handler
	// data handles the peer's part, and returns how many bytes it took. It makes the
	// connection open, or returns an error.
	data(c *Conn, in []byte) (n int, err error)
	// late ends a handshake that takes too long.
	late(c *Conn)
}

// noMessage is the part of a handshake that is never called.
type noMessage struct{}

func (noMessage) Message(*Conn, Opcode, []byte) error { return nil }

func newConn(raw *rondo.Conn, set *settings, hand handshake) *Conn {
	c := &Conn{raw: raw, set: set, shared: perLoop.Get(raw.Loop()), handler: hand}
	c.reader.FromServer = set.client
	c.reader.MaxFrame = set.maxFrame
	c.shared.wait(c, set.handshake)
	return c
}

// opened makes the connection open. newHandler makes its handler.
func (c *Conn) opened(protocol string, d *deflate, newHandler func() Handler) {
	c.state, c.deflate = open, d
	c.countOpened()
	c.wasOpen = true
	if protocol != "" {
		c.some().protocol = protocol
	}
	c.reader.Deflate = d != nil
	c.heard = true
	c.shared.wait(c, c.set.tick)
	c.handler = HandlerFunc(nil) // for Closed, if Open panics
	if h := newHandler(); h != nil {
		c.handler = h
		_, c.streams = h.(FragmentHandler)
	} else {
		c.Close(wsframe.CodePolicyViolation, "")
	}
}

// some returns c.rare, and makes it if there is none.
func (c *Conn) some() *rare {
	if c.rare == nil {
		c.rare = c.shared.takeRare()
	}
	return c.rare
}

// Underlying returns the rondo.Conn below: for its addresses, limits and deadlines, its
// TLS. Do not write to it, close, pause or move it, or set its Handler.
func (c *Conn) Underlying() *rondo.Conn { return c.raw }

// Loop returns the connection's loop.
func (c *Conn) Loop() *rondo.Loop { return c.raw.Loop() }

// Handler returns the connection's handler.
func (c *Conn) Handler() Handler { return c.handler }

// Subprotocol returns the subprotocol that was negotiated; "": none.
func (c *Conn) Subprotocol() string {
	if c.rare == nil {
		return ""
	}
	return c.rare.protocol
}

// Compressed reports whether permessage-deflate was negotiated.
func (c *Conn) Compressed() bool { return c.deflate != nil }

// IsOpen reports whether messages can be written: no Close frame was sent, and the
// connection has not ended.
func (c *Conn) IsOpen() bool { return c.state == open }

// WriteMessage sends a message, or keeps a copy, without waiting for the peer. The caller
// may reuse p. The loop sends the messages of a turn together, at its end. A text must be
// UTF-8; WriteMessage does not check that.
//
// The message is sent whole or not at all. The error is ErrClosed once a Close frame was
// sent, or rondo.ErrOutputFull if more than MaxOutput bytes would wait (see
// rondo.Conn.Write); then Drained of a DrainHandler is called when there is room again,
// unless the message alone is longer than MaxOutput.
func (c *Conn) WriteMessage(op Opcode, p []byte) error {
	if op != Text && op != Binary {
		return fmt.Errorf("websocket: WriteMessage: the opcode is %v: want Text or Binary", op)
	}
	if c.state != open {
		return c.closedError()
	}
	if d := c.deflate; d != nil && len(p) >= c.set.compression.Threshold {
		return c.countOut(len(p), c.writeDeflated(op, p))
	}
	return c.countOut(len(p), c.write(wsframe.Header{Fin: true, Opcode: op}, p))
}

// closedError is the error of writes to a connection that is not open.
func (c *Conn) closedError() error {
	c.raw.Loop() // panics on another goroutine, with Engine.Check
	return ErrClosed
}

// Ping sends a Ping. The peer answers it, and a PongHandler gets the answer. p has at most
// 125 bytes.
func (c *Conn) Ping(p []byte) error { return c.control(wsframe.Ping, p) }

// Pong sends a Pong that no Ping has asked for. p has at most 125 bytes. Pings are answered
// without it.
func (c *Conn) Pong(p []byte) error { return c.control(wsframe.Pong, p) }

func (c *Conn) control(op Opcode, p []byte) error {
	switch {
	case len(p) > wsframe.MaxControl:
		return fmt.Errorf("websocket: %v of %d bytes: want at most %d", op, len(p), wsframe.MaxControl)
	case c.state != open:
		return c.closedError()
	}
	err := c.write(wsframe.Header{Fin: true, Opcode: op}, p)
	if n := c.counts(); n != nil && err == nil && op == wsframe.Ping {
		n.pingsOut.Add(1)
	}
	return err
}

// write writes a frame. It completes h.
func (c *Conn) write(h wsframe.Header, p []byte) error {
	b := c.raw.AvailableBuffer()
	if need := len(p) + wsframe.MaxHeader; cap(b) < need {
		b = c.shared.room(need)
	}
	b = c.appendFrame(b, h, p)
	if len(b) >= partly && len(b) > c.raw.Limits().MaxOutput {
		return rondo.ErrOutputFull // Write would take a part of it
	}
	_, err := c.raw.Write(b)
	return err
}

// partly is the least size of which rondo.Conn.Write may take a part.
const partly = 16 << 10

// appendFrame appends a frame as this side sends it.
func (c *Conn) appendFrame(b []byte, h wsframe.Header, p []byte) []byte {
	h.Length = int64(len(p))
	if !c.set.client {
		return append(wsframe.AppendHeader(b, h), p...)
	}
	h.Masked, h.Key = true, newKey()
	b = append(wsframe.AppendHeader(b, h), p...)
	wsframe.Mask(b[len(b)-len(p):], h.Key, 0)
	return b
}

// newKey returns a key for a frame's mask, which no peer can foresee.
func newKey() (key [4]byte) {
	binary.LittleEndian.PutUint32(key[:], rand.Uint32())
	return key
}

// Pause stops the calls of Message and the reading until Resume. Messages wait at the
// peer.
func (c *Conn) Pause() {
	c.paused = true
	c.raw.Pause()
}

// Resume ends Pause.
func (c *Conn) Resume() {
	c.paused = false
	c.raw.Resume()
}

// Full reports whether output is full: rondo.Conn.Full. The connection is then not read.
// A Handler that writes without being called should stop too, until Drained.
func (c *Conn) Full() bool { return c.raw.Full() }

// Buffered returns how many bytes of output wait.
func (c *Conn) Buffered() int { return c.raw.Buffered() }
