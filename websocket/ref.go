package websocket

import (
	"iter"
	"slices"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/wsframe"
)

// A Ref lets other goroutines use a connection. Any goroutine may call its methods. A Ref is
// comparable. The zero Ref is closed.
type Ref struct{ conn *Conn }

// Ref returns a Ref, with which other goroutines can use c.
func (c *Conn) Ref() Ref { return Ref{c} }

// raw returns the Ref of the rondo.Conn below.
func (r Ref) raw() rondo.Ref {
	if r.conn == nil {
		return rondo.Ref{}
	}
	return r.conn.raw.Ref()
}

// Do calls f with the connection, on its loop, after everything that this goroutine posted
// before. If the error is nil, f is called soon, unless the connection closes first.
func (r Ref) Do(f func(*Conn)) error {
	if f == nil {
		panic("websocket: Ref.Do was given no function")
	}
	return r.raw().Do(func(*rondo.Conn) { f(r.conn) })
}

// WriteMessage sends a copy of p, after everything that this goroutine posted before. If
// there is no room for it when it comes to the loop (see Broadcast), the connection is
// aborted with rondo.ErrOutputFull: otherwise the peer would miss a message. A message for
// a connection that is closing is dropped. The error is ErrClosed once the connection is
// closed.
func (r Ref) WriteMessage(op Opcode, p []byte) error {
	if r.raw().Closed() {
		return ErrClosed
	}
	m := Prepare(op, p)
	Broadcast(func(yield func(Ref) bool) { yield(r) }, m, func(c *Conn) { c.Abort(rondo.ErrOutputFull) })
	return nil
}

// Close begins the closing handshake, as Conn.Close does. It panics if code may not be sent.
func (r Ref) Close(code Code, reason string) {
	wsframe.AppendClose(nil, code, reason)
	r.Do(func(c *Conn) { c.Close(code, reason) })
}

// Closed reports whether the connection was closed. false may be out of date at once.
func (r Ref) Closed() bool { return r.raw().Closed() }

// Loop returns the connection's loop; nil for the zero Ref.
func (r Ref) Loop() *rondo.Loop { return r.raw().Loop() }

// A Prepared is a message that is sent to many connections. Its frames are made once, and
// the connections share them. Any goroutine may use it.
type Prepared struct {
	frame  []byte // as a server sends it
	header int    // length of the frame's header

	mu       sync.Mutex
	deflated [wsframe.MaxWindowBits + 1][]byte // by the bits of the window; the frame itself if compressing does not pay
}

// Prepare makes a message of a copy of p. It panics if op is neither Text nor Binary.
func Prepare(op Opcode, p []byte) *Prepared {
	if op != Text && op != Binary {
		panic("websocket: Prepare: the opcode is " + op.String() + ": want Text or Binary")
	}
	frame := wsframe.AppendFrame(make([]byte, 0, len(p)+wsframe.MaxHeader), op, p)
	return &Prepared{frame: frame, header: len(frame) - len(p)}
}

func (m *Prepared) opcode() Opcode { return Opcode(m.frame[0] & 0xf) }

func (m *Prepared) payload() []byte { return m.frame[m.header:] }

// isCompressed reports whether m is compressed for c, a server's connection. What an
// earlier message has left in c's window cannot be used by a frame that is shared: a
// connection with context takeover gets the message as it is.
func (m *Prepared) isCompressed(c *Conn) bool {
	return c.deflate != nil && !c.deflate.out.takeover && len(m.payload()) >= c.set.compression.Threshold
}

