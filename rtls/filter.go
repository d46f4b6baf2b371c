package rtls

import (
	"crypto/tls"
	"fmt"
	"io"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/meter"
)

// filter is the rondo.Filter of a connection.
type filter struct {
	options *Options
	tls     *tls.Conn
	stage   *rondo.FilterPort
	hand    *handshake // nil: no handshake is under way
	shared  *shared    // shared by the loop's connections

	wire   []byte // unread input of Inbound
	record int32  // bytes of wire that belong to the record being read
	skip   int32  // bytes that were read, but not yet reported to Inbound's caller

	client       bool
	renegotiates bool // if the server wants to; TLS 1.2 and before
	done         bool // the first handshake is done
	counted      bool // and counted, or it has failed
	over         bool // close_notify has come
	writing      bool // crypto/tls is writing: it cannot read now
	late         bool // input came during writing
	answered     bool // something was sent since the handshake's last step began
}

// shared is what a loop's connections share: buffers to receive and decrypt into, and
// coroutines for their handshakes.
type shared struct {
	buffers *buffers // nil: in use
	spare   spare
	host    bridge.Loop
}

// buffers are the memory in which a connection receives and decrypts.
type buffers struct {
	raw   [rawSize]byte
	plain [4 * maxPlain]byte
}

var shareds = rondo.LoopLocal[*shared]{New: func(l *rondo.Loop) *shared { return &shared{host: bridge.LoopOf(l)} }}

// take takes the buffers. Delivered input may cause input of another connection, through
// a filter that answers what is written. That connection finds no buffers, and gets new
// ones.
func (s *shared) take() *buffers {
	b := s.buffers
	if s.buffers = nil; b == nil {
		b = new(buffers)
	}
	return b
}

// maxPlain is the largest content of one record (RFC 8446, 5.1).
const maxPlain = 16 << 10

// Start begins the handshake. A client sends its hello.
func (f *filter) Start(s *rondo.FilterPort) error {
	f.stage = s
	f.shared = shareds.Get(s.Conn().Loop())
	f.shared.spare.conns++
	f.begin(f.handshake)
	if !f.client {
		return nil
	}
	f.writing = true
	err := f.advance()
	f.written()
	f.sendNow()
	return err
}

// written ends writing. Input that came meanwhile, from a lower filter that answers what
// is written, is offered again.
func (f *filter) written() {
	f.writing = false
	if f.late {
		f.late = false
		f.stage.Pause()
		f.stage.Resume()
	}
}

// Inbound continues the handshake, or decrypts.
func (f *filter) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if f.writing {
		f.late = true
		return 0, nil
	}
	f.wire = in[f.skip:]
	f.skip = 0
	if f.hand != nil && nextRecord(f.wire) > 0 {
		if err := f.advance(); err != nil {
			return 0, err
		}
		defer f.sendNow()
	}
	var err error
	if f.hand == nil {
		err = f.decrypt()
	}
	if h := f.hand; h != nil && h.running { // f.wire belongs to the worker
		return len(in) - len(h.input), nil // h.input is a copy; what the step reads of it is skipped later
	}
	n := len(in) - len(f.wire)
	f.wire = nil
	return n, err
}

// decrypt delivers the records' content, as far as there is room. One Deliver takes the
// content of several records.
func (f *filter) decrypt() error {
	b := f.shared.take()
	err := f.decryptInto(b)
	f.shared.buffers = b
	return err
}

func (f *filter) decryptInto(b *buffers) error {
	for {
		n, err := f.read(b)
		f.stage.Deliver(b.plain[:n])
		switch {
		case err == io.EOF:
			f.over = true
			f.stage.EOF()
		case err != nil:
			return fmt.Errorf("rtls: read: %w", err)
		}
		switch {
		case f.over:
			f.wire = nil // drop what follows close_notify (RFC 8446, 6.1)
			return nil
		case f.asked():
			return f.renegotiate()
		case f.stage.Room() == 0 || nextRecord(f.wire) == 0:
			return nil
		}
	}
}

// read decrypts as many records as there is room for, both in b.plain and at the Handler.
func (f *filter) read(b *buffers) (n int, err error) {
	lend(f.tls, &b.raw)
	room := min(len(b.plain)-maxPlain, f.stage.Room()-1)
	for !f.over && n <= room && nextRecord(f.wire) > 0 && !f.asked() && err == nil {
		var k int
		k, err = f.tls.Read(b.plain[n:])
		n += k
		if err == errNothing {
			err = nil
		}
	}
	endLend(f.tls)
	return n, err
}

