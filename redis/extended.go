package redis

import (
	"bytes"
	"math/bits"
	"strconv"
)

// extended is a number as C's long double on x86 holds it: 64 bits of mantissa. Its
// functions are for the numbers that programs add up, decimals of moderate size; for others
// they report ok false, and big.Float does the same work, in ten times the time.
//
// The value is mant * 2^exp. The highest bit of mant is 1, unless the value is 0.
type extended struct {
	mant uint64
	exp  int
	neg  bool
}

const (
	// maxDecimals bounds digits behind the point: the power of 10 fits in 64 bits.
	maxDecimals = 19
	// maxDigits bounds all digits: the number without its point fits in 128 bits.
	maxDigits = 38
)

// parseExtended parses digits with a sign and a point. ok is false for anything else that
// strtold takes, and for what it does not.
func parseExtended(b []byte) (x extended, ok bool) {
	if len(b) > 0 && b[0] == '-' {
		x.neg, b = true, b[1:]
	}
	whole := span(b, isDigit)
	decimals := max(0, len(b)-whole-1)
	if len(b) == 0 || len(b) == 1 && whole == 0 || len(b) > maxDigits || decimals > maxDecimals {
		return x, false
	}
	var hi, lo uint64
	for i, c := range b {
		if i == whole && c == '.' {
			continue
		}
		if !isDigit(c) {
			return x, false
		}
		over, low := bits.Mul64(lo, 10)
		sum, carry := bits.Add64(low, uint64(c-'0'), 0)
		hi, lo = hi*10+over+carry, sum
	}
	x.quotient(hi, lo, powerOf10(decimals))
	return x, true
}

func powerOf10(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// quotient sets x to hi:lo / d, rounded to nearest, ties to even. It keeps the sign. d is 1
// or even.
func (x *extended) quotient(hi, lo, d uint64) {
	ln, ld := uint(bits.LeadingZeros64(hi)), uint(bits.LeadingZeros64(d))
	if hi == 0 {
		if lo == 0 {
			return
		}
		ln += uint(bits.LeadingZeros64(lo))
		hi, lo = lo, 0
	}
	n := ln % 64
	hi, lo, d = hi<<n|lo>>(64-n), lo<<n, d<<ld
	x.exp = int(ld) - int(ln)
	cut := uint64(0)
	if hi >= d {
		hi, lo, cut = hi>>1, hi<<63|lo>>1, lo&1
		x.exp++
	}
	q, rest := bits.Div64(hi, lo, d)
	x.mant = q
	// Compare the rest with d-rest, since twice the rest may overflow. What is cut off is
	// half of 1 and no tie, since d is even now.
	x.round(rest > d-rest || rest == d-rest && (cut|q&1) == 1)
}

// round adds 1 to the mantissa if up.
func (x *extended) round(up bool) {
	if !up {
		return
	}
	if x.mant++; x.mant == 0 {
		x.mant = 1 << 63
		x.exp++
	}
}

// add returns x+y.
func (x extended) add(y extended) extended {
	if x.mant == 0 {
		return y
	}
	if y.mant == 0 {
		return x
	}
	if x.exp < y.exp || x.exp == y.exp && x.mant < y.mant {
		x, y = y, x
	}
	// x is x.mant:0, a number of 128 bits; y is hi:lo, in the same unit. What is cut off
	// from y sets its lowest bit, so that rounding knows of it.
	hi, lo := shiftRight(y.mant, 0, uint(x.exp-y.exp))
	sum, carry := extended{exp: x.exp, neg: x.neg}, uint64(0)
	if x.neg == y.neg {
		hi, carry = bits.Add64(x.mant, hi, 0)
	} else {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(x.mant, hi, borrow)
	}
	switch {
	case carry > 0:
		hi, lo = shiftRight(hi, lo, 1)
		hi |= 1 << 63
		sum.exp++
	case hi == 0 && lo == 0:
		return extended{}
	default:
		n := uint(bits.LeadingZeros64(hi))
		if hi == 0 {
			hi, lo = lo, 0
			sum.exp -= 64
			n = uint(bits.LeadingZeros64(hi))
		}
		hi, lo = hi<<n|lo>>(64-n), lo<<n
		sum.exp -= int(n)
	}
	const half = 1 << 63
	sum.mant = hi
	sum.round(lo > half || lo == half && hi&1 == 1)
	return sum
}

// shiftRight shifts a number of 128 bits. The lowest bit becomes 1 if a 1 is cut off.
func shiftRight(hi, lo uint64, n uint) (uint64, uint64) {
	cut := uint64(0)
	for ; n >= 64; n -= 64 {
		if lo != 0 {
			cut = 1
		}
		if hi, lo = 0, hi; lo == 0 {
			return 0, cut
		}
	}
	if lo<<(64-n) != 0 {
		cut = 1
	}
	return hi >> n, hi<<(64-n) | lo>>n | cut
}

// appendTo appends the number with up to 17 digits behind the point, and no zeros at the
// end.
func (x extended) appendTo(dst []byte) (out []byte, ok bool) {
	const decimals, unit = 17, 1e17
	if x.exp > 0 {
		return dst, false
	}
	k := uint(-x.exp) // the fraction's bits
	whole, fraction := uint64(0), x.mant
	if k < 64 {
		whole, fraction = x.mant>>k, x.mant&(1<<k-1)
	}
	n := scaled(fraction, unit, k)
	if n == unit {
		whole, n = whole+1, 0 // without overflow: there is a fraction
	}
	if x.neg && whole+n > 0 {
		dst = append(dst, '-')
	}
	dst = strconv.AppendUint(dst, whole, 10)
	if n == 0 {
		return dst, true
	}
	dst = append(dst, '.')
	start := len(dst)
	dst = strconv.AppendUint(dst, unit+n, 10)
	copy(dst[start:], dst[start+1:]) // without unit's 1
	return bytes.TrimRight(dst[:start+decimals], "0"), true
}

// scaled returns a*b / 2^k, rounded to nearest, ties to even.
func scaled(a, b uint64, k uint) uint64 {
	hi, lo := bits.Mul64(a, b)
	if k == 0 {
		return lo // a is 0
	}
	if k > 127 {
		return 0 // a*b is below 2^121
	}
	// The quotient, and what is cut off, at the top of 128 bits.
	q, rest, more := uint64(0), uint64(0), uint64(0)
	if k >= 64 {
		q = hi >> (k - 64)
		rest, more = hi<<(128-k)|lo>>(k-64), lo<<(128-k)
	} else {
		q = hi<<(64-k) | lo>>k
		rest = lo << (64 - k)
	}
	const half = 1 << 63
	if rest > half || rest == half && (more > 0 || q&1 == 1) {
		q++
	}
	return q
}

// appendExtendedSum appends the sum of two numbers as Redis stores it.
func appendExtendedSum(dst, a, b []byte) (out []byte, ok bool) {
	x, ok := parseExtended(a)
	if !ok {
		return dst, false
	}
	y, ok := parseExtended(b)
	if !ok {
		return dst, false
	}
	return x.add(y).appendTo(dst)
}
