package rtls

import (
	"crypto/tls"
	"fmt"
	"io"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// filter is the rondo.Filter of a connection.
type filter struct {
	options *Options
	tls     *tls.Conn
	stage   *rondo.FilterPort
	hand    *handshake // nil: none is under way
	shared  *shared    // of the loop's connections

	wire   []byte // given to Inbound, and not read yet
	record int32  // bytes of wire that belong to the record being read
	skip   int32  // bytes that were read, and not reported to be

	client       bool
	renegotiates bool // if the server wants to; TLS 1.2 and before
	done         bool // the first handshake is
	over         bool // close_notify came
	writing      bool // crypto/tls has begun to write: it cannot read now
	late         bool // input came meanwhile
	answered     bool // something was sent since the handshake's last step began
}

// shared is what a loop's connections share: where they receive and decrypt, and what
// runs their handshakes.
type shared struct {
	buffers *buffers // nil: taken
	spare   spare
	host    bridge.Loop
}

// buffers are where a connection receives and decrypts.
type buffers struct {
	raw   [rawSize]byte
	plain [4 * maxPlain]byte
}

var shareds = rondo.LoopLocal[*shared]{New: func(l *rondo.Loop) *shared { return &shared{host: bridge.LoopOf(l)} }}

// take takes the buffers. What a connection delivers may lead to input of another one,
// by a filter that answers what is written: that finds none, and gets others.
func (s *shared) take() *buffers {
	b := s.buffers
	if s.buffers = nil; b == nil {
		b = new(buffers)
	}
	return b
}

// maxPlain is the most that one record decrypts to (RFC 8446, 5.1).
const maxPlain = 16 << 10

// Start begins the handshake: a client says hello.
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

// written ends writing. Input that came meanwhile, from a filter below that answers what
// is written, is offered again.
func (f *filter) written() {
	f.writing = false
	if f.late {
		f.late = false
		f.stage.Pause()
		f.stage.Resume()
	}
}

// Inbound goes on with the handshake, or decrypts.
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
	if h := f.hand; h != nil && h.running { // f.wire is the worker's
		return len(in) - len(h.input), nil // which was copied, and will be skipped
	}
	n := len(in) - len(f.wire)
	f.wire = nil
	return n, err
}

// decrypt delivers what the records hold, as far as there is room. Several records'
// content is delivered at once.
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
			f.wire = nil // nothing counts after close_notify (RFC 8446, 6.1)
			return nil
		case f.asked():
			return f.renegotiate()
		case f.stage.Room() == 0 || nextRecord(f.wire) == 0:
			return nil
		}
	}
}

// read decrypts as many records as there is room for, in b.plain and at the handler.
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

// asked reports whether the server may want another handshake.
func (f *filter) asked() bool {
	return f.renegotiates && nextRecord(f.wire) > 0 && f.wire[0] == typeHandshake
}

// Outbound encrypts.
func (f *filter) Outbound(_ *rondo.FilterPort, out []byte) error {
	f.writing = true
	_, err := f.tls.Write(out)
	f.written()
	if err != nil {
		return fmt.Errorf("rtls: write: %w", err)
	}
	return nil
}

// EOF passes an end on that was announced. Another may be an attacker's
// (RFC 8446, 6.1).
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

// Closed gives up a handshake that is under way.
func (f *filter) Closed(*rondo.FilterPort, error) {
	if h := f.hand; h != nil {
		h.abandon(f.options)
	}
	if f.shared != nil {
		f.shared.spare.leave()
	}
}

// sendNow sends what a step of a handshake has written. The turn may be long if
// others are at their handshakes too, and meanwhile the peer would have nothing to
// compute.
//
// If the handshake has ended and nothing was sent in answer to the peer's last message,
// sendNow has the system acknowledge that message at once: so it is with TLS 1.3 and most
// clients. The system would wait 40 ms for output that carries the acknowledgement, and a
// peer with Nagle's algorithm on would hold its first request back as long.
func (f *filter) sendNow() {
	c := f.stage.Conn()
	c.Flush()
	if f.hand == nil && !f.answered {
		bridge.Of(c).Acknowledge()
	}
}

// advance goes on with the handshake, with what there is in wire.
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

// stepped looks at how far a step of the handshake got.
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
		panic(h.panicked) // costs the connection, and is logged
	case h.renegotiated && (h.err == nil || h.err == errNothing):
	case h.err != nil:
		return fmt.Errorf("rtls: handshake: %w", h.err)
	}
	endLend(f.tls)
	if !f.done {
		f.done = true
		f.renegotiates = f.renegotiates && f.tls.ConnectionState().Version <= tls.VersionTLS12
	}
	f.stage.Ready()
	f.stage.Deliver(h.plain[:h.read])
	return nil
}

// expired ends a connection whose handshake was not done in time. There is nothing
// to be delivered, so nothing is waited for.
func (f *filter) expired() {
	f.stage.Fail(ErrHandshakeTimeout)
	f.stage.Conn().Abort(ErrHandshakeTimeout)
}

// handshake is crypto/tls's. It runs in the coroutine.
func (f *filter) handshake() error { return f.tls.HandshakeContext(f.hand.ctx) }

// renegotiate lets crypto/tls read a server's wish for another handshake, which it
// does if it is so configured. Until it is over output waits: to encrypt it would
// block.
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
