package wsframe

import (
	"encoding/binary"
	"fmt"
	"math"
)

// An Opcode is the type of a frame.
type Opcode byte

// The opcodes of RFC 6455. Close, Ping and Pong are control frames.
const (
	Continuation Opcode = 0x0
	Text         Opcode = 0x1
	Binary       Opcode = 0x2
	Close        Opcode = 0x8
	Ping         Opcode = 0x9
	Pong         Opcode = 0xa
)

// IsControl reports whether o is the opcode of a control frame, known or reserved.
func (o Opcode) IsControl() bool { return o&0x8 != 0 }

// IsKnown reports whether RFC 6455 defines o.
func (o Opcode) IsKnown() bool { return o <= Binary || o >= Close && o <= Pong }

// String returns the opcode's name.
func (o Opcode) String() string {
	switch o {
	case Continuation:
		return "continuation"
	case Text:
		return "text"
	case Binary:
		return "binary"
	case Close:
		return "close"
	case Ping:
		return "ping"
	case Pong:
		return "pong"
	}
	return fmt.Sprintf("opcode %#x", byte(o))
}

const (
	// MaxHeader is the length of the longest header.
	MaxHeader = 14
	// MaxControl is the length of the longest payload of a control frame.
	MaxControl = 125
)

// RSV1 is the bit of Header.RSV that marks a compressed message (RFC 7692).
const RSV1 = 4

// A Header is the header of a frame.
type Header struct {
	Fin    bool // the frame is the last one of its message
	RSV    byte // the three reserved bits, RSV1 in bit 2
	Opcode Opcode
	Masked bool
	Key    [4]byte // masks the payload, if Masked
	Length int64   // of the payload
}

// ReadHeader reads the header at the start of in. When n is 0 and err is nil, it is
// incomplete: call again with at least want bytes.
//
// It refuses what is wrong in any stream: reserved opcodes, fragmented control frames and
// those with more than MaxControl bytes, and lengths that are not in their shortest form
// or over 2^63-1. It does not judge RSV, the mask and the order of frames; a [Reader] does.
func ReadHeader(in []byte) (h Header, n, want int, err error) {
	if len(in) == 0 {
		return h, 0, 2, nil
	}
	if err := checkFirst(in[0]); err != nil {
		return h, 0, 0, err
	}
	if len(in) < 2 {
		return h, 0, 2, nil
	}
	h = Header{Fin: in[0]&0x80 != 0, RSV: in[0] >> 4 & 7, Opcode: Opcode(in[0] & 0xf), Masked: in[1]&0x80 != 0}
	n = 2
	switch short := in[1] & 0x7f; {
	case short <= MaxControl:
		h.Length = int64(short)
	case h.Opcode.IsControl():
		return Header{}, 0, 0, errControlLength
	case short == 126:
		if n = 4; len(in) < n {
			return Header{}, 0, n, nil
		}
		if h.Length = int64(binary.BigEndian.Uint16(in[2:])); h.Length <= MaxControl {
			return Header{}, 0, 0, errLengthForm
		}
	default:
		if n = 10; len(in) < n {
			return Header{}, 0, n, nil
		}
		switch length := binary.BigEndian.Uint64(in[2:]); {
		case length > math.MaxInt64:
			return Header{}, 0, 0, errLengthSign
		case length <= math.MaxUint16:
			return Header{}, 0, 0, errLengthForm
		default:
			h.Length = int64(length)
		}
	}
	if h.Masked {
		if n += 4; len(in) < n {
			return Header{}, 0, n, nil
		}
		h.Key = [4]byte(in[n-4:])
	}
	return h, n, 0, nil
}

// checkFirst checks the first byte of a header.
func checkFirst(b byte) error {
	switch o := Opcode(b & 0xf); {
	case !o.IsKnown():
		return errOpcode
	case o.IsControl() && b&0x80 == 0:
		return errControlFragment
	}
	return nil
}

// AppendHeader appends a header. It panics if h.Length is negative.
func AppendHeader(b []byte, h Header) []byte {
	first := h.RSV&7<<4 | byte(h.Opcode)&0xf
	if h.Fin {
		first |= 0x80
	}
	var masked byte
	if h.Masked {
		masked = 0x80
	}
	switch {
	case h.Length < 0:
		panic(fmt.Sprintf("wsframe: AppendHeader: the length is %d", h.Length))
	case h.Length <= MaxControl:
		b = append(b, first, masked|byte(h.Length))
	case h.Length <= math.MaxUint16:
		b = append(b, first, masked|126, byte(h.Length>>8), byte(h.Length))
	default:
		b = append(b, first, masked|127)
		b = binary.BigEndian.AppendUint64(b, uint64(h.Length))
	}
	if h.Masked {
		b = append(b, h.Key[:]...)
	}
	return b
}

// AppendFrame appends a whole message or a control frame as a server sends it: one frame
// without a mask.
func AppendFrame(b []byte, o Opcode, payload []byte) []byte {
	b = AppendHeader(b, Header{Fin: true, Opcode: o, Length: int64(len(payload))})
	return append(b, payload...)
}

// AppendMasked appends a whole message or a control frame as a client sends it: one frame,
// masked with key. Each frame needs a key that nobody can foresee (RFC 6455, 10.3).
func AppendMasked(b []byte, o Opcode, payload []byte, key [4]byte) []byte {
	b = AppendHeader(b, Header{Fin: true, Opcode: o, Masked: true, Key: key, Length: int64(len(payload))})
	start := len(b)
	b = append(b, payload...)
	Mask(b[start:], key, 0)
	return b
}
