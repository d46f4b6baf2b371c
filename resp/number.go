package resp

import "math"

// maxDigits is the length of the longest int64 in decimal, with its sign.
const maxDigits = len("-9223372036854775808")

// ParseInt parses a decimal int64 as strictly as Redis parses lengths and the
// integer arguments of commands: no spaces, no plus sign, no leading zeros, no
// "-0", and nothing out of range.
func ParseInt(b []byte) (v int64, ok bool) {
	if len(b) == 0 || len(b) > maxDigits {
		return 0, false
	}
	if len(b) == 1 && b[0] == '0' {
		return 0, true
	}
	limit := uint64(math.MaxInt64)
	digits := b
	negative := b[0] == '-'
	if negative {
		limit++
		digits = b[1:]
	}
	// 19 digits cannot overflow u, and no int64 has more.
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		u = u*10 + uint64(d)
	}
	if u > limit {
		return 0, false
	}
	if negative {
		return -int64(u), true
	}
	return int64(u), true
}
