package lualib

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Null is cjson.null, light userdata in C.
var Null = &lua.LUserData{Metatable: lua.LNil}

// jsonConfig is what the functions of a cjson table have in common.
type jsonConfig struct {
	m              Meter
	sparseConvert  int
	sparseRatio    int
	sparseSafe     int
	encodeDepth    int
	decodeDepth    int
	precision      int
	keepBuffer     int
	encodeInvalids int // an index of invalidOptions
	decodeInvalids int
}

var (
	switchOptions  = []string{"off", "on"}
	invalidOptions = []string{"off", "on", "null"}
)

// OpenJSON returns the library cjson.
func OpenJSON(L *lua.LState, m Meter) *lua.LTable {
	c := &jsonConfig{m: m, sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, precision: 14, keepBuffer: 1, decodeInvalids: 1}
	t := module(L, []function{
		{"encode", c.encode},
		{"decode", c.decode},
		{"encode_sparse_array", func(L *lua.LState) int {
			most(L, "encode_sparse_array", 3)
			return option(L, m, "encode_sparse_array", 1, &c.sparseConvert, switchOptions) +
				integerOption(L, "encode_sparse_array", 2, &c.sparseRatio, 0, math.MaxInt32) +
				integerOption(L, "encode_sparse_array", 3, &c.sparseSafe, 0, math.MaxInt32)
		}},
		integerSetting("encode_max_depth", &c.encodeDepth, math.MaxInt32),
		integerSetting("decode_max_depth", &c.decodeDepth, math.MaxInt32),
		integerSetting("encode_number_precision", &c.precision, 14),
		setting(m, "encode_keep_buffer", &c.keepBuffer, switchOptions),
		setting(m, "encode_invalid_numbers", &c.encodeInvalids, invalidOptions),
		setting(m, "decode_invalid_numbers", &c.decodeInvalids, switchOptions),
		{"new", func(L *lua.LState) int {
			L.Push(OpenJSON(L, m))
			return 1
		}},
	})
	t.RawSetString("null", Null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}

// most raises an error if there are more than n arguments. Those that are missing become nil.
func most(L *lua.LState, name string, n int) {
	if L.GetTop() > n {
		ArgError(L, name, n+1, "found too many arguments")
	}
	for L.GetTop() < n {
		L.Push(lua.LNil)
	}
}

func integerSetting(name string, to *int, max int) function {
	return function{name, func(L *lua.LState) int {
		most(L, name, 1)
		return integerOption(L, name, 1, to, 1, max)
	}}
}

func integerOption(L *lua.LState, name string, n int, to *int, least, greatest int) int {
	if L.Get(n) != lua.LNil {
		v := CheckInt(L, name, n)
		if v < least || v > greatest {
			ArgError(L, name, 1, "expected integer between "+Number(float64(least))+" and "+Number(float64(greatest)))
		}
		*to = v
	}
	L.Push(lua.LNumber(*to))
	return 1
}

func setting(m Meter, name string, to *int, options []string) function {
	return function{name, func(L *lua.LState) int {
		most(L, name, 1)
		return option(L, m, name, 1, to, options)
	}}
}

func option(L *lua.LState, m Meter, name string, n int, to *int, options []string) int {
	switch v := L.Get(n).(type) {
	case *lua.LNilType:
	case lua.LBool:
		*to = 0
		if v {
			*to = 1
		}
	default:
		word, found := CheckString(L, name, n), false
		for i, o := range options {
			if o == word {
				*to, found = i, true
			}
		}
		if !found {
			m.Spend(L, 4*len(word)) // it is copied
			ArgError(L, name, n, "invalid option '"+word+"'")
		}
	}
	if *to > 1 {
		L.Push(lua.LString(options[*to]))
	} else {
		L.Push(lua.LBool(*to == 1))
	}
	return 1
}

// encoder appends JSON to b.
type encoder struct {
	*jsonConfig
	L     *lua.LState
	b     []byte
	spent int // of b
}

func (c *jsonConfig) encode(L *lua.LState) int {
	if L.GetTop() != 1 {
		ArgError(L, "encode", 1, "expected 1 argument")
	}
	e := encoder{jsonConfig: c, L: L}
	e.value(L.Get(1), 0)
	L.Push(lua.LString(e.b))
	return 1
}

func (e *encoder) fail(v lua.LValue, why string) {
	e.L.RaiseError("Cannot serialise %s: %s", TypeName(v), why)
}

// grown announces what has been added to b.
func (e *encoder) grown() {
	n := len(e.b) - e.spent
	e.spent = len(e.b)
	e.m.Spend(e.L, n)
	e.m.Work(e.L, looked*n)
}

func (e *encoder) value(v lua.LValue, depth int) {
	if len(e.b)-e.spent > chunk {
		e.grown()
	}
	switch v := v.(type) {
	case lua.LString:
		e.text(string(v))
	case lua.LNumber:
		e.number(float64(v))
	case lua.LBool:
		if v {
			e.b = append(e.b, "true"...)
		} else {
			e.b = append(e.b, "false"...)
		}
	case *lua.LNilType:
		e.b = append(e.b, "null"...)
	case *lua.LTable:
		if depth++; depth > min(e.encodeDepth, maxJSONDepth) {
			e.L.RaiseError("Cannot serialise, excessive nesting (%d)", depth)
		}
		if n := e.arrayLength(v); n > 0 {
			e.array(v, n, depth)
		} else {
			e.object(v, depth)
		}
	default:
		if v != Null {
			e.fail(v, "type not supported")
		}
		e.b = append(e.b, "null"...)
	}
}

// arrayLength returns the greatest index of a table that has only indexes as keys, otherwise -1.
func (e *encoder) arrayLength(t *lua.LTable) int {
	e.m.Work(e.L, 64+slot*Slots(t))
	greatest, items := 0, 0
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		n, ok := k.(lua.LNumber)
		if !ok || float64(n) != math.Floor(float64(n)) || n < 1 {
			return -1
		}
		greatest = max(greatest, clampInt(float64(min(n, math.MaxInt32))))
		if items++; items%1024 == 0 {
			e.m.Work(e.L, 64*1024)
		}
	}
	if e.sparseRatio > 0 && greatest > items*e.sparseRatio && greatest > e.sparseSafe {
		if e.sparseConvert == 0 {
			e.fail(t, "excessively sparse array")
		}
		return -1
	}
	return greatest
}

