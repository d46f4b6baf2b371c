package resp

// A Reply collects replies for a client in the client's protocol version. If
// Proto is 3, its methods append RESP3's form of a type to B, otherwise the
// RESP2 form that Redis sends instead. The caller may take, replace and
// truncate B between calls. The zero Reply is ready for RESP2.
//
// After a header (Array, Map, Set, Push), add its elements. In RESP2, push
// replies, such as pub/sub messages, are arrays.
//
// Only one goroutine at a time may use a Reply.
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

// Bulk adds a bulk string with a copy of s.
func (r *Reply) Bulk(s []byte) { r.B = AppendBulk(r.B, s) }

// BulkString is Bulk for a string.
func (r *Reply) BulkString(s string) { r.B = AppendBulkString(r.B, s) }

// BulkInt adds an integer as a bulk string.
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

// NullArray adds the null of an array: "*-1" in RESP2, the same as Null in
// RESP3.
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

// Verbatim adds text with a format, "txt" or "mkd". In RESP2 it is a bulk
// string without the format.
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
