package lualib

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// OpenStruct returns the library struct: binary records. Sizes, alignment and the order of
// bytes are those of C on amd64.
func OpenStruct(L *lua.LState, m Meter) *lua.LTable {
	return module(L, []function{
		{"pack", func(L *lua.LState) int { return structPack(L, m) }},
		{"unpack", func(L *lua.LState) int { return structUnpack(L, m) }},
		{"size", func(L *lua.LState) int { return structSize(L, m) }},
	})
}

const (
	maxIntSize = 32
	maxAlign   = 8
	// maxResults is how many values a function may return, as in C.
	maxResults = 7900
)

// layout reads a format.
type layout struct {
	L      *lua.LState
	m      Meter
	name   string
	format string
	big    bool
	align  int
}

func newLayout(L *lua.LState, m Meter, name string) *layout {
	format, _, _ := strings.Cut(CheckString(L, name, 1), "\x00")
	return &layout{L: L, m: m, name: name, format: format, align: 1}
}

// next returns the next option with its size.
func (l *layout) next() (opt byte, size int) {
	l.m.Work(l.L, 256)
	opt, l.format = l.format[0], l.format[1:]
	switch opt {
	case 'B', 'b', 'x':
		return opt, 1
	case 'H', 'h':
		return opt, 2
	case 'f':
		return opt, 4
	case 'L', 'l', 'T', 'd':
		return opt, 8
	case 'c':
		return opt, l.number(1)
	case 'i', 'I':
		if size = l.number(4); size > maxIntSize {
			l.L.RaiseError("integral size %d is larger than limit of %d", size, maxIntSize)
		}
	}
	return opt, size
}