// frameFor returns the frame for c, a server's connection.
func (m *Prepared) frameFor(c *Conn) []byte {
	if !m.isCompressed(c) {
		return m.frame
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	made := &m.deflated[c.deflate.out.bits]
	if *made == nil {
		*made = m.compress(c.set.compression.Level, c.deflate.out.bits)
	}
	return *made
}

// freeDeflaters are compressors that no goroutine uses, by the bits of their windows.
var freeDeflaters [wsframe.MaxWindowBits + 1]sync.Pool

func (m *Prepared) compress(level, bits int) []byte {
	z, _ := freeDeflaters[bits].Get().(*deflater)
	if z == nil {
		z = newDeflater(level, bits) // the first level counts: it is not worth a pool for each
	}
	defer freeDeflaters[bits].Put(z)
	out := z.deflate(m.payload(), nil)
	defer z.trim()
	if len(out) >= len(m.payload()) {
		return m.frame
	}
	b := wsframe.AppendHeader(nil, wsframe.Header{Fin: true, RSV: wsframe.RSV1, Opcode: m.opcode(), Length: int64(len(out))})
	return append(b, out...)
}

// WritePrepared is WriteMessage for a message that is sent to several connections.
func (c *Conn) WritePrepared(m *Prepared) error {
	if c.set.client || c.deflate != nil && c.deflate.out.takeover || c.state != open {
		return c.WriteMessage(m.opcode(), m.payload())
	}
	frame := m.frameFor(c)
	if len(frame) < shared512 {
		_, err := c.raw.Write(frame)
		return c.countOut(len(m.payload()), err)
	}
	return c.countOut(len(m.payload()), c.raw.WriteOwned(frame, nil))
}

// shared512 is the size from which a connection shares a frame: less is cheaper to copy.
const shared512 = 512

// Broadcast sends a message to many connections, of any loops and engines. Any goroutine may
// call it. It posts once to each loop, not to each connection, and does not wait. Each
// connection gets the message after everything that this goroutine posted before, unless it
// is closed or closing by then.
//
//	websocket.Broadcast(maps.Keys(room), websocket.Prepare(websocket.Text, line), nil)
//
// All connections of servers share the bytes of the message; clients' connections get
// copies, since each frame of a client has a mask of its own. A connection with context
// takeover gets the message without compression: use Compression.NoContextTakeover where
// large messages are broadcast.
//
// A connection without room misses the message: its output is full, or would be, or as much
// is on its way to its loop (see rondo.Broadcast). If full is not nil, the loop of such a
// connection calls it, as it calls the function of Ref.Do: full may close the connection.
//
// Broadcast ranges over all of to before it posts. So the caller may hold the lock that
// guards its set of Refs.
func Broadcast(to iter.Seq[Ref], m *Prepared, full func(*Conn)) {
	var told func(*rondo.Conn)
	if full != nil {
		told = func(raw *rondo.Conn) {
			if w, ok := raw.Handler().(*wire); ok && w.state == open {
				full((*Conn)(w))
			}
		}
	}
	var others []Ref // that do not get m.frame
	rondo.Broadcast(func(yield func(rondo.Ref) bool) {
		for r := range to {
			switch {
			case r.conn == nil:
			case r.conn.set.client || m.isCompressed(r.conn):
				others = append(others, r)
			case !yield(r.raw()):
				return
			}
		}
	}, m.frame, told)
	for len(others) > 0 {
		if c := others[0].conn; c.set.client {
			frame := c.appendFrame(nil, wsframe.Header{Fin: true, Opcode: m.opcode()}, m.payload())
			rondo.Broadcast(func(yield func(rondo.Ref) bool) { yield(c.raw.Ref()) }, frame, told)
			others = others[1:]
			continue
		}
		others = m.castDeflated(others, told)
	}
}

// castDeflated sends the message to those connections that get the same frame as the first
// one, and returns the others.
func (m *Prepared) castDeflated(to []Ref, told func(*rondo.Conn)) (others []Ref) {
	bits := to[0].conn.deflate.out.bits
	rondo.Broadcast(func(yield func(rondo.Ref) bool) {
		for _, r := range to {
			if c := r.conn; !c.set.client && c.deflate.out.bits == bits && !yield(r.raw()) {
				return
			}
		}
	}, m.frameFor(to[0].conn), told)
	return slices.DeleteFunc(to, func(r Ref) bool { return !r.conn.set.client && r.conn.deflate.out.bits == bits })
}
