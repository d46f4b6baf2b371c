package websocket

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/rondo-go/rondo/wsframe"
)

// pieceSize is how much of a message a Stream writes at once.
const pieceSize = 16 << 10

// A streamOut is the output of a Stream. Its first part belongs to the call that has the
// turn. Control frames are queued: a Read that must answer one does not wait for a Write,
// and the Write sends it.
type streamOut struct {
	turn turn
	rest []byte // of a frame whose Write has ended too early: goes first
	bits int    // of the compressor's window; 0: no compression
	err  error  // stays

	mu      sync.Mutex // never held while something waits
	pong    []byte     // a frame's payload; nil: none
	close   []byte     // a frame's payload; nil: none
	stuck   bool       // a Read could not send all that it should
	closing bool       // nothing but close may follow
}

func (o *streamOut) queuePong(payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closing {
		o.pong = append(make([]byte, 0, len(payload)), payload...) // an older one need not be answered (RFC 6455, 5.5.3)
	}
}

// queueClose queues the last frame; nil: none is sent. It returns false if that was done
// before.
func (o *streamOut) queueClose(payload []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return false
	}
	o.closing, o.close, o.pong = true, payload, nil
	return true
}

func (o *streamOut) isClosing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}

// isQueued reports whether a control frame waits.
func (o *streamOut) isQueued() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pong != nil || o.close != nil
}

// next removes a control frame from the queue.
func (o *streamOut) next() (op Opcode, payload []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.pong != nil:
		op, payload, o.pong = wsframe.Pong, o.pong, nil
	case o.close != nil:
		op, payload, o.close = wsframe.Close, o.close, nil
	default:
		return 0, nil, false
	}
	return op, payload, true
}

