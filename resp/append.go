package resp

import (
	"math"
	"strconv"
	"strings"
)

// The Append functions append one reply, or the header of an aggregate, to b and
// return the extended slice. They allocate only to grow the slice. After the header
// of an aggregate, append its elements: each is a reply.

// AppendSimple appends a simple string, "+OK". s must hold no line break.
func AppendSimple(b []byte, s string) []byte {
	b = append(b, '+')
	b = append(b, s...)
	return append(b, '\r', '\n')
}

// AppendError appends an error. text begins with its code, such as "ERR syntax
// error". As in Redis, line breaks at the ends of text are dropped, and those
// within become spaces. So a text that quotes a client cannot forge a reply.
func AppendError(b []byte, text string) []byte {
	text = strings.Trim(text, "\r\n")
	b = append(b, '-')
	start := len(b)
	b = append(b, text...)
	for i, c := range b[start:] {
		if c == '\r' || c == '\n' {
			b[start+i] = ' '
		}
	}
	return append(b, '\r', '\n')
}

// AppendInt appends an integer.
func AppendInt(b []byte, v int64) []byte { return appendHeader(b, ':', v) }

// AppendBulk appends a bulk string with a copy of s, which may hold any bytes.
func AppendBulk(b, s []byte) []byte {
	b = appendHeader(b, '$', int64(len(s)))
	b = append(b, s...)
	return append(b, '\r', '\n')
}

// AppendBulkString is [AppendBulk] for a string.
func AppendBulkString(b []byte, s string) []byte {
	b = appendHeader(b, '$', int64(len(s)))
	b = append(b, s...)
	return append(b, '\r', '\n')
}

// AppendBulkInt appends an integer as a bulk string, the form of a key's
// numeric value.
func AppendBulkInt(b []byte, v int64) []byte {
	var text [maxDigits]byte
	return AppendBulk(b, strconv.AppendInt(text[:0], v, 10))
}

// AppendNull appends RESP2's null bulk string, "$-1".
func AppendNull(b []byte) []byte { return append(b, "$-1\r\n"...) }

// AppendNullArray appends RESP2's null array, "*-1".
func AppendNullArray(b []byte) []byte { return append(b, "*-1\r\n"...) }

// AppendArray appends the header of an array of n elements.
func AppendArray(b []byte, n int) []byte { return appendHeader(b, '*', int64(n)) }

// AppendNull3 appends RESP3's null, "_".
func AppendNull3(b []byte) []byte { return append(b, "_\r\n"...) }

// AppendMap appends the header of a RESP3 map of n pairs; 2n elements follow.
func AppendMap(b []byte, n int) []byte { return appendHeader(b, '%', int64(n)) }

// AppendSet appends the header of a RESP3 set of n elements.
func AppendSet(b []byte, n int) []byte { return appendHeader(b, '~', int64(n)) }

// AppendPush appends the header of RESP3 out-of-band data of n elements.
func AppendPush(b []byte, n int) []byte { return appendHeader(b, '>', int64(n)) }

// AppendAttribute appends the header of n RESP3 attributes. 2n elements follow,
// and then the reply that the attributes describe.
func AppendAttribute(b []byte, n int) []byte { return appendHeader(b, '|', int64(n)) }

// AppendDouble appends a RESP3 double with 17 significant digits, as Redis 7.0
// does.
func AppendDouble(b []byte, f float64) []byte {
	b = append(b, ',')
	b = appendFloat(b, f)
	return append(b, '\r', '\n')
}

// AppendBool appends a RESP3 boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "#t\r\n"...)
	}
	return append(b, "#f\r\n"...)
}

// AppendBigNumber appends a RESP3 big number: decimal digits with an optional
// sign.
func AppendBigNumber(b []byte, digits string) []byte {
	b = append(b, '(')
	b = append(b, digits...)
	return append(b, '\r', '\n')
}

// AppendVerbatim appends a RESP3 verbatim string. format is three bytes, "txt"
// or "mkd". A longer format is cut, a shorter one padded with spaces.
func AppendVerbatim(b []byte, format, text string) []byte {
	b = appendHeader(b, '=', int64(len(text)+4))
	b = append(b, (format + "   ")[:3]...)
	b = append(b, ':')
	b = append(b, text...)
	return append(b, '\r', '\n')
}

// AppendBulkError appends a RESP3 bulk error, which may hold any bytes.
func AppendBulkError(b []byte, text string) []byte {
	b = appendHeader(b, '!', int64(len(text)))
	b = append(b, text...)
	return append(b, '\r', '\n')
}

// AppendRequest appends a request: an array of bulk strings.
func AppendRequest(b []byte, args ...string) []byte {
	b = AppendArray(b, len(args))
	for _, arg := range args {
		b = AppendBulkString(b, arg)
	}
	return b
}

func appendHeader(b []byte, kind byte, v int64) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, v, 10)
	return append(b, '\r', '\n')
}

// appendFloat writes f as C's printf does with "%.17g", except for infinities
// and NaN, which have their own spellings in Redis and RESP3.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	case math.IsNaN(f):
		return append(b, "nan"...)
	}
	return strconv.AppendFloat(b, f, 'g', 17, 64)
}
