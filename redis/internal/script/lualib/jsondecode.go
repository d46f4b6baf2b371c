package lualib

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// token is a kind of token of JSON, by the name that errors have for it.
type token string

const (
	objectBegin token = "T_OBJ_BEGIN"
	objectEnd   token = "T_OBJ_END"
	arrayBegin  token = "T_ARR_BEGIN"
	arrayEnd    token = "T_ARR_END"
	aString     token = "T_STRING"
	aNumber     token = "T_NUMBER"
	aBoolean    token = "T_BOOLEAN"
	aNull       token = "T_NULL"
	colon       token = "T_COLON"
	comma       token = "T_COMMA"
	end         token = "T_END"
)

// decoder reads JSON.
type decoder struct {
	*jsonConfig
	L     *lua.LState
	s     string
	pos   int
	depth int

	token token
	at    int // where the token begins
	value lua.LValue
	tmp   []byte
}

func (c *jsonConfig) decode(L *lua.LState) int {
	if L.GetTop() != 1 {
		ArgError(L, "decode", 1, "expected 1 argument")
	}
	s := CheckString(L, "decode", 1)
	if len(s) >= 2 && (s[0] == 0 || s[1] == 0) {
		L.RaiseError("JSON parser does not support UTF-16 or UTF-32")
	}
	s, _, _ = strings.Cut(s, "\x00") // as C does
	d := decoder{jsonConfig: c, L: L, s: s}
	d.next()
	v := d.process()
	if d.next(); d.token != end {
		d.fail("the end")
	}
	L.Push(v)
	return 1
}

func (d *decoder) fail(want string) {
	d.L.RaiseError("Expected %s but found %s at character %d", want, string(d.token), d.at+1)
}

// bad makes the present position that of a token that is none.
func (d *decoder) bad(why token) { d.token, d.at = why, d.pos }

// peek returns the byte at a position; 0 behind the end.
func (d *decoder) peek(i int) byte {
	if i < len(d.s) {
		return d.s[i]
	}
	return 0
}

var singles = [256]token{'{': objectBegin, '}': objectEnd, '[': arrayBegin, ']': arrayEnd, ':': colon, ',': comma}

// next reads a token.
func (d *decoder) next() {
	for d.pos < len(d.s) && strings.IndexByte(" \t\n\r", d.s[d.pos]) >= 0 {
		if d.pos++; d.pos%chunk == 0 {
			d.m.Work(d.L, looked*chunk)
		}
	}
	d.at = d.pos
	if d.pos == len(d.s) {
		d.token = end
		return
	}
	c, rest := d.s[d.pos], d.s[d.pos:]
	if d.token = singles[c]; d.token != "" {
		d.pos++
		return
	}
	switch {
	case c == '"':
		d.text()
	case c == '-' || isDigit(c):
		if d.decodeInvalids == 0 && isInvalidNumber(rest) {
			d.bad("invalid number")
			return
		}
		d.number()
	case strings.HasPrefix(rest, "true"):
		d.found(aBoolean, lua.LTrue, 4)
	case strings.HasPrefix(rest, "false"):
		d.found(aBoolean, lua.LFalse, 5)
	case strings.HasPrefix(rest, "null"):
		d.found(aNull, Null, 4)
	case d.decodeInvalids == 1 && strings.IndexByte("+iInN", c) >= 0 && isInvalidNumber(rest):
		d.number()
	default:
		d.bad("invalid token")
	}
}

func (d *decoder) found(t token, v lua.LValue, n int) { d.token, d.value, d.pos = t, v, d.pos+n }

// isInvalidNumber reports whether text that C takes for a number is none in JSON.
func isInvalidNumber(s string) bool {
	if s[0] == '+' {
		return true
	}
	s = strings.TrimPrefix(s, "-")
	switch {
	case s == "":
		return false
	case s[0] == '0':
		return len(s) > 1 && (s[1]|0x20 == 'x' || isDigit(s[1]))
	case s[0] <= '9':
		return false
	}
	return hasFold(s, "inf") || hasFold(s, "nan")
}

func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func (d *decoder) number() {
	f, n := scanNumber(d.s[d.pos:min(len(d.s), d.pos+MaxNumber+1)])
	if n == 0 || n > MaxNumber {
		d.bad("invalid number")
		return
	}
	d.found(aNumber, lua.LNumber(f), n)
}

// scanNumber is C's strtod: it reads a number at the start of s, and returns its length.
func scanNumber(s string) (f float64, n int) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		n = 1
	}
	rest := s[n:]
	switch {
	case hasFold(rest, "infinity"):
		n += 8
	case hasFold(rest, "inf"):
		n += 3
	case hasFold(rest, "nan"):
		return math.NaN(), n + 3
	case len(rest) > 2 && hasFold(rest, "0x") && digitsAt(rest[2:], true) > 0:
		n += 2 + digitsAt(rest[2:], true)
		text := s[:n]
		if k := exponentAt(s[n:], 'p'); k > 0 {
			text, n = s[:n+k], n+k
		} else {
			text += "p0"
		}
		f, _ = strconv.ParseFloat(text, 64)
		return f, n
	default:
		k := digitsAt(rest, false)
		if k == 0 {
			return 0, 0
		}
		n += k
		n += exponentAt(s[n:], 'e')
	}
	f, _ = strconv.ParseFloat(s[:n], 64)
	return f, n
}

