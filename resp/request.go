package resp

import (
	"bytes"
	"math"
)

// Redis's own limits, which a zero [Limits] stands for.
const (
	DefaultBulk   = 512 << 20     // bytes in one argument: proto-max-bulk-len
	DefaultArgs   = math.MaxInt32 // arguments in one request
	DefaultInline = 64 << 10      // bytes in an inline request, and in a line that announces a length

	unauthenticatedArgs = 10
	unauthenticatedBulk = 16 << 10
)

// Limits bound what a request may announce. A field that is zero stands for
// Redis 7.0's default.
//
// They bound single announcements, not the sum: a request of many arguments
// may still be larger than a server wants to hold. Such a server looks at want
// and at how much it holds, as Redis does with client-query-buffer-limit.
type Limits struct {
	Bulk   int // bytes in one argument
	Args   int // arguments in one request
	Inline int // bytes in an inline request, and in a line that announces a length

	// Unauthenticated holds the client to 10 arguments of 16 KiB. Set it while
	// a password is required that the client has not given.
	Unauthenticated bool
}

func (l Limits) withDefaults() Limits {
	if l.Bulk == 0 {
		l.Bulk = DefaultBulk
	}
	l.Bulk = min(l.Bulk, math.MaxInt/2) // leaves room to add offsets to it
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

// errNoDollar is made as text, so that a byte above 0x7f stays that byte.
func errNoDollar(got byte) error {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return &ProtocolError{"expected '$', got '" + string([]byte{got}) + "'"}
}

// ReadRequest reads the request at the start of in: an array of bulk strings,
// or an inline request, a line of words that may be quoted as in redis-cli.
//
// The arguments are appended to args[:0]. They alias in, but for an inline one
// that holds an escape, which has memory of its own. A request without
// arguments (a blank line, *0, *-1) has n > 0 and an empty out; it gets no
// reply.
//
// When n is 0 and err is nil, more bytes are needed: neither a request nor an
// error will be known before in holds want bytes; want > len(in). An argument
// that was announced counts whole, so that a caller who waits for want bytes
// does no work for the pieces in between. One who may get requests of thousands
// of arguments in pieces should use a [PartialRequest].
//
// err is a [*ProtocolError].
func ReadRequest(in []byte, args [][]byte, lim Limits) (out [][]byte, n, want int, err error) {
	var p PartialRequest
	return p.restart(in, args, lim.withDefaults())
}

// A PartialRequest remembers how much of an incomplete request was already
// checked, so that a request in many pieces costs two passes over its arguments
// in all instead of one for each piece. The zero value is ready for the start
// of a request, and so is one whose Read returned a request. It holds no
// memory.
type PartialRequest struct {
	at   int // offset of the first argument not yet seen whole
	left int // arguments from there on; 0: at the start of a request
}

// Read is [ReadRequest], continuing where the last call stopped for want of
// bytes. in must begin where it began then, at the start of the request, and
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

// restart reads a request from its first byte, and leaves in p how far it came.
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

// readArgumentCount reads the "*<count>\r\n" at the start of in. next is 0
// where there is none yet.
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
// left arguments. The bytes are in[start:end]; end is 0 where they are not all
// there, with the line break behind them.
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
	// Another argument's line, right or wrong, takes two bytes at the least.
	need := int64(start) + v + 2 + 2*int64(min(left-1, 1))
	return 0, 0, int(min(need, math.MaxInt)), nil
}

// lengthLine returns the offset of the '\r' that ends the line at the start of
// b, or -1. Like Redis it looks no further than limit bytes and stops at a zero
// byte, which keeps binary rubbish from being taken for a length; and it leaves
// the byte behind the '\r' unread.
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