// Write sends a message. The caller may reuse p afterwards. A text must be UTF-8; Write does
// not check that.
//
// When ctx ends, Write returns its error. The message may be under way then: the next Write
// or Close first sends the rest of it. The error is ErrClosed once a Close frame was sent or
// received.
func (s *Stream) Write(ctx context.Context, op Opcode, p []byte) error {
	if op != Text && op != Binary {
		return fmt.Errorf("websocket: Stream.Write: the opcode is %v: want Text or Binary", op)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.out.turn.begin(ctx, s.alone); err != nil {
		return err
	}
	defer s.endTurn(ctx)
	defer watch(ctx, s.nc.SetWriteDeadline)()
	_, err := s.message(ctx, op, p)
	return err
}

// message writes a message. begun reports whether bytes of it were sent, or wait in rest. The
// caller has the turn.
func (s *Stream) message(ctx context.Context, op Opcode, p []byte) (begun bool, err error) {
	if err := s.flushQueued(ctx); err != nil {
		return false, err
	}
	if s.out.isClosing() {
		return false, ErrClosed
	}
	h := wsframe.Header{Fin: true, Opcode: op}
	if s.out.bits == 0 || len(p) < s.set.compression.Threshold {
		return s.frame(ctx, h, p)
	}
	z, _ := freeDeflaters[s.out.bits].Get().(*deflater)
	if z == nil {
		z = newDeflater(s.set.compression.Level, s.out.bits)
	}
	defer freeDeflaters[s.out.bits].Put(z)
	defer z.trim()
	if out := z.deflate(p, nil); len(out) < len(p) {
		h.RSV, p = wsframe.RSV1, out
	}
	return s.frame(ctx, h, p)
}

// frame writes a frame. If the time ends within it, the rest of it is kept.
func (s *Stream) frame(ctx context.Context, h wsframe.Header, p []byte) (begun bool, err error) {
	buf := frames.Get().(*[]byte)
	defer frames.Put(buf)
	h.Length = int64(len(p))
	if s.set.client {
		h.Masked, h.Key = true, newKey()
	}
	b := wsframe.AppendHeader((*buf)[:0], h)
	for at := 0; ; {
		k := min(len(p)-at, pieceSize)
		b = appendMasked(b, &h, p, at, k)
		at += k
		n, err := s.write(ctx, b)
		begun = begun || n > 0
		if err != nil {
			if begun && isTimeout(err) {
				s.out.rest = appendMasked(append([]byte(nil), b[n:]...), &h, p, at, len(p)-at)
			}
			return begun, err
		}
		if at == len(p) {
			return true, nil
		}
		b = b[:0]
	}
}

// appendMasked appends n bytes of a frame's payload p, from at on.
func appendMasked(b []byte, h *wsframe.Header, p []byte, at, n int) []byte {
	start := len(b)
	b = append(b, p[at:at+n]...)
	if h.Masked {
		wsframe.Mask(b[start:], h.Key, at)
	}
	return b
}

// write writes bytes under ctx. isTimeout tells errors after which the rest may follow.
func (s *Stream) write(ctx context.Context, b []byte) (n int, err error) {
	if s.out.err != nil {
		return 0, s.out.err
	}
	for {
		k, err := s.nc.Write(b[n:])
		n += k
		if err == nil {
			return n, nil
		}
		again, err := s.timedOut(ctx, err, s.nc.SetWriteDeadline)
		if again {
			continue
		}
		if !isTimeout(err) {
			s.out.err = err
		}
		return n, err
	}
}

// isTimeout reports whether a call may be repeated after err: a deadline or a Context has
// ended it.
func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// flushQueued writes what goes first: the rest of a frame, and control frames. The caller has
// the turn.
func (s *Stream) flushQueued(ctx context.Context) error {
	o := &s.out
	for {
		if len(o.rest) > 0 {
			n, err := s.write(ctx, o.rest)
			o.rest = o.rest[n:]
			if err != nil {
				return err
			}
			o.rest = nil
		}
		op, payload, ok := o.next()
		if !ok {
			return nil
		}
		if begun, err := s.frame(ctx, wsframe.Header{Fin: true, Opcode: op}, payload); err != nil {
			if !begun {
				o.putBack(op, payload)
			}
			return err
		}
	}
}

// putBack queues a control frame again that could not be sent.
func (o *streamOut) putBack(op Opcode, payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case op == wsframe.Close:
		o.close = payload
	case o.pong == nil && !o.closing:
		o.pong = payload
	}
}

// sendQueued sends queued control frames in a Read under ctx, or lets the Write that has the turn
// do so. When ctx ends, the rest goes in front of the next frame: the peer does not read.
func (s *Stream) sendQueued(ctx context.Context) {
	if !s.out.turn.try() {
		return
	}
	if s.timed.Load() {
		s.limits.sending(s.nc, true)
		defer s.limits.sending(s.nc, false)
	}
	s.out.setStuck(s.flushUnder(ctx) != nil)
	s.endTurn(ctx)
}

func (o *streamOut) setStuck(stuck bool) {
	o.mu.Lock()
	o.stuck = stuck
	o.mu.Unlock()
}

// resend goes on with what an earlier Read could not send.
func (s *Stream) resend(ctx context.Context) {
	s.out.mu.Lock()
	stuck := s.out.stuck
	s.out.mu.Unlock()
	if stuck {
		s.sendQueued(ctx)
	}
}

// flushUnder is flushQueued for frames that no caller waits for.
func (s *Stream) flushUnder(ctx context.Context) error {
	switch {
	case s.out.isClosing():
		ctx = byDeadline // CloseTimeout bounds it
	case ctx.Err() != nil:
		return ctx.Err()
	}
	defer watch(ctx, s.nc.SetWriteDeadline)()
	return s.flushQueued(ctx)
}

// endTurn ends the turn of a call under ctx. A control frame that was queued meanwhile is sent.
func (s *Stream) endTurn(ctx context.Context) {
	for {
		s.out.turn.end()
		if !s.out.isQueued() || !s.out.turn.try() {
			return
		}
		if s.flushUnder(ctx) != nil {
			s.out.turn.end()
			return
		}
	}
}
