package websocket

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/rondo-go/rondo/wsframe"
)

// streamBuffer is how much a Stream receives at once.
const streamBuffer = 4 << 10

// A streamIn is the input of a Stream. It belongs to the call that has the turn.
type streamIn struct {
	turn    turn
	reader  wsframe.Reader
	buf     []byte // received
	start   int    // of what is not read in buf
	text    wsframe.UTF8
	inflate *direction // nil: no compression
	message []byte     // what has arrived of a message
	size    int        // of the message so far
	rest    []byte     // for the next Read of the net.Conn view
	err     error      // stays
}

// A chunk is a piece of a message, or all of a compressed one.
type chunk struct {
	op          Opcode
	data        []byte // valid until the next call, unless own
	own         bool
	first, last bool
}

// Read returns the next message, which belongs to the caller. It answers Pings meanwhile.
// When ctx ends, Read returns its error, and the next Read goes on where this one has
// stopped. Any other error stays: a *CloseError after the peer's Close frame, which Read has
// answered, a *wsframe.ProtocolError, io.ErrUnexpectedEOF, or the net.Conn's.
func (s *Stream) Read(ctx context.Context) (Opcode, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	in := &s.in
	if err := in.turn.begin(ctx, s.alone); err != nil {
		return 0, nil, err
	}
	defer s.endRead()
	defer watch(ctx, s.nc.SetReadDeadline)()
	s.resend(ctx)
	for {
		c, err := s.chunk(ctx, true)
		switch {
		case err != nil:
			return 0, nil, err
		case c.first && c.last && c.own:
			return c.op, c.data, nil
		case c.first && c.last:
			return c.op, bytes.Clone(c.data), nil
		}
		in.message = append(in.message, c.data...)
		if c.last {
			message := in.message
			in.message = nil
			return c.op, message, nil
		}
	}
}

// chunk returns the next chunk. It answers control frames. whole: the message must not be
// longer than MaxMessage.
func (s *Stream) chunk(ctx context.Context, whole bool) (chunk, error) {
	in := &s.in
	for in.err == nil {
		p, n, _, err := in.reader.Read(in.buf[in.start:])
		in.start += n
		switch {
		case err != nil:
			return chunk{}, s.broken(err)
		case n == 0:
			if err := s.receive(ctx); err != nil {
				return chunk{}, err
			}
			continue
		case p.Opcode.IsControl():
			s.control(ctx, &p)
			continue
		}
		c, ok, err := s.piece(&p, whole)
		if err != nil {
			return chunk{}, s.broken(err)
		}
		if ok && !s.out.isClosing() { // else nobody waits for messages any more
			return c, nil
		}
	}
	return chunk{}, in.err
}

// receive receives more bytes.
func (s *Stream) receive(ctx context.Context) error {
	in := &s.in
	in.buf = in.buf[:copy(in.buf, in.buf[in.start:])] // at most a part of a header or of a control frame
	in.start = 0
	n, err := s.nc.Read(in.buf[len(in.buf):cap(in.buf)])
	in.buf = in.buf[:len(in.buf)+n]
	if n > 0 || err == nil {
		return nil
	}
	if err == io.EOF {
		in.err = io.ErrUnexpectedEOF
		s.CloseNow()
		return in.err
	}
	again, err := s.timedOut(ctx, err, s.nc.SetReadDeadline)
	switch {
	case again:
		return nil
	case err == ErrCloseTimeout:
		s.nc.Close()
	case isTimeout(err):
		return err
	}
	in.err = err
	return err
}

// piece makes a chunk of a piece of a data frame. ok is false if more of it is needed.
func (s *Stream) piece(p *wsframe.Piece, whole bool) (c chunk, ok bool, err error) {
	in := &s.in
	if p.First {
		in.size = 0
		in.text.Reset()
	}
	in.size += len(p.Payload)
	if p.Deflated {
		return s.deflated(p)
	}
	if whole && (in.size > s.set.maxMessage || in.size+in.reader.Left() > s.set.maxMessage) {
		return chunk{}, false, errMessageSize
	}
	if p.Opcode == Text && !(in.text.Valid(p.Payload) && (!p.Last || in.text.Complete())) {
		return chunk{}, false, errText
	}
	return chunk{op: p.Opcode, data: p.Payload, first: p.First, last: p.Last}, true, nil
}

// inflaters are decompressors that no goroutine uses.
var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// deflated keeps a piece of a compressed message, and returns the message when it is
// complete.
func (s *Stream) deflated(p *wsframe.Piece) (c chunk, ok bool, err error) {
	in := &s.in
	if most := maxDeflated(s.set.maxMessage); in.size > most || in.size+in.reader.Left() > most {
		return chunk{}, false, errMessageSize
	}
	in.message = append(in.message, p.Payload...)
	if !p.Last {
		return chunk{}, false, nil
	}
	z := inflaters.Get().(*inflater)
	defer inflaters.Put(z)
	out, err := z.inflate(in.message, in.inflate.window, s.set.maxMessage)
	in.message = nil
	if err != nil {
		return chunk{}, false, err
	}
	if p.Opcode == Text && !(in.text.Valid(out) && in.text.Complete()) {
		return chunk{}, false, errText
	}
	in.inflate.slide(out)
	return chunk{op: p.Opcode, data: out, own: true, first: true, last: true}, true, nil
}

// broken ends the connection for a violation of the protocol.
func (s *Stream) broken(err error) error {
	s.in.err = err
	if e, ok := err.(*wsframe.ProtocolError); ok {
		s.sayClose(wsframe.AppendClose(nil, e.Code, e.Text))
	}
	s.nc.Close()
	return err
}

// control handles a control frame.
func (s *Stream) control(ctx context.Context, p *wsframe.Piece) {
	switch p.Opcode {
	case wsframe.Ping:
		s.out.queuePong(p.Payload)
		s.sendQueued(ctx)
	case wsframe.Close:
		s.peerClosed(p.Payload)
	}
}

// peerClosed handles the peer's Close frame.
func (s *Stream) peerClosed(p []byte) {
	code, reason, err := wsframe.ReadClose(p)
	if err != nil {
		s.broken(err)
		return
	}
	s.in.err = &CloseError{code, string(reason)}
	s.sayClose(wsframe.AppendClose(nil, code, ""))
	if s.set.client { // the server closes first (RFC 6455, 7.1.1)
		s.in.buf = s.in.buf[:0]
		for err == nil {
			_, err = s.nc.Read(s.in.buf[:cap(s.in.buf)])
		}
	}
	s.nc.Close()
}
