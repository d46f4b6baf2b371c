package stream

import (
	"bytes"
	"cmp"
	"math"
	"strconv"

	"github.com/rondo-go/rondo/resp"
)

// An ID names an entry of a stream: a time in milliseconds, and a number within it.
type ID struct{ MS, Seq uint64 }

// MaxID is the last ID of all.
var MaxID = ID{math.MaxUint64, math.MaxUint64}

// Compare returns -1, 0 or 1.
func (id ID) Compare(other ID) int {
	if c := cmp.Compare(id.MS, other.MS); c != 0 {
		return c
	}
	return cmp.Compare(id.Seq, other.Seq)
}

// Less reports whether id comes before another ID.
func (id ID) Less(other ID) bool {
	return id.MS < other.MS || id.MS == other.MS && id.Seq < other.Seq
}

// IsZero reports whether the ID is 0-0, which no entry has.
func (id ID) IsZero() bool { return id == ID{} }

// Next returns the ID behind id. Behind the last one comes 0-0, and ok is false.
func (id ID) Next() (next ID, ok bool) {
	if id.Seq++; id.Seq == 0 {
		id.MS++
	}
	return id, !id.IsZero()
}

// Prev returns the ID before id. Before 0-0 comes the last one, and ok is false.
func (id ID) Prev() (prev ID, ok bool) {
	ok = !id.IsZero()
	if id.Seq == 0 {
		id.MS--
	}
	id.Seq--
	return id, ok
}

// AppendTo appends the ID's text: both numbers, with a dash between them.
func (id ID) AppendTo(dst []byte) []byte {
	dst = strconv.AppendUint(dst, id.MS, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, id.Seq, 10)
}

// maxText is the longest text that may be an ID. Numbers may have blanks and zeros before
// them.
const maxText = 127

// Parse returns the ID of a text, as Redis reads it. If the text has no dash, the second
// number is missing.
func Parse(text []byte, missing uint64) (id ID, ok bool) {
	id, _, ok = parse(text, missing, false)
	return id, ok
}

// ParseAuto is Parse for XADD, which may leave the second number to the stream: auto is true
// for a text such as 123-*.
func ParseAuto(text []byte) (id ID, auto, ok bool) { return parse(text, 0, true) }

func parse(text []byte, missing uint64, star bool) (id ID, auto, ok bool) {
	if len(text) > maxText {
		return id, false, false
	}
	text, _, _ = bytes.Cut(text, []byte{0}) // as C's strings end
	first, second, two := bytes.Cut(text, []byte{'-'})
	if id.MS, ok = parseUint(first); !ok {
		return id, false, false
	}
	switch {
	case !two:
		id.Seq = missing
	case star && string(second) == "*":
		auto = true
	default:
		id.Seq, ok = parseUint(second)
	}
	return id, auto, ok
}

// parseUint accepts what Redis accepts: what C's strtoull does, but no negative numbers in
// their normal form.
func parseUint(b []byte) (uint64, bool) {
	if n, ok := resp.ParseInt(b); ok {
		return uint64(n), n >= 0
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	n := uint64(0)
	for _, d := range b {
		if d -= '0'; d > 9 || n > math.MaxUint64/10 || n*10 > math.MaxUint64-uint64(d) {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	if negative {
		n = -n
	}
	return n, true
}
