package resp

import "strconv"

// MaxDepth is the maximum nesting depth of a value that is read. An attribute
// counts as a level. Redis's own replies need seven.
const MaxDepth = 32

// A Kind is the type of a [Value]: the first byte of its encoding.
type Kind byte

// The types of RESP2 and RESP3. Readers return RESP2's null bulk string and null
// array as Null.
const (
	Simple    Kind = '+'
	Error     Kind = '-'
	Int       Kind = ':'
	Bulk      Kind = '$'
	Array     Kind = '*'
	Null      Kind = '_'
	Bool      Kind = '#'
	Double    Kind = ','
	BigNumber Kind = '('
	BulkError Kind = '!'
	Verbatim  Kind = '='
	Map       Kind = '%'
	Set       Kind = '~'
	Push      Kind = '>'

	attribute Kind = '|' // never the Kind of a Value: see Value.Attr
)

// A Value is one reply. Its strings alias the bytes from which it was read.
type Value struct {
	Kind   Kind
	Format [3]byte // Verbatim
	Int    int64   // Int; Bool: 1 or 0
	Float  float64 // Double
	Str    []byte  // Simple, Error, Bulk, BigNumber, BulkError, Verbatim (its text)
	Elems  []Value // Array, Set, Push; Map: alternating keys and values
	Attr   []Value // attributes before the value, alternating keys and values
}

// ReadValue reads the value at the start of in.
//
// When n is 0 and err is nil, the value is incomplete. No call returns a value
// or an error before in holds want bytes; want > len(in). want includes the
// whole of an announced string, so it also shows in advance that the server
// will send more than the caller wants to hold. For large aggregates that
// arrive in pieces, use a [PartialValue].
//
// Allocation is proportional to n: one Value for each element, none for a value
// that is not an aggregate. err is a [*ProtocolError]. RESP3's streamed strings
// and aggregates, which Redis does not send, are errors.
func ReadValue(in []byte) (v Value, n, want int, err error) {
	var p PartialValue
	return p.Read(in)
}

// A PartialValue reads values as [ReadValue] does, and remembers how much of an
// incomplete one it has checked. A value in many pieces then costs two passes
// over its elements in all, instead of one for each piece. The zero value is
// ready for the start of a value, and so is a PartialValue whose Read returned
// a value.
type PartialValue struct {
	at    int           // offset of the first incomplete element
	line  int           // bytes of a text at that offset that hold no '\n'
	depth int           // open aggregates at that offset
	left  [MaxDepth]int // elements that each of them lacks
}

// Read is [ReadValue], but continues where the last call stopped because the
// value was incomplete. in must again begin with the start of the value and
// hold at least the same bytes; it may have moved.
func (p *PartialValue) Read(in []byte) (v Value, n, want int, err error) {
	for {
		e, want, err := readElement(in, p.at, p.line)
		if e.next == 0 {
			p.line = 0
			if p.at < len(in) && Kind(in[p.at]).isText() {
				p.line = len(in) - p.at
			}
			return Value{}, 0, want, err
		}
		nests := e.count > 0 || e.kind == attribute
		if p.at == 0 && !nests {
			*p = PartialValue{}
			return e.value(), e.next, 0, nil
		}
		p.at, p.line = e.next, 0
		if nests {
			if p.depth == MaxDepth {
				return Value{}, 0, 0, errDepth
			}
			p.left[p.depth] = e.count
			if e.kind == attribute {
				p.left[p.depth]++ // the value that the attributes describe
			}
			p.depth++
			continue
		}
		if p.elementDone() {
			n = p.at
			*p = PartialValue{}
			v, _ = build(in, 0)
			return v, n, 0, nil
		}
	}
}

// elementDone counts an element, and every aggregate that it completes. It
// reports whether the outermost one is complete.
func (p *PartialValue) elementDone() bool {
	for p.depth > 0 {
		p.left[p.depth-1]--
		if p.left[p.depth-1] > 0 {
			return false
		}
		p.depth--
	}
	return true
}

// build makes the value at in[at:], which Read has found complete and valid,
// and returns the offset after it. It recurses at most MaxDepth levels.
func build(in []byte, at int) (Value, int) {
	e, _, _ := readElement(in, at, 0)
	if e.kind == attribute {
		attr, next := buildElements(in, e.next, e.count)
		v, next := build(in, next)
		v.Attr = append(attr, v.Attr...)
		return v, next
	}
	v := e.value()
	var next int
	v.Elems, next = buildElements(in, e.next, e.count)
	return v, next
}

// value returns e as a Value, without the values it contains.
func (e element) value() Value {
	v := Value{Kind: e.kind, Int: e.num, Float: e.float, Str: e.str}
	if e.kind == Verbatim {
		copy(v.Format[:], e.str)
		v.Str = e.str[4:]
	}
	return v
}

func buildElements(in []byte, at, count int) ([]Value, int) {
	if count == 0 {
		return nil, at
	}
	elems := make([]Value, count)
	for i := range elems {
		elems[i], at = build(in, at)
	}
	return elems, at
}

// AppendValue appends v in RESP3. A Value from ReadValue survives the round
// trip unchanged. The strings of line types must hold no line break.
func AppendValue(b []byte, v Value) []byte {
	if len(v.Attr) > 0 {
		b = AppendAttribute(b, len(v.Attr)/2)
		b = appendValues(b, v.Attr)
	}
	switch v.Kind {
	case Null:
		return AppendNull3(b)
	case Int:
		return AppendInt(b, v.Int)
	case Bool:
		return AppendBool(b, v.Int != 0)
	case Double:
		return AppendDouble(b, v.Float)
	case Simple, Error, BigNumber:
		b = append(b, byte(v.Kind))
		b = append(b, v.Str...)
		return append(b, '\r', '\n')
	case Bulk, BulkError:
		b = appendHeader(b, byte(v.Kind), int64(len(v.Str)))
		b = append(b, v.Str...)
		return append(b, '\r', '\n')
	case Verbatim:
		b = appendHeader(b, '=', int64(len(v.Str)+4))
		b = append(b, v.Format[:]...)
		b = append(b, ':')
		b = append(b, v.Str...)
		return append(b, '\r', '\n')
	case Map:
		b = AppendMap(b, len(v.Elems)/2)
		return appendValues(b, v.Elems)
	case Array, Set, Push:
		b = appendHeader(b, byte(v.Kind), int64(len(v.Elems)))
		return appendValues(b, v.Elems)
	}
	panic("resp: AppendValue: unknown kind " + strconv.QuoteRune(rune(v.Kind)))
}

func appendValues(b []byte, values []Value) []byte {
	for _, v := range values {
		b = AppendValue(b, v)
	}
	return b
}
