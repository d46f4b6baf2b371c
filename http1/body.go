package http1

import (
	"io"
	"math"
)

// What net/http allows in a chunked body, or less.
const (
	maxChunkDigits = 16      // in a chunk's size
	maxChunkLine   = 1 << 10 // bytes in a chunk's size line, with its extensions
	chunkAllowance = 16      // bytes of framing for each chunk, and two for each byte of data
	maxChunkWaste  = 16 << 10
)

// A Body decodes the body of a message: by its length, chunked, or until the end of the
// stream. The zero value is an empty body. It holds no memory of the input, except
// for Trailer.
type Body struct {
	// Trailer is the trailer section of a chunked body, when Done reports true. It aliases
	// the input of the last call of Next. Fields that would change the framing are refused;
	// RFC 9110, section 6.5 says which others to ignore.
	Trailer []Field

	left   int64 // bytes until the end of the body, or of the chunk
	room   int64 // bytes that chunks may still announce, or the stream may still have
	waste  int64 // bytes of framing beyond the allowance
	state  bodyState
	digits uint8  // in the size so far
	line   uint16 // bytes of the size line so far
	fields int32  // in the trailer section: Rules.Fields and Rules.Trailer
	size   int32
	part   Partial // of the trailer section
	err    *Error  // that the next call returns
}

// A bodyState says what comes next.
//
//	bodyLength ── 0 left ──> bodyDone        bodyStream: until the stream ends
//
//	chunkSize ── ; ──> extension states ─┐
//	   ▲  └───────── CR ─────────────────┴─> chunkLF ── size 0 ──> trailer ──> bodyDone
//	   │                                        └── chunkData ──> chunkCR ──> chunkEnd ─┐
//	   └────────────────────────────────────────────────────────────────────────────────┘
type bodyState uint8

const (
	bodyDone bodyState = iota
	bodyLength
	bodyStream
	chunkSize
	chunkLF   // behind the CR of a size line
	chunkData // data of a chunk
	chunkCR   // the CR behind the data
	chunkEnd  // the LF behind the data
	trailer
	extension       // behind a semicolon
	extensionName   // in a name
	extensionNamed  // in white space behind a name
	extensionEquals // behind an equals sign
	extensionToken  // in a value
	extensionQuoted // in a quoted value
	extensionEscape // behind a backslash
	extensionClosed // behind a quoted value
	extensionBlank  // in white space behind a value
)

// Body returns a decoder for the request's body.
func (r *Request) Body() Body { return newBody(r.ContentLength, &r.rules) }

// newBody returns a decoder for a length, or chunks if the length is negative.
func newBody(length int64, rules *Rules) Body {
	switch {
	case length > rules.Body:
		return Body{state: bodyLength, left: length, err: errBodySize}
	case length > 0:
		return Body{state: bodyLength, left: length}
	case length == 0:
		return Body{}
	}
	return Body{state: chunkSize, room: rules.Body, fields: int32(min(rules.Fields, math.MaxInt32)), size: int32(rules.Trailer)}
}

// Done reports whether the body has been read to its end.
func (b *Body) Done() bool { return b.state == bodyDone }

// Next decodes bytes of the body. in begins after the bytes that earlier calls took. Next
// takes n bytes; data is the part of them that is the body's, and aliases in. It may be
// empty. When n is 0 and err is nil, the body is done, or in holds an incomplete trailer
// section: call again with more bytes behind the same ones.
//
// err is an [*Error].
func (b *Body) Next(in []byte) (data []byte, n int, err error) {
	if b.err != nil {
		return nil, 0, b.err
	}
	for n < len(in) {
		switch b.state {
		case bodyDone:
			return data, n, nil
		case bodyStream:
			if int64(len(in)) > b.room {
				b.err = errBodySize
				return nil, 0, b.err
			}
			b.room -= int64(len(in))
			return in, len(in), nil
		case bodyLength, chunkData:
			if data != nil {
				return data, n, nil
			}
			start := n
			n += int(min(int64(len(in)-n), b.left))
			data = in[start:n:n]
			if b.left -= int64(n - start); b.left == 0 {
				b.state = afterData(b.state)
			}
		case trailer:
			if data != nil {
				return data, n, nil // the trailer section must stay at the start of in
			}
			k, err := b.readTrailer(in[n:])
			return nil, n + k, err
		default:
			if err := b.frame(in[n]); err != nil {
				b.err = err
				if data == nil {
					return nil, n, err
				}
				return data, n, nil
			}
			n++
		}
	}
	return data, n, nil
}

func afterData(s bodyState) bodyState {
	if s == chunkData {
		return chunkCR
	}
	return bodyDone
}

