package redis

import (
	"math"
	"strconv"
)

// parseDouble parses an argument as Redis does: like C's strtod, all of it, without
// blanks before, not NaN, and not beyond the limits of a double.
func parseDouble(b []byte) (f float64, ok bool) {
	if len(b) == 0 || isBlank(b[0]) {
		return 0, false
	}
	f, n, ranged := scanDouble(b)
	return f, n == len(b) && ranged && !math.IsNaN(f)
}

// doubleArg is parseDouble for an argument. It replies with an error if that fails.
func (c *client) doubleArg(arg []byte, failure string) (float64, bool) {
	f, ok := parseDouble(arg)
	if !ok {
		c.fail(failure)
	}
	return f, ok
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// scanDouble reads a number at the start of b as C's strtod does, and returns how many
// bytes it has, 0 if there is none. ranged is false if the number became infinite, or 0,
// because it has no double.
func scanDouble(b []byte) (f float64, n int, ranged bool) {
	i := 0
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	start := i
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	if f, n := scanWord(b[i:]); n > 0 {
		return math.Copysign(f, sign(b[start])), i + n, true
	}
	digits, exponent := "0123456789", byte('e')
	text := string(b[start:i])
	if i+2 < len(b) && b[i] == '0' && lower(b[i+1]) == 'x' && mantissaAt(b[i+2:], hexDigits) > 0 {
		digits, exponent = hexDigits, 'p'
		text += "0x"
		i += 2
	}
	m := mantissaAt(b[i:], digits)
	if m == 0 {
		return 0, 0, true
	}
	text += string(b[i : i+m])
	i += m
	if e := exponentAt(b[i:], exponent); e > 0 {
		text += string(b[i : i+e])
		i += e
	} else if exponent == 'p' {
		text += "p0" // Go wants one
	}
	f, err := strconv.ParseFloat(text, 64)
	zero := f == 0 && !isZero(text)
	return f, i, err == nil && !zero
}

const hexDigits = "0123456789abcdef"

func sign(c byte) float64 {
	if c == '-' {
		return -1
	}
	return 1
}

// scanWord reads inf, infinity or nan.
func scanWord(b []byte) (f float64, n int) {
	for _, x := range [...]struct {
		word string
		f    float64
	}{{"INFINITY", math.Inf(1)}, {"INF", math.Inf(1)}, {"NAN", math.NaN()}} {
		if len(b) >= len(x.word) && isWord(b[:len(x.word)], x.word) {
			return x.f, len(x.word)
		}
	}
	return 0, 0
}

// mantissaAt returns the length of digits with at most one point at the start of b, or 0 if
// there is no digit.
func mantissaAt(b []byte, digits string) (n int) {
	some, point := false, false
	for ; n < len(b); n++ {
		switch {
		case b[n] == '.' && !point:
			point = true
		case isIn(lower(b[n]), digits):
			some = true
		default:
			if !some {
				return 0
			}
			return n
		}
	}
	if !some {
		return 0
	}
	return n
}

func isIn(c byte, set string) bool {
	for i := range len(set) {
		if set[i] == c {
			return true
		}
	}
	return false
}

// exponentAt returns the length of an exponent at the start of b, or 0.
func exponentAt(b []byte, letter byte) int {
	if len(b) == 0 || lower(b[0]) != letter {
		return 0
	}
	i := 1
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	first := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == first {
		return 0
	}
	return i
}

// isZero reports whether a number's text has no digit but 0 before the exponent.
func isZero(text string) bool {
	hex := len(text) > 2 && isIn('x', text)
	for i := range len(text) {
		c := lower(text[i])
		if c == 'p' || c == 'e' && !hex {
			break
		}
		if c != '0' && isIn(c, hexDigits) {
			return false
		}
	}
	return true
}
