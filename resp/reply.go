package resp

// A Reply collects replies for a client of one protocol version. Its methods
// append to B what that version has for a type: RESP3's own form if Proto is 3,
// else the RESP2 form that Redis sends in its place. B may be taken, replaced
// and truncated at will between calls. The zero Reply is ready, and of RESP2.
//
// A header (Array, Map, Set, Push) is followed by its elements. Push replies
// of RESP2, its pub/sub messages, are arrays.
//
// A Reply is for one goroutine at a time.
type Reply struct {
	B     []byte
	Proto int // 2 or 3
}

// Simple adds a simple string. s must hold no line break.
func (r *Reply) Simple(s string) { r.B = AppendSimple(r.B, s) }

// Error adds an error; see [AppendError].
func (r *Reply) Error(text string) { r.B = AppendError(r.B, text) }

// Int adds an integer.
func (r *Reply) Int(v int64) { r.B = AppendInt(r.B, v) }

// Bulk adds a bulk string, a copy of s.
func (r *Reply) Bulk(s []byte) { r.B = AppendBulk(r.B, s) }

// BulkString is Bulk for a string.
func (r *Reply) BulkString(s string) { r.B = AppendBulkString(r.B, s) }

// BulkInt adds an integer in the form of a bulk string.
func (r *Reply) BulkInt(v int64) { r.B = AppendBulkInt(r.B, v) }

// Array adds the header of an array of n elements.
func (r *Reply) Array(n int) { r.B = AppendArray(r.B, n) }

// Null adds a null: "$-1" in RESP2.
func (r *Reply) Null() {
	if r.Proto == 3 {
		r.B = AppendNull3(r.B)
	} else {
		r.B = AppendNull(r.B)
	}
}

// NullArray adds the null that stands for an array: "*-1" in RESP2, and in
// RESP3 the same as Null.
func (r *Reply) NullArray() {
	if r.Proto == 3 {
		r.B = AppendNull3(r.B)
	} else {
		r.B = AppendNullArray(r.B)
	}
}

// Map adds the header of n pairs; 2n elements follow. In RESP2 it is an array.
func (r *Reply) Map(n int) {
	if r.Proto == 3 {
		r.B = AppendMap(r.B, n)
	} else {
		r.B = AppendArray(r.B, 2*n)
	}
}

// Set adds the header of a set of n elements. In RESP2 it is an array.
func (r *Reply) Set(n int) { r.aggregate('~', n) }

// Push adds the header of out-of-band data of n elements. In RESP2 it is an
// array.
func (r *Reply) Push(n int) { r.aggregate('>', n) }

// Double adds a double. In RESP2 it is a bulk string.
func (r *Reply) Double(f float64) {
	if r.Proto == 3 {
		r.B = AppendDouble(r.B, f)
		return
	}
	var text [32]byte
	r.B = AppendBulk(r.B, appendFloat(text[:0], f))
}

// Bool adds a boolean. In RESP2 it is the integer 1 or 0.
func (r *Reply) Bool(v bool) {
	switch {
	case r.Proto == 3:
		r.B = AppendBool(r.B, v)
	case v:
		r.B = AppendInt(r.B, 1)
	default:
		r.B = AppendInt(r.B, 0)
	}
}

// BigNumber adds a big number. In RESP2 it is a bulk string.
func (r *Reply) BigNumber(digits string) {
	if r.Proto == 3 {
		r.B = AppendBigNumber(r.B, digits)
	} else {
		r.B = AppendBulkString(r.B, digits)
	}
}

// Verbatim adds text in a format, "txt" or "mkd". In RESP2 it is a bulk string
// without the format.
func (r *Reply) Verbatim(format, text string) {
	if r.Proto == 3 {
		r.B = AppendVerbatim(r.B, format, text)
	} else {
		r.B = AppendBulkString(r.B, text)
	}
}

func (r *Reply) aggregate(kind byte, n int) {
	if r.Proto != 3 {
		kind = '*'
	}
	r.B = appendHeader(r.B, kind, int64(n))
}
