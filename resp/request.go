package resp

import (
	"bytes"
	"math"
)

// Redis's limits, and the defaults of [Limits].
const (
	DefaultBulk   = 512 << 20     // bytes in one argument: proto-max-bulk-len
	DefaultArgs   = math.MaxInt32 // arguments in one request
	DefaultInline = 64 << 10      // bytes in an inline request, and in a line that announces a length

	unauthenticatedArgs = 10
	unauthenticatedBulk = 16 << 10
)

// Limits bound what a request may announce. A field of 0 means Redis 7.0's
// default.
//
// Limits apply to each announcement, not to the sum: a request of many
// arguments may still be larger than a server wants to hold. Such a server adds
// want to what it already holds, as Redis does for client-query-buffer-limit.
type Limits struct {
	Bulk   int // bytes in one argument
	Args   int // arguments in one request
	Inline int // bytes in an inline request, and in a line that announces a length

	// Unauthenticated limits the client to 10 arguments of 16 KiB. Set it while
	// the client must still give a password.
	Unauthenticated bool
}

func (l Limits) withDefaults() Limits {
	if l.Bulk == 0 {
		l.Bulk = DefaultBulk
	}
	l.Bulk = min(l.Bulk, math.MaxInt/2) // leaves room to add offsets
	if l.Args == 0 {
		l.Args = DefaultArgs
	}
	if l.Inline == 0 {
		l.Inline = DefaultInline
	}
	return l
}

// A ProtocolError says why bytes are not RESP. The stream has lost its framing:
// nothing after the error can be read.
type ProtocolError struct{ text string }

// Error returns the text that Redis puts after "-ERR Protocol error: ". It has
// no line breaks.
func (e *ProtocolError) Error() string { return e.text }

var (
	errMultibulkLine   = &ProtocolError{"too big mbulk count string"}
	errMultibulkLength = &ProtocolError{"invalid multibulk length"}
	errMultibulkAuth   = &ProtocolError{"unauthenticated multibulk length"}
	errBulkLine        = &ProtocolError{"too big bulk count string"}
	errBulkLength      = &ProtocolError{"invalid bulk length"}
	errBulkAuth        = &ProtocolError{"unauthenticated bulk length"}
	errInlineSize      = &ProtocolError{"too big inline request"}
	errInlineQuotes    = &ProtocolError{"unbalanced quotes in request"}
)

// errNoDollar builds the text from raw bytes, so that a byte above 0x7f stays
// as it is.
func errNoDollar(got byte) error {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return &ProtocolError{"expected '$', got '" + string([]byte{got}) + "'"}
}

// ReadRequest reads the request at the start of in: an array of bulk strings,
// or an inline request, a line of words that may be quoted as in redis-cli.
//
// It appends the arguments to args[:0]. They alias in, except for an inline
// argument with an escape, which has its own memory. A request without
// arguments (a blank line, *0, *-1) has n > 0 and an empty out; it gets no
// reply.
//
// When n is 0 and err is nil, the request is incomplete. No call returns a
// request or an error before in holds want bytes; want > len(in). want includes
// the whole of an announced argument, so a caller that waits for want bytes
// does no work for the pieces in between. For requests with thousands of
// arguments that arrive in pieces, use a [PartialRequest].
//
// err is a [*ProtocolError].
func ReadRequest(in []byte, args [][]byte, lim Limits) (out [][]byte, n, want int, err error) {
	var p PartialRequest
	return p.restart(in, args, lim.withDefaults())
}

// A PartialRequest reads requests as [ReadRequest] does, and remembers how much
// of an incomplete one it has checked. A request in many pieces then costs two
// passes over its arguments in all, instead of one for each piece. The zero
// value is ready for the start of a request, and so is a PartialRequest whose
// Read returned a request. It holds no memory.
type PartialRequest struct {
	at   int // offset of the first incomplete argument
	left int // arguments from there on; 0: at the start of a request
}

