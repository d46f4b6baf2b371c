package script

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
)

func luaToNumber(L *lua.LState) int {
	base := lualib.OptInt(L, "tonumber", 2, 10)
	if base == 10 {
		if L.GetTop() < 1 {
			lualib.ArgError(L, "tonumber", 1, "value expected")
		}
		if f, ok := lualib.ToNumber(L.Get(1)); ok {
			return push(L, lua.LNumber(f))
		}
		return push(L, lua.LNil)
	}
	s := lualib.CheckString(L, "tonumber", 1)
	if base < 2 || base > 36 {
		lualib.ArgError(L, "tonumber", 2, "base out of range")
	}
	if len(s) > lualib.MaxNumber {
		return push(L, lua.LNil)
	}
	s = strings.Trim(s, " \t\n\v\f\r")
	if base == 16 && len(s) > 2 && strings.EqualFold(s[:2], "0x") {
		s = s[2:]
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(s, "+"), "-"), base, 64)
	switch {
	case err != nil && n != math.MaxUint64:
		return push(L, lua.LNil)
	case strings.HasPrefix(s, "-") && err == nil:
		n = -n // as C's strtoul
	}
	return push(L, lua.LNumber(n))
}

// luaMod is the operator %.
var luaMod = operator("__mod", modulo)

func modulo(x, y float64) float64 { return x - float64(math.Floor(x/y)*y) }

// arithmetic are the operators for strings, which have them as metamethods: gopher-lua would convert
// them to numbers by itself, however long they are, and as Go has numbers, not as C.
var arithmetic = map[string]lua.LGFunction{
	"__add": operator("__add", func(x, y float64) float64 { return x + y }),
	"__sub": operator("__sub", func(x, y float64) float64 { return x - y }),
	"__mul": operator("__mul", func(x, y float64) float64 { return x * y }),
	"__div": operator("__div", func(x, y float64) float64 { return x / y }),
	"__pow": operator("__pow", math.Pow),
	"__unm": func(L *lua.LState) int {
		x, ok := lualib.ToNumber(L.Get(1))
		if !ok {
			L.RaiseError("attempt to perform arithmetic on a %s value", lualib.TypeName(L.Get(1)))
		}
		return push(L, lua.LNumber(-x))
	},
}

// operator makes an operator for two values that are not both numbers, maybe.
func operator(event string, f func(x, y float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		a, b := L.Get(1), L.Get(2)
		x, ok1 := lualib.ToNumber(a)
		y, ok2 := lualib.ToNumber(b)
		if ok1 && ok2 {
			return push(L, lua.LNumber(f(x, y)))
		}
		method := metamethod(L, a, event)
		if method == lua.LNil {
			method = metamethod(L, b, event)
		}
		if method == lua.LNil {
			if ok1 {
				a = b
			}
			L.RaiseError("attempt to perform arithmetic on a %s value", lualib.TypeName(a))
		}
		L.Push(method)
		L.Push(a)
		L.Push(b)
		L.Call(2, 1)
		return 1
	}
}

// metamethod is a value's, unless the value is a string: those are ours.
func metamethod(L *lua.LState, v lua.LValue, event string) lua.LValue {
	if _, ok := v.(lua.LString); ok {
		return lua.LNil
	}
	return L.GetMetaField(v, event)
}
