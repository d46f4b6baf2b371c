package lualib

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// A Meter bounds what a script uses. Its methods raise a Lua error if the script must end.
type Meter interface {
	// Spend is called before memory of n bytes is allocated for a script. It is Work, too.
	Spend(L *lua.LState, n int)
	// Work is called now and then during work that runs no instructions, so that other clients get
	// their turn: it may return a long time later. n is how many bytes were copied. Each call looks
	// whether it is time for others, so a loop that calls it often enough needs no exact n.
	Work(L *lua.LState, n int)
}

const (
	// chunk is after how many bytes at most Work is called.
	chunk = 64 << 10
	// looked is how many bytes could be copied in the time in which one is looked at.
	looked = 8
	// slot is how many bytes could be copied in the time in which a slot of a table is looked at.
	slot = 4
)

// function is a function of a library.
type function struct {
	name string
	f    func(L *lua.LState) int
}

// module makes a table of functions.
func module(L *lua.LState, functions []function) *lua.LTable {
	t := L.NewTable()
	for _, f := range functions {
		t.RawSetString(f.name, L.NewFunction(f.f))
	}
	return t
}

// ArgError raises the error that an argument is wrong.
func ArgError(L *lua.LState, name string, n int, text string) {
	L.RaiseError("bad argument #%d to '%s' (%s)", n, name, text)
}

// TypeError raises the error that an argument has the wrong type.
func TypeError(L *lua.LState, name string, n int, want string) {
	got := "no value"
	if n <= L.GetTop() {
		got = TypeName(L.Get(n))
	}
	ArgError(L, name, n, want+" expected, got "+got)
}

// TypeName is the name of a value's type. Null is light userdata in C.
func TypeName(v lua.LValue) string { return v.Type().String() }

// CheckString returns an argument that is a string, or a number as text.
func CheckString(L *lua.LState, name string, n int) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return Number(float64(v))
	}
	TypeError(L, name, n, "string")
	return ""
}

// CheckNumber returns an argument that is a number, or the text of one.
func CheckNumber(L *lua.LState, name string, n int) float64 {
	f, ok := ToNumber(L.Get(n))
	if !ok {
		TypeError(L, name, n, "number")
	}
	return f
}

// CheckInt returns a number without its fraction.
func CheckInt(L *lua.LState, name string, n int) int { return clampInt(CheckNumber(L, name, n)) }

// OptInt is CheckInt for an argument that may be missing.
func OptInt(L *lua.LState, name string, n, otherwise int) int {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return CheckInt(L, name, n)
}

// CheckTable returns an argument that is a table.
func CheckTable(L *lua.LState, name string, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		TypeError(L, name, n, "table")
	}
	return t
}

// clampInt converts a number as C does on amd64, but with a large one it gives the nearest int.
func clampInt(f float64) int {
	switch {
	case f != f:
		return math.MinInt
	case f >= math.MaxInt:
		return math.MaxInt
	case f <= math.MinInt:
		return math.MinInt
	}
	return int(f)
}

// Int64 converts a number as C does on amd64: one that does not fit becomes the least integer.
func Int64(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// uint64Of converts a number to C's unsigned long.
func uint64Of(f float64) uint64 {
	switch {
	case f >= 1<<64:
		return 0
	case f >= 1<<63:
		return uint64(f)
	}
	return uint64(Int64(f))
}

// ToNumber converts a value to a number as Lua does.
func ToNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return ParseNumber(string(v))
	}
	return 0, false
}

// MaxNumber is the length of the longest text that is a number. The digits of any float64 fit in it
// three times. In C a number may be as long as a string.
const MaxNumber = 4 << 10

// ParseNumber converts text to a number as Lua does, that is C's strtod.
func ParseNumber(s string) (float64, bool) {
	if len(s) > MaxNumber {
		return 0, false
	}
	s = strings.Trim(s, " \t\n\v\f\r")
	if s == "" || strings.IndexByte(s, '_') >= 0 {
		return 0, false
	}
	digits := strings.TrimLeft(s, "+-")
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' && !strings.ContainsAny(digits, "pP") {
		s += "p0" // Go wants an exponent
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// Number is the text of a number: C's %.14g.
func Number(f float64) string {
	if i := int64(f); float64(i) == f && i > -1e14 && i < 1e14 && (i != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(i, 10)
	}
	var room [32]byte
	return string(AppendNumber(room[:0], f, 14))
}

// AppendNumber appends C's %.<precision>g of a number.
func AppendNumber(b []byte, f float64, precision int) []byte {
	switch {
	case f != f && math.Signbit(f):
		return append(b, "-nan"...)
	case f != f:
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	return strconv.AppendFloat(b, f, 'g', precision, 64)
}

// Text is tostring of a string or a number; ok is false for other values.
func Text(v lua.LValue) (s string, ok bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return Number(float64(v)), true
	}
	return "", false
}

// RawSet sets an element. Its errors name no line, as those of C's functions.
func RawSet(L *lua.LState, t *lua.LTable, k, v lua.LValue) {
	if f, ok := k.(lua.LNumber); ok && f != f {
		L.Error(lua.LString("table index is NaN"), 0)
	}
	if k == lua.LNil {
		L.Error(lua.LString("table index is nil"), 0)
	}
	t.RawSet(k, v)
}