// Read is [ReadRequest], but continues where the last call stopped because the
// request was incomplete. in must again begin with the start of the request and
// hold at least the same bytes; it may have moved. lim must not have changed.
func (p *PartialRequest) Read(in []byte, args [][]byte, lim Limits) (out [][]byte, n, want int, err error) {
	lim = lim.withDefaults()
	for p.left > 0 {
		_, end, want, err := readArgument(in, p.at, p.left, lim)
		if end == 0 {
			return args[:0], 0, want, err
		}
		p.at = end + 2
		p.left--
	}
	return p.restart(in, args, lim)
}

// restart reads a request from its first byte, and stores its progress in p.
func (p *PartialRequest) restart(in []byte, args [][]byte, lim Limits) (out [][]byte, n, want int, err error) {
	out = args[:0]
	if len(in) == 0 {
		return out, 0, 1, nil
	}
	if in[0] != '*' {
		return readInline(in, out, lim)
	}
	left, at, want, err := readArgumentCount(in, lim)
	if at == 0 {
		return out, 0, want, err
	}
	for ; left > 0; left-- {
		start, end, want, err := readArgument(in, at, left, lim)
		if end == 0 {
			p.at, p.left = at, left
			return out[:0], 0, want, err
		}
		out = append(out, in[start:end:end])
		at = end + 2
	}
	return out, at, 0, nil
}

// readArgumentCount reads the "*<count>\r\n" at the start of in. next is 0 if
// that is incomplete or wrong.
func readArgumentCount(in []byte, lim Limits) (count, next, want int, err error) {
	end := lengthLine(in, lim.Inline)
	if end < 0 {
		if len(in) > lim.Inline {
			return 0, 0, 0, errMultibulkLine
		}
		return 0, 0, len(in) + 1, nil
	}
	if end+2 > len(in) {
		return 0, 0, end + 2, nil
	}
	v, ok := ParseInt(in[1:end])
	if !ok || v > int64(lim.Args) {
		return 0, 0, 0, errMultibulkLength
	}
	if v > unauthenticatedArgs && lim.Unauthenticated {
		return 0, 0, 0, errMultibulkAuth
	}
	return int(max(v, 0)), end + 2, 0, nil
}

// readArgument reads the "$<length>\r\n<bytes>\r\n" at in[at:], the first of
// left arguments. The bytes are in[start:end]. end is 0 if they, or the line
// break after them, are incomplete or wrong.
func readArgument(in []byte, at, left int, lim Limits) (start, end, want int, err error) {
	line := in[at:]
	cr := lengthLine(line, lim.Inline)
	if cr < 0 {
		if len(line) > lim.Inline {
			return 0, 0, 0, errBulkLine
		}
		return 0, 0, len(in) + 1, nil
	}
	if cr+2 > len(line) {
		return 0, 0, at + cr + 2, nil
	}
	if line[0] != '$' {
		return 0, 0, 0, errNoDollar(line[0])
	}
	v, ok := ParseInt(line[1:cr])
	if !ok || v < 0 || v > int64(lim.Bulk) {
		return 0, 0, 0, errBulkLength
	}
	if v > unauthenticatedBulk && lim.Unauthenticated {
		return 0, 0, 0, errBulkAuth
	}
	start = at + cr + 2
	if int64(len(in)-start) >= v+2 {
		return start, start + int(v), 0, nil
	}
	// The line of another argument, valid or not, takes at least two bytes.
	need := int64(start) + v + 2 + 2*int64(min(left-1, 1))
	return 0, 0, int(min(need, math.MaxInt)), nil
}

// lengthLine returns the offset of the '\r' that ends the line at the start of
// b, or -1. Like Redis it looks no further than limit bytes, and stops at a
// zero byte, which keeps binary garbage from being taken for a length. It does
// not look at the byte after the '\r'.
func lengthLine(b []byte, limit int) int {
	if len(b) > limit {
		b = b[:limit+1]
	}
	for i, c := range b[:min(len(b), maxDigits+2)] { // as far as a valid line goes
		if c == '\r' {
			return i
		}
		if c == 0 {
			return -1
		}
	}
	end := bytes.IndexByte(b, '\r')
	if end >= 0 && bytes.IndexByte(b[:end], 0) >= 0 {
		return -1
	}
	return end
}