func (e *encoder) array(t *lua.LTable, n, depth int) {
	e.b = append(e.b, '[')
	for i := 1; i <= n; i++ {
		if i > 1 {
			e.b = append(e.b, ',')
		}
		e.value(t.RawGet(lua.LNumber(i)), depth)
	}
	e.b = append(e.b, ']')
}

func (e *encoder) object(t *lua.LTable, depth int) {
	e.b = append(e.b, '{')
	first := true
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		switch k := k.(type) {
		case lua.LNumber:
			e.b = append(e.b, '"')
			e.number(float64(k))
			e.b = append(e.b, '"')
		case lua.LString:
			e.text(string(k))
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.b = append(e.b, ':')
		e.value(v, depth)
	}
	e.b = append(e.b, '}')
}

func (e *encoder) number(f float64) {
	if invalid := f != f || math.IsInf(f, 0); invalid {
		switch {
		case e.encodeInvalids == 0:
			e.fail(lua.LNumber(f), "must not be NaN or Inf")
		case e.encodeInvalids == 2:
			e.b = append(e.b, "null"...)
			return
		case f != f:
			e.b = append(e.b, "nan"...)
			return
		}
	}
	e.b = AppendNumber(e.b, f, e.precision)
}

func (e *encoder) text(s string) {
	const hex = "0123456789abcdef"
	e.b = append(e.b, '"')
	for i := range len(s) {
		if i%chunk == chunk-1 {
			e.grown()
		}
		switch c := s[i]; c {
		case '"', '\\', '/':
			e.b = append(e.b, '\\', c)
		case '\b':
			e.b = append(e.b, `\b`...)
		case '\t':
			e.b = append(e.b, `\t`...)
		case '\n':
			e.b = append(e.b, `\n`...)
		case '\f':
			e.b = append(e.b, `\f`...)
		case '\r':
			e.b = append(e.b, `\r`...)
		default:
			if c < ' ' || c == 127 {
				e.b = append(e.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				e.b = append(e.b, c)
			}
		}
	}
	e.b = append(e.b, '"')
}