// digitsAt returns the length of digits with at most one point; 0 if there is no digit.
func digitsAt(s string, hex bool) int {
	digits, point := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c) || hex && c|0x20 >= 'a' && c|0x20 <= 'f':
			digits++
		case c == '.' && !point:
			point = true
		default:
			if digits == 0 {
				return 0
			}
			return i
		}
	}
	if digits == 0 {
		return 0
	}
	return len(s)
}

// exponentAt returns the length of an exponent at the start of s, or 0.
func exponentAt(s string, mark byte) int {
	if s == "" || s[0]|0x20 != mark {
		return 0
	}
	i := 1
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == start {
		return 0
	}
	return i
}

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', 'u': 'u'}

func (d *decoder) text() {
	d.pos++
	d.tmp = d.tmp[:0]
	for worked := 0; ; {
		if len(d.tmp)-worked >= chunk {
			d.m.Spend(d.L, len(d.tmp)-worked)
			d.m.Work(d.L, looked*chunk)
			worked = len(d.tmp)
		}
		c := d.peek(d.pos)
		switch c {
		case '"':
			d.m.Spend(d.L, len(d.tmp))
			d.found(aString, lua.LString(d.tmp), 1)
			return
		case 0:
			d.bad("unexpected end of string")
			return
		case '\\':
			c = unescaped[d.peek(d.pos+1)]
			if c == 'u' {
				if !d.unicode() {
					d.bad("invalid unicode escape code")
					return
				}
				continue
			}
			if c == 0 {
				d.bad("invalid escape code")
				return
			}
			d.pos++
		}
		d.tmp = append(d.tmp, c)
		d.pos++
	}
}

// unicode reads an escaped character, of one or two UTF-16 units.
func (d *decoder) unicode() bool {
	r, ok := d.hex4(d.pos + 2)
	n := 6
	if !ok {
		return false
	}
	if r&0xf800 == 0xd800 {
		low, ok := d.hex4(d.pos + 8)
		if r&0x400 != 0 || d.peek(d.pos+6) != '\\' || d.peek(d.pos+7) != 'u' || !ok || low&0xfc00 != 0xdc00 {
			return false
		}
		r, n = (r&0x3ff<<10|low&0x3ff)+0x10000, 12
	}
	d.tmp = utf8.AppendRune(d.tmp, r)
	d.pos += n
	return true
}

func (d *decoder) hex4(at int) (rune, bool) {
	if at+4 > len(d.s) {
		return 0, false
	}
	r := rune(0)
	for _, c := range []byte(d.s[at : at+4]) {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// process returns the value that begins with the present token.
func (d *decoder) process() lua.LValue {
	switch d.token {
	case aString, aNumber, aBoolean, aNull:
		return d.value
	case objectBegin:
		return d.object()
	case arrayBegin:
		return d.array()
	}
	d.fail("value")
	return nil
}

// maxJSONDepth bounds Go's stack, whatever depth a script allows. In Redis the stack of C's values
// ends at about as much.
const maxJSONDepth = 2600

func (d *decoder) descend() *lua.LTable {
	if d.depth++; d.depth > min(d.decodeDepth, maxJSONDepth) {
		d.L.RaiseError("Found too many nested data structures (%d) at character %d", d.depth, d.pos)
	}
	d.m.Work(d.L, 4096)
	d.m.Spend(d.L, 128)
	return d.L.CreateTable(0, 0)
}

func (d *decoder) object() lua.LValue {
	t := d.descend()
	if d.next(); d.token == objectEnd {
		d.depth--
		return t
	}
	for {
		if d.token != aString {
			d.fail("object key string")
		}
		key := string(d.value.(lua.LString))
		if d.next(); d.token != colon {
			d.fail("colon")
		}
		d.next()
		d.m.Spend(d.L, 64+len(key))
		d.m.Work(d.L, 512)
		t.RawSetString(key, d.process())
		if d.next(); d.token == objectEnd {
			break
		}
		if d.token != comma {
			d.fail("comma or object end")
		}
		d.next()
	}
	d.depth--
	return t
}

func (d *decoder) array() lua.LValue {
	t := d.descend()
	if d.next(); d.token == arrayEnd {
		d.depth--
		return t
	}
	for i := 1; ; i++ {
		d.m.Spend(d.L, 16)
		d.m.Work(d.L, 256)
		t.RawSetInt(i, d.process())
		if d.next(); d.token == arrayEnd {
			break
		}
		if d.token != comma {
			d.fail("comma or array end")
		}
		d.next()
	}
	d.depth--
	return t
}
