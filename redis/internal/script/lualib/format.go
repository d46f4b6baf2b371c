package lualib

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// directive is a conversion of string.format.
type directive struct {
	flags     string
	width     int
	precision int // -1: none
	verb      byte
}

func format(L *lua.LState, m Meter) int {
	f, arg := CheckString(L, "format", 1), 1
	var b []byte
	for f != "" {
		i := strings.IndexByte(f, '%')
		if i < 0 {
			i = len(f)
		}
		m.Spend(L, i+1)
		b = append(b, f[:i]...)
		if f = f[i:]; f == "" {
			break
		}
		if strings.HasPrefix(f, "%%") {
			b, f = append(b, '%'), f[2:]
			continue
		}
		if arg++; arg > L.GetTop() {
			ArgError(L, "format", arg, "no value")
		}
		d, rest := scanDirective(L, f[1:])
		f = rest
		b = d.append(L, m, b, arg)
	}
	return pushString(L, string(b))
}

func scanDirective(L *lua.LState, f string) (d directive, rest string) {
	n := 0
	for n < len(f) && strings.IndexByte("-+ #0", f[n]) >= 0 {
		if n++; n >= 6 {
			L.RaiseError("invalid format (repeated flags)")
		}
	}
	d.flags, rest = f[:n], f[n:]
	number := func() (n int) {
		for i := 0; i < 2 && rest != "" && isDigit(rest[0]); i++ {
			n, rest = 10*n+int(rest[0]-'0'), rest[1:]
		}
		return n
	}
	d.width, d.precision = number(), -1
	if strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		d.precision = number()
	}
	if rest == "" {
		return d, ""
	}
	if isDigit(rest[0]) {
		L.RaiseError("invalid format (width or precision too long)")
	}
	d.verb = rest[0]
	return d, rest[1:]
}

func (d *directive) has(flag byte) bool { return strings.IndexByte(d.flags, flag) >= 0 }

func (d *directive) append(L *lua.LState, m Meter, b []byte, arg int) []byte {
	switch d.verb {
	case 'c':
		text := string([]byte{byte(Int64(CheckNumber(L, "format", arg)))})
		return d.cString(b, text)
	case 'd', 'i':
		n := Int64(CheckNumber(L, "format", arg))
		digits := strconv.FormatUint(absolute(n), 10)
		return d.integer(b, d.sign(n < 0), digits)
	case 'o', 'u', 'x', 'X':
		return d.unsigned(b, uint64Of(CheckNumber(L, "format", arg)))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(b, CheckNumber(L, "format", arg))
	case 'q':
		return quoted(L, m, b, CheckString(L, "format", arg))
	case 's':
		s := CheckString(L, "format", arg)
		if d.precision >= 0 {
			s = s[:min(len(s), d.precision)]
		}
		m.Spend(L, len(s)+100)
		if d.precision < 0 && len(s) >= 100 {
			return append(b, s...)
		}
		s, _, _ = strings.Cut(s, "\x00") // C's printf ends there
		return d.pad(b, "", s, false)
	}
	L.RaiseError("invalid option '%%%s' to 'format'", string([]byte{d.verb}))
	return nil
}

// cString adds one character as C does: with the zero byte the text ends before it.
func (d *directive) cString(b []byte, text string) []byte {
	if text[0] != 0 {
		return d.pad(b, "", text, false)
	}
	if d.has('-') || d.width == 0 {
		return b
	}
	return append(b, strings.Repeat(" ", d.width-1)...)
}

func absolute(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func (d *directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.has('+'):
		return "+"
	case d.has(' '):
		return " "
	}
	return ""
}

func (d *directive) unsigned(b []byte, n uint64) []byte {
	base, prefix := 10, ""
	switch d.verb {
	case 'o':
		base = 8
	case 'x', 'X':
		base = 16
		if d.has('#') && n != 0 {
			prefix = "0x"
		}
	}
	digits := strconv.FormatUint(n, base)
	if d.verb == 'o' && d.has('#') && digits[0] != '0' {
		digits = "0" + digits
	}
	if d.verb == 'X' {
		digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
	}
	return d.integer(b, prefix, digits)
}

// integer adds digits, of which there are as many as the precision says.
func (d *directive) integer(b []byte, prefix, digits string) []byte {
	if d.precision == 0 && digits == "0" {
		digits = ""
	}
	if n := d.precision - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	return d.pad(b, prefix, digits, d.precision < 0)
}

func (d *directive) float(b []byte, f float64) []byte {
	upper := d.verb < 'a'
	if f != f || math.IsInf(f, 0) {
		text := "inf"
		if f != f {
			text = "nan"
		}
		if upper {
			text = strings.ToUpper(text)
		}
		return d.pad(b, d.sign(math.Signbit(f)), text, false)
	}
	spec := "%"
	if d.has('#') {
		spec += "#"
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	} else if precision == 0 && d.verb|0x20 == 'g' {
		precision = 1
	}
	text := fmt.Sprintf(spec+".*"+string(rune(d.verb)), precision, math.Abs(f))
	return d.pad(b, d.sign(math.Signbit(f)), text, true)
}

// pad adds a text with its sign or prefix, in the width.
func (d *directive) pad(b []byte, prefix, text string, zeros bool) []byte {
	n := d.width - len(prefix) - len(text)
	switch {
	case n <= 0:
		return append(append(b, prefix...), text...)
	case d.has('-'):
		b = append(append(b, prefix...), text...)
		return append(b, strings.Repeat(" ", n)...)
	case zeros && d.has('0'):
		b = append(append(b, prefix...), strings.Repeat("0", n)...)
		return append(b, text...)
	}
	b = append(b, strings.Repeat(" ", n)...)
	return append(append(b, prefix...), text...)
}

// quoted adds a string as Lua source has it.
func quoted(L *lua.LState, m Meter, b []byte, s string) []byte {
	m.Spend(L, 2*len(s))
	b = append(b, '"')
	for i := range len(s) {
		if i%chunk == chunk-1 {
			m.Work(L, looked*chunk)
		}
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b = append(b, '\\', c)
		case '\r':
			b = append(b, `\r`...)
		case 0:
			b = append(b, `\000`...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
