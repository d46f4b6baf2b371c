package http1

import "math"

// The defaults of [Rules].
const (
	DefaultLine    = 16 << 10 // bytes in a request line or status line
	DefaultHead    = 64 << 10 // bytes in a head
	DefaultFields  = 256      // fields in a head, and in a trailer section
	DefaultTrailer = 4 << 10  // bytes in a trailer section
)

// Rules say what a message may hold. A number of 0 or less means its default. The zero value is
// for servers that accept only what RFC 9112 requires them to accept.
type Rules struct {
	Line    int // bytes in the first line, without the line break
	Head    int // bytes in the first line, the fields and the empty line behind them
	Fields  int // fields in the head, and in the trailer section
	Trailer int // bytes in the trailer section of a chunked body

	// Body is the number of bytes in a body; the default is any number. A Request that
	// announces more is refused with status 413, a chunked body when a chunk goes beyond.
	Body int64

	// BareLF accepts LF as a line break in a head, in place of CR LF, as net/http does and
	// RFC 9112, section 2.2 permits. Clients of net/rpc send such heads. Chunk lines and
	// trailer sections always need CR LF.
	BareLF bool

	// NonASCII accepts bytes from 0x80 on in a request target, as net/http does. RFC 3986
	// has none, but curl and Go's client send them in queries as they get them.
	NonASCII bool
}

// fill puts the defaults in place of what is not set.
func (r *Rules) fill() {
	// Offsets in a Partial have 32 bits; sums with a line break must not overflow.
	const most = math.MaxInt32 - 2
	r.Line = min(orDefault(r.Line, DefaultLine), most)
	r.Head = min(orDefault(r.Head, DefaultHead), most)
	r.Fields = orDefault(r.Fields, DefaultFields)
	r.Trailer = min(orDefault(r.Trailer, DefaultTrailer), most)
	r.Body = orDefault(r.Body, math.MaxInt64)
}

func orDefault[T int | int64](n, standard T) T {
	if n <= 0 {
		return standard
	}
	return n
}

// An Error says why bytes are not an acceptable message. The stream has lost its framing:
// nothing behind the error can be read.
type Error struct {
	Status int // of the answer that a server gives: 400, 413, 414, 431, 501 or 505
	text   string
}

// Error returns one sentence without bytes of the message, so it can go into the answer.
func (e *Error) Error() string { return e.text }

var (
	errMethod         = &Error{400, "request line: the method is not a token"}
	errLongMethod     = &Error{501, "request line: the method is too long"}
	errLongLine       = &Error{414, "request line: too long"}
	errVersion        = &Error{400, "request line: no HTTP version at its end"}
	errUnsupported    = &Error{505, "unsupported protocol version"}
	errTarget         = &Error{400, "request line: invalid target"}
	errTargetByte     = &Error{400, "request line: invalid character in the target"}
	errTargetEscape   = &Error{400, "request line: invalid % escape in the path"}
	errTargetHost     = &Error{400, "request line: invalid host in the target"}
	errAsterisk       = &Error{400, "request line: only OPTIONS may have the target *"}
	errConnect        = &Error{400, "request line: the target of CONNECT is not host:port"}
	errBareLF         = &Error{400, "line break without CR"}
	errBareCR         = &Error{400, "CR without LF"}
	errFold           = &Error{400, "header: line begins with white space"}
	errColon          = &Error{400, "header: line without a colon"}
	errSpaceColon     = &Error{400, "header: white space before the colon"}
	errName           = &Error{400, "header: invalid character in a name"}
	errNoName         = &Error{400, "header: empty name"}
	errValue          = &Error{400, "header: invalid character in a value"}
	errHeadSize       = &Error{431, "header too large"}
	errHeadFields     = &Error{431, "too many header fields"}
	errNoHost         = &Error{400, "missing required Host header"}
	errHost           = &Error{400, "malformed Host header"}
	errHosts          = &Error{400, "too many Host headers"}
	errLength         = &Error{400, "malformed Content-Length"}
	errLengths        = &Error{400, "more than one Content-Length"}
	errEncoding       = &Error{501, "unsupported transfer encoding"}
	errEncodingOld    = &Error{400, "Transfer-Encoding in HTTP/1.0"}
	errEncodingLength = &Error{400, "both Transfer-Encoding and Content-Length"}
	errTrailerName    = &Error{400, "forbidden name in Trailer"}
	errTraceBody      = &Error{400, "TRACE with a body"}
	errBodySize       = &Error{413, "body too large"}
	errChunkSize      = &Error{400, "chunk: invalid size"}
	errChunkOverflow  = &Error{400, "chunk: size too large"}
	errChunkExtension = &Error{400, "chunk: invalid extension"}
	errChunkLine      = &Error{400, "chunk: line too long"}
	errChunkBreak     = &Error{400, "chunk: size line does not end in CR LF"}
	errChunkEnd       = &Error{400, "chunk: data does not end in CR LF"}
	errChunkWaste     = &Error{400, "chunk: too many bytes that are not data"}
	errTrailerSize    = &Error{431, "trailer section too large"}
	errTrailerField   = &Error{400, "trailer section: forbidden field"}
	errStatusLine     = &Error{400, "status line: malformed"}
)
