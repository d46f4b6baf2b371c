package wsframe

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A Reader reads the frames that one peer sends. The zero Reader reads a client's frames,
// without an extension. Set the fields before the first Read.
//
// It returns data frames in the pieces in which they arrive, and control frames whole. It
// holds no payload, and no memory.
type Reader struct {
	// FromServer is set if the peer is a server. Its frames must have no mask; a client's
	// must have one.
	FromServer bool
	// Deflate permits RSV1 in the first frame of a message: permessage-deflate was
	// negotiated.
	Deflate bool

	// Of the message that has begun, and of its frame whose payload is being read. The order
	// of the fields leaves no holes: each idle connection has a Reader.

	opcode Opcode // Text or Binary; Continuation: there is no message
	flags  readerFlags
	key    uint32 // for the next byte

	// MaxFrame is the largest length of a data frame. 0: no limit.
	MaxFrame int64

	left int64 // bytes of the frame that have not arrived
}

// readerFlags are what the first frame's, or the present frame's, header says.
type readerFlags uint8

const (
	deflated  readerFlags = 1 << iota // the message is compressed
	lastFrame                         // of the message
)

func flagsOf(h *Header) (f readerFlags) {
	if h.RSV != 0 {
		f |= deflated
	}
	if h.Fin {
		f |= lastFrame
	}
	return f
}

// A Piece is a control frame, or a run of bytes of a data frame.
type Piece struct {
	// Opcode is Text or Binary, also in continuation frames, or that of a control frame.
	Opcode Opcode
	// Deflated is set in all pieces of a compressed message.
	Deflated bool
	// First is set in the first piece of a message. Last is set in the last one. Both are
	// set in control frames.
	First, Last bool
	// Payload is unmasked. It aliases the input. It may be empty: a frame may be, and its
	// header may arrive before its payload.
	Payload []byte
}

// InMessage reports whether a message has begun and has not ended.
func (r *Reader) InMessage() bool { return r.opcode != Continuation }

// Read reads the next piece from in, and returns how many bytes it took. in holds what
// has arrived behind the bytes that earlier calls took. When n is 0 and err is nil, call
// Read again with at least want bytes; want > len(in).
//
// Read unmasks the payload in place: it changes in[:n] and no other bytes.
func (r *Reader) Read(in []byte) (p Piece, n, want int, err error) {
	if r.left > 0 {
		if len(in) == 0 {
			return p, 0, 1, nil
		}
		p, n = r.payload(in)
		return p, n, 0, nil
	}
	if len(in) == 0 {
		return p, 0, 2, nil
	}
	if err := r.check(in); err != nil {
		return p, 0, 0, err
	}
	h, n, want, err := ReadHeader(in)
	if n == 0 {
		return p, 0, want, err
	}
	if h.Opcode.IsControl() {
		return r.control(in, &h, n)
	}
	if r.MaxFrame > 0 && h.Length > r.MaxFrame {
		return p, 0, 0, errFrameSize
	}
	first := h.Opcode != Continuation
	flags := flagsOf(&h)
	if first {
		r.opcode = h.Opcode
	} else {
		flags |= r.flags & deflated
	}
	r.left, r.flags, r.key = h.Length, flags, binary.LittleEndian.Uint32(h.Key[:])
	p, took := r.payload(in[n:])
	p.First = first
	return p, n + took, 0, nil
}

// check checks the first two bytes of a header, or the first one if the second has not
// arrived, as far as the state of the stream decides about them. Errors are found in the
// order of the bytes: the same ones, whatever has arrived.
func (r *Reader) check(in []byte) error {
	first := in[0]
	if err := checkFirst(first); err != nil {
		return err
	}
	o := Opcode(first & 0xf)
	data := !o.IsControl()
	switch rsv := first >> 4 & 7; {
	case rsv != 0 && !(rsv == RSV1 && r.Deflate && data && o != Continuation):
		return errRSV
	case data && o == Continuation && !r.InMessage():
		return errNoMessage
	case data && o != Continuation && r.InMessage():
		return errInMessage
	case len(in) < 2 || in[1]&0x80 != 0 != r.FromServer:
		return nil
	case r.FromServer:
		return errMasked
	}
	return errUnmasked
}

// payload returns as much of the frame's payload as in has, and its length.
func (r *Reader) payload(in []byte) (p Piece, n int) {
	n = len(in)
	if int64(n) > r.left {
		n = int(r.left)
	}
	p = Piece{Opcode: r.opcode, Deflated: r.flags&deflated != 0, Payload: in[:n:n]}
	if r.key != 0 {
		mask(p.Payload, r.key)
		r.key = bits.RotateLeft32(r.key, -8*(n&3))
	}
	r.left -= int64(n)
	if r.left == 0 && r.flags&lastFrame != 0 {
		p.Last = true
		r.opcode, r.flags = Continuation, 0
	}
	return p, n
}

// control returns the control frame whose header h has n bytes.
func (r *Reader) control(in []byte, h *Header, n int) (Piece, int, int, error) {
	end := n + int(h.Length)
	if len(in) < end {
		return Piece{}, 0, end, nil
	}
	payload := in[n:end:end]
	if h.Masked {
		Mask(payload, h.Key, 0)
	}
	return Piece{Opcode: h.Opcode, First: true, Last: true, Payload: payload}, end, 0, nil
}

// Left returns how many bytes of the present data frame have not been read: a hint for the
// size of a buffer. The peer has announced them, and may never send them.
func (r *Reader) Left() int { return int(min(r.left, math.MaxInt)) }