// EOF returns the error of a body whose stream ends here: nil, or io.ErrUnexpectedEOF.
func (b *Body) EOF() error {
	if b.state == bodyDone || b.state == bodyStream {
		return nil
	}
	return io.ErrUnexpectedEOF
}

// frame takes one byte of framing.
func (b *Body) frame(c byte) *Error {
	switch b.state {
	case chunkCR:
		b.state = chunkEnd
		if c != '\r' {
			return errChunkEnd
		}
		return nil
	case chunkEnd:
		b.state, b.left, b.digits, b.line = chunkSize, 0, 0, 0
		if c != '\n' {
			return errChunkEnd
		}
		return nil
	case chunkLF:
		if c != '\n' {
			return errChunkBreak
		}
		return b.begin()
	}
	if c != '\r' { // of the line break, or wrong
		if b.line++; b.line > maxChunkLine {
			return errChunkLine
		}
	}
	if b.state == chunkSize {
		return b.sizeByte(c)
	}
	if c == '\n' {
		return errChunkBreak
	}
	if next := b.state.extend(c); next != bodyDone {
		b.state = next
		return nil
	}
	return errChunkExtension
}

// sizeByte takes one byte of a chunk's size, or the one behind it.
func (b *Body) sizeByte(c byte) *Error {
	switch {
	case class[c]&isHexDigit != 0:
		if b.digits++; b.digits > maxChunkDigits || b.left > math.MaxInt64>>4 {
			return errChunkOverflow
		}
		digit := c & 0xf
		if c > '9' {
			digit += 9
		}
		b.left = b.left<<4 | int64(digit)
		return nil
	case b.digits == 0:
		return errChunkSize
	case c == '\r':
		b.state = chunkLF
		return nil
	case c == ';':
		b.state = extension
		return nil
	case c == '\n':
		return errChunkBreak
	}
	return errChunkSize
}

// begin begins a chunk, behind its size line.
func (b *Body) begin() *Error {
	b.waste += int64(b.line) + 2 - chunkAllowance - 2*min(b.left, math.MaxInt32)
	b.waste = max(b.waste, 0)
	if b.waste > maxChunkWaste {
		return errChunkWaste
	}
	if b.left == 0 {
		b.state = trailer
		return nil
	}
	if b.left > b.room {
		return errBodySize
	}
	b.room -= b.left
	b.state = chunkData
	return nil
}

// extend returns the state behind another byte of an extension; bodyDone if the grammar
// does not have it there: RFC 9112, section 7.1.1. White space between the size and the
// first semicolon is refused too, as net/http does.
func (s bodyState) extend(c byte) bodyState {
	token := class[c]&isToken != 0
	switch s {
	case extension:
		switch {
		case token:
			return extensionName
		case isBlank(c):
			return s
		}
	case extensionName, extensionNamed:
		switch {
		case token && s == extensionName:
			return s
		case c == '=':
			return extensionEquals
		case isBlank(c):
			return extensionNamed
		case c == ';':
			return extension
		case c == '\r' && s == extensionName:
			return chunkLF
		}
	case extensionEquals:
		switch {
		case token:
			return extensionToken
		case c == '"':
			return extensionQuoted
		case isBlank(c):
			return s
		}
	case extensionToken, extensionClosed, extensionBlank:
		switch {
		case token && s == extensionToken:
			return s
		case isBlank(c):
			return extensionBlank
		case c == ';':
			return extension
		case c == '\r' && s != extensionBlank:
			return chunkLF
		}
	case extensionQuoted, extensionEscape:
		switch {
		case c < ' ' && c != '\t' || c == 0x7f:
		case s == extensionEscape:
			return extensionQuoted
		case c == '\\':
			return extensionEscape
		case c == '"':
			return extensionClosed
		default:
			return s
		}
	}
	return bodyDone
}

// readTrailer reads the trailer section, or nothing of it.
func (b *Body) readTrailer(in []byte) (n int, err error) {
	rules := Rules{Head: int(b.size), Fields: int(b.fields)}
	if b.part.searched > 0 {
		done, err := b.part.resumeFields(in[:min(len(in), rules.Head)], &rules)
		if err != nil {
			return 0, b.fail(err)
		}
		if !done {
			return 0, nil
		}
	}
	var t notes
	b.Trailer, n, err = readFields(in, 0, &rules, &b.part, b.Trailer[:0], &t)
	if err != nil {
		return 0, b.fail(err)
	}
	if n == 0 {
		return 0, nil
	}
	for i := range b.Trailer {
		if isForbiddenTrailer(kindOf(b.Trailer[i].Name)) {
			return 0, b.fail(errTrailerField)
		}
	}
	b.state = bodyDone
	return n, nil
}

func (b *Body) fail(err error) *Error {
	b.err = err.(*Error)
	if b.err == errHeadSize {
		b.err = errTrailerSize
	}
	return b.err
}
