package redis

import (
	"bytes"
	"math/big"
	"strings"
)

// Redis computes INCRBYFLOAT and HINCRBYFLOAT in C's long double, which has 64 bits of
// mantissa on x86. big.Float does the same.
const (
	longDoubleBits = 64
	// longDoubleMost and longDoubleLeast bound the binary exponents of numbers that are
	// neither infinite nor zero.
	longDoubleMost  = 16384
	longDoubleLeast = -16445
)

// maxFloatText is longer than any float that Redis accepts.
const maxFloatText = 5 << 10

// parseLongDouble parses a number as C's strtold does: decimal or hexadecimal, or an
// infinity. It accepts no blanks, and no number that is too large or too small.
func parseLongDouble(b []byte) (*big.Float, bool) {
	if len(b) >= maxFloatText || !isFloat(b) {
		return nil, false
	}
	text := strings.ToLower(string(b))
	if unsigned := strings.TrimLeft(text, "+-"); unsigned == "inf" || unsigned == "infinity" {
		return new(big.Float).SetInf(text[0] == '-'), true
	}
	base := 10
	if strings.Contains(text, "x") {
		base = 0
	}
	f, _, err := new(big.Float).SetPrec(longDoubleBits).Parse(text, base)
	if err != nil || f.IsInf() || f.Sign() == 0 && strings.ContainsAny(mantissa(text), "123456789abcdf") {
		return nil, false
	}
	if f.Sign() != 0 && (f.MantExp(nil) > longDoubleMost || f.MantExp(nil) < longDoubleLeast) {
		return nil, false
	}
	return f, true
}

// mantissa returns a number's text before the exponent.
func mantissa(text string) string {
	exponent := "e"
	if strings.Contains(text, "x") {
		exponent = "p"
	}
	m, _, _ := strings.Cut(text, exponent)
	return m
}

// isFloat reports whether the whole of b has the form that strtold accepts, but for NaN.
func isFloat(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	if bytes.EqualFold(b, []byte("inf")) || bytes.EqualFold(b, []byte("infinity")) {
		return true
	}
	digit, exponent := isDigit, byte('e')
	if len(b) > 1 && b[0] == '0' && lower(b[1]) == 'x' {
		digit, exponent, b = isHexDigit, 'p', b[2:]
	}
	whole := span(b, digit)
	b = b[whole:]
	if len(b) > 0 && b[0] == '.' {
		fraction := span(b[1:], digit)
		whole += fraction
		b = b[1+fraction:]
	}
	if whole == 0 {
		return false
	}
	if len(b) == 0 {
		return true
	}
	if lower(b[0]) != exponent {
		return false
	}
	b = b[1:]
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	return len(b) > 0 && span(b, isDigit) == len(b)
}

// span returns the number of bytes at the start of b that are in a class.
func span(b []byte, in func(byte) bool) int {
	for i, c := range b {
		if !in(c) {
			return i
		}
	}
	return len(b)
}

func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isHexDigit(c byte) bool { return isDigit(c) || lower(c) >= 'a' && lower(c) <= 'f' }

// addLongDouble returns a+b; ok is false if that is infinite or not a number.
func addLongDouble(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(longDoubleBits).Add(a, b)
	return sum, !sum.IsInf() && sum.MantExp(nil) <= longDoubleMost
}

// appendLongDouble appends a number as Redis stores it: with up to 17 digits behind the
// point, and no zeros at the end.
func appendLongDouble(dst []byte, f *big.Float) []byte {
	start := len(dst)
	dst = f.Append(dst, 'f', 17)
	dst = bytes.TrimRight(dst, "0") // there is a point
	dst = bytes.TrimSuffix(dst, []byte("."))
	if string(dst[start:]) == "-0" {
		dst = append(dst[:start], '0')
	}
	return dst
}

const errNotFinite = "ERR increment would produce NaN or Infinity"

// appendFloatSum appends the sum of two numbers as Redis stores it. If that fails it returns
// an error's text: notFloat if a is no number.
func appendFloatSum(dst, a, b []byte, notFloat string) (sum []byte, failure string) {
	if sum, ok := appendExtendedSum(dst, a, b); ok {
		return sum, ""
	}
	x, ok := parseLongDouble(a)
	if !ok {
		return dst, notFloat
	}
	y, ok := parseLongDouble(b)
	if !ok {
		return dst, errNotFloat
	}
	n, ok := addLongDouble(x, y)
	if !ok {
		return dst, errNotFinite
	}
	return appendLongDouble(dst, n), ""
}