// number takes a number from the front of the format.
func (l *layout) number(otherwise int) int {
	if l.format == "" || !isDigit(l.format[0]) {
		return otherwise
	}
	n := 0
	for i := 1; l.format != "" && isDigit(l.format[0]); i++ {
		if i%chunk == 0 {
			l.m.Work(l.L, looked*chunk) // zeros, however many
		}
		if n = 10*n + int(l.format[0]-'0'); n > math.MaxInt32 {
			l.L.RaiseError("integral size overflow")
		}
		l.format = l.format[1:]
	}
	return n
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// padding returns the bytes before an element at a position.
func (l *layout) padding(pos int, opt byte, size int) int {
	if size == 0 || opt == 'c' {
		return 0
	}
	size = min(size, l.align)
	return (size - pos&(size-1)) & (size - 1)
}

// control runs an option that is no element.
func (l *layout) control(opt byte) {
	switch opt {
	case ' ':
	case '>':
		l.big = true
	case '<':
		l.big = false
	case '!':
		n := l.number(maxAlign)
		if n <= 0 || n&(n-1) != 0 {
			l.L.RaiseError("alignment %d is not a power of 2", n)
		}
		l.align = n
	default:
		ArgError(l.L, l.name, 1, fmt.Sprintf("invalid format option '%c'", opt))
	}
}

func (l *layout) order() binary.ByteOrder {
	if l.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func structPack(L *lua.LState, m Meter) int {
	l := newLayout(L, m, "pack")
	var b []byte
	for arg := 2; l.format != ""; {
		opt, size := l.next()
		pad := l.padding(len(b), opt, size)
		m.Spend(L, pad+maxIntSize)
		b = append(b, make([]byte, pad)...)
		switch opt {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			b = l.appendInteger(b, CheckNumber(L, l.name, arg), size)
			arg++
		case 'x':
			b = append(b, 0)
		case 'f':
			b = appendOrdered(b, l, uint64(math.Float32bits(float32(CheckNumber(L, l.name, arg)))), 4)
			arg++
		case 'd':
			b = appendOrdered(b, l, math.Float64bits(CheckNumber(L, l.name, arg)), 8)
			arg++
		case 'c', 's':
			s := CheckString(L, l.name, arg)
			arg++
			if size == 0 {
				size = len(s)
			}
			if len(s) < size {
				ArgError(L, l.name, arg, "string too short")
			}
			m.Spend(L, size)
			b = append(b, s[:size]...)
			if opt == 's' {
				b = append(b, 0)
			}
		default:
			l.control(opt)
		}
	}
	L.Push(lua.LString(b))
	return 1
}

// appendInteger appends an integer of any size. Beyond 8 bytes the rest is 0, even for a
// negative one, as in C.
func (l *layout) appendInteger(b []byte, f float64, size int) []byte {
	v := uint64(Int64(f))
	if f >= 0 {
		v = uint64Of(f)
	}
	return appendOrdered(b, l, v, size)
}

func appendOrdered(b []byte, l *layout, v uint64, size int) []byte {
	start := len(b)
	for range size {
		b = append(b, byte(v))
		v >>= 8
	}
	if l.big {
		for i, j := start, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
	return b
}

// integer reads an integer. Of a long one the low 8 bytes count.
func (l *layout) integer(p string, signed bool) float64 {
	v := uint64(0)
	for i := range len(p) {
		if l.big {
			v = v<<8 | uint64(p[i])
		} else {
			v = v<<8 | uint64(p[len(p)-1-i])
		}
	}
	if !signed {
		return float64(v)
	}
	if n := 64 - 8*len(p); n > 0 {
		return float64(int64(v<<n) >> n)
	}
	return float64(int64(v))
}

func structUnpack(L *lua.LState, m Meter) int {
	l := newLayout(L, m, "unpack")
	data := CheckString(L, l.name, 2)
	pos := OptInt(L, l.name, 3, 1) - 1
	if pos < 0 {
		ArgError(L, l.name, 3, "offset must be 1 or greater")
	}
	short := func(size int) {
		if size > len(data) || size < 0 || pos > len(data)-size {
			ArgError(L, l.name, 2, "data string too short")
		}
	}
	n := 0
	push := func(v lua.LValue) {
		if n++; n > maxResults {
			L.RaiseError("stack overflow (too many results)")
		}
		L.Push(v)
	}
	for l.format != "" {
		opt, size := l.next()
		pos += l.padding(pos, opt, size)
		short(size)
		switch opt {
		case 'b', 'h', 'l', 'i':
			push(lua.LNumber(l.integer(data[pos:pos+size], true)))
		case 'B', 'H', 'L', 'T', 'I':
			push(lua.LNumber(l.integer(data[pos:pos+size], false)))
		case 'x':
		case 'f':
			push(lua.LNumber(math.Float32frombits(l.order().Uint32([]byte(data[pos : pos+4])))))
		case 'd':
			push(lua.LNumber(math.Float64frombits(l.order().Uint64([]byte(data[pos : pos+8])))))
		case 'c':
			if size == 0 {
				f, isNumber := ToNumber(L.Get(-1))
				if n == 0 || !isNumber {
					L.RaiseError("format 'c0' needs a previous size")
				}
				L.Pop(1)
				n--
				size = int(min(uint64Of(f), math.MaxInt))
				short(size)
			}
			push(lua.LString(data[pos : pos+size]))
		case 's':
			end := strings.IndexByte(data[pos:], 0)
			if end < 0 {
				L.RaiseError("unfinished string in data")
			}
			push(lua.LString(data[pos : pos+end]))
			size = end + 1
		default:
			l.control(opt)
		}
		pos += size
		m.Work(L, 4096)
	}
	L.Push(lua.LNumber(pos + 1))
	return n + 1
}

func structSize(L *lua.LState, m Meter) int {
	l := newLayout(L, m, "size")
	pos := 0
	for l.format != "" {
		opt, size := l.next()
		pos += l.padding(pos, opt, size)
		switch {
		case opt == 's':
			ArgError(L, l.name, 1, "option 's' has no fixed size")
		case opt == 'c' && size == 0:
			ArgError(L, l.name, 1, "option 'c0' has no fixed size")
		case !isDigit(opt) && (opt|0x20 < 'a' || opt|0x20 > 'z'):
			l.control(opt)
		}
		pos += size
	}
	L.Push(lua.LNumber(pos))
	return 1
}
