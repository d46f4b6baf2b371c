package resp

import (
	"bytes"
	"math"
	"strconv"
)

var (
	errDepth     = &ProtocolError{"values nested too deep"}
	errLineEnd   = &ProtocolError{"line does not end in CR LF"}
	errStringEnd = &ProtocolError{"string does not end in CR LF"}
	errLength    = &ProtocolError{"invalid length"}
	errLongLine  = &ProtocolError{"too big number line"}
	errInteger   = &ProtocolError{"invalid integer"}
	errDouble    = &ProtocolError{"invalid double"}
	errBool      = &ProtocolError{"invalid boolean"}
	errBigNumber = &ProtocolError{"invalid big number"}
	errNull      = &ProtocolError{"invalid null"}
	errVerbatim  = &ProtocolError{"invalid verbatim string"}
	errStreamed  = &ProtocolError{"streamed types are not supported"}
)

// maxNumberLine bounds lines with a length, a number, a boolean or a null. The
// longest is a double with all its digits: some 330 bytes.
const maxNumberLine = 512

// An element is a value without the values it contains.
type element struct {
	kind  Kind
	num   int64
	float float64
	str   []byte
	count int // number of values it contains; 2 for each pair
	next  int // offset after it; 0: incomplete or wrong
}

// readElement reads the element at in[at:]. If it is a text, its first seen
// bytes are known to hold no '\n'.
func readElement(in []byte, at, seen int) (e element, want int, err error) {
	b := in[at:]
	if len(b) == 0 {
		return e, len(in) + 1, nil
	}
	e.kind = Kind(b[0])
	if !e.kind.known() {
		return e, 0, &ProtocolError{"unknown type " + strconv.Quote(string(b[:1]))}
	}
	if !e.kind.isText() {
		b = b[:min(len(b), maxNumberLine)]
	}
	end := bytes.IndexByte(b[seen:], '\n') + seen
	switch {
	case end < seen && len(b) == maxNumberLine && !e.kind.isText():
		return e, 0, errLongLine
	case end < seen:
		return e, len(in) + 1, nil
	case end < 2 || b[end-1] != '\r':
		return e, 0, errLineEnd
	}
	line, next := b[1:end-1], at+end+1
	switch e.kind {
	case Bulk, BulkError, Verbatim:
		return e.readString(in, line, next)
	case Array, Set, Push, Map, attribute:
		err = e.readCount(line)
	default:
		err = e.readLine(line)
	}
	if err == nil {
		e.next = next
	}
	return e, 0, err
}

func (k Kind) known() bool {
	switch k {
	case Simple, Error, Int, Bulk, Array, Null, Bool, Double, BigNumber, BulkError, Verbatim, Map, Set, Push, attribute:
		return true
	}
	return false
}

// isText reports whether the kind is a line of any length.
func (k Kind) isText() bool { return k == Simple || k == Error || k == BigNumber }

// readLine reads an element that consists of its line only.
func (e *element) readLine(line []byte) error {
	switch e.kind {
	case Simple, Error:
		e.str = line
	case Int:
		if len(line) > 1 && line[0] == '+' && line[1] != '-' {
			line = line[1:]
		}
		v, ok := ParseInt(line)
		if !ok {
			return errInteger
		}
		e.num = v
	case Bool:
		if len(line) != 1 || line[0] != 't' && line[0] != 'f' {
			return errBool
		}
		if line[0] == 't' {
			e.num = 1
		}
	case Double:
		f, ok := parseFloat(line)
		if !ok {
			return errDouble
		}
		e.float = f
	case BigNumber:
		if !isBigNumber(line) {
			return errBigNumber
		}
		e.str = line
	case Null:
		if len(line) != 0 {
			return errNull
		}
	}
	return nil
}

// readCount reads the line of an aggregate.
func (e *element) readCount(line []byte) error {
	v, err := readLength(line)
	if err != nil {
		return err
	}
	if v < 0 {
		if e.kind != Array {
			return errLength
		}
		e.kind = Null
		return nil
	}
	if e.kind == Map || e.kind == attribute {
		v *= 2
	}
	e.count = v
	return nil
}

// readString reads an element whose line gives the number of bytes that follow
// at in[at:].
func (e element) readString(in, line []byte, at int) (_ element, want int, err error) {
	size, err := readLength(line)
	switch {
	case err != nil:
		return e, 0, err
	case size < 0 && e.kind == Bulk:
		e.kind, e.next = Null, at
		return e, 0, nil
	case size < 0 || size < 4 && e.kind == Verbatim:
		return e, 0, errLength
	case size > len(in)-at-2:
		return e, int(min(int64(at)+int64(size)+2, math.MaxInt)), nil
	}
	end := at + size
	e.str = in[at:end:end]
	if in[end] != '\r' || in[end+1] != '\n' {
		return e, 0, errStringEnd
	}
	if e.kind == Verbatim && e.str[3] != ':' {
		return e, 0, errVerbatim
	}
	e.next = end + 2
	return e, 0, nil
}

// readLength parses the length of a string or an aggregate. -1 is RESP2's null.
func readLength(line []byte) (int, error) {
	if len(line) == 1 && line[0] == '?' {
		return 0, errStreamed
	}
	v, ok := ParseInt(line)
	if !ok || v < -1 || v > math.MaxInt/4 { // leaves room to double v and to add offsets
		return 0, errLength
	}
	return int(v), nil
}

// parseFloat parses a double in RESP3's form: decimal, inf, -inf or nan.
func parseFloat(b []byte) (float64, bool) {
	switch string(b) {
	case "inf":
		return math.Inf(1), true
	case "-inf":
		return math.Inf(-1), true
	case "nan":
		return math.NaN(), true
	}
	for _, c := range b { // ParseFloat alone accepts more: hexadecimal, "infinity"
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil
}

func isBigNumber(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