// asked reports whether the next record may be a server's request for another handshake.
func (f *filter) asked() bool {
	return f.renegotiates && nextRecord(f.wire) > 0 && f.wire[0] == typeHandshake
}

// Outbound encrypts out.
func (f *filter) Outbound(_ *rondo.FilterPort, out []byte) error {
	f.writing = true
	_, err := f.tls.Write(out)
	f.written()
	if err != nil {
		return fmt.Errorf("rtls: write: %w", err)
	}
	return nil
}

// EOF passes the end on if close_notify has announced it. Any other end may be an
// attacker's (RFC 8446, 6.1).
func (f *filter) EOF(*rondo.FilterPort) error {
	switch {
	case f.over:
		return nil // Inbound has passed it on
	case f.hand != nil:
		return fmt.Errorf("rtls: handshake: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("rtls: the stream was cut off: %w", io.ErrUnexpectedEOF)
}

// CloseWrite sends close_notify.
func (f *filter) CloseWrite(*rondo.FilterPort) error {
	f.writing = true
	err := f.tls.CloseWrite()
	f.written()
	if err != nil {
		return fmt.Errorf("rtls: close_notify: %w", err)
	}
	return nil
}

// Closed abandons a handshake that is under way.
func (f *filter) Closed(*rondo.FilterPort, error) {
	f.countFailed(meter.Gone) // unless it is counted
	if h := f.hand; h != nil {
		h.abandon(f.options)
	}
	if f.shared != nil {
		f.shared.spare.leave()
	}
}

// sendNow flushes the output of a handshake's step. The turn may be long if other
// connections are in handshakes too; the peer would have nothing to compute meanwhile.
//
// A handshake may end without an answer to the peer's last message, as with TLS 1.3 and
// most clients. Then sendNow makes the system acknowledge that message at once. Otherwise
// the system would wait 40 ms for output that carries the acknowledgement, and a peer
// with Nagle's algorithm on would hold back its first request for that time.
func (f *filter) sendNow() {
	c := f.stage.Conn()
	c.Flush()
	if f.hand == nil && !f.answered {
		bridge.Of(c).Acknowledge()
	}
}

// advance continues the handshake with the input in wire.
func (f *filter) advance() error {
	h := f.hand
	f.answered = false
	if h.off {
		h.stepOff(f)
		return nil
	}
	h.step()
	return f.stepped()
}

// stepped acts on the result of a handshake's step.
func (f *filter) stepped() error {
	h := f.hand
	if !h.done {
		return nil
	}
	f.hand = nil
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.cancel != nil {
		h.cancel()
	}
	switch {
	case h.panicked != nil:
		panic(h.panicked) // aborts the connection, and is logged
	case h.renegotiated && (h.err == nil || h.err == errNothing):
	case h.err != nil:
		f.countFailed(failureOf(h.err))
		return fmt.Errorf("rtls: handshake: %w", h.err)
	}
	endLend(f.tls)
	if !f.done {
		f.done = true
		f.countDone()
		f.renegotiates = f.renegotiates && f.tls.ConnectionState().Version <= tls.VersionTLS12
	}
	f.stage.Ready()
	f.stage.Deliver(h.plain[:h.read])
	return nil
}

// expired aborts a connection whose handshake took too long. Nothing can be delivered
// yet, so it does not wait.
func (f *filter) expired() {
	f.countFailed(meter.Late)
	f.stage.Fail(ErrHandshakeTimeout)
	f.stage.Conn().Abort(ErrHandshakeTimeout)
}

// handshake runs the handshake of crypto/tls. It is called in the coroutine.
func (f *filter) handshake() error { return f.tls.HandshakeContext(f.hand.ctx) }

// renegotiate lets crypto/tls read a server's request for another handshake, which
// crypto/tls grants if it is so configured. Output waits until the handshake is over,
// since encrypting would block.
func (f *filter) renegotiate() error {
	f.stage.Unready()
	f.begin(func() error {
		h := f.hand
		var err error
		h.read, err = f.tls.Read(h.plain)
		return err
	})
	f.hand.renegotiated = true
	f.hand.plain = make([]byte, maxPlain)
	if err := f.advance(); err != nil || f.hand != nil {
		return err
	}
	return f.decrypt()
}
