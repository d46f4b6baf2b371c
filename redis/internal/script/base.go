package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
)

const (
	readonlyTable = "Attempt to modify a readonly table"
	nonexistent   = "Script attempted to access nonexistent global variable '%s'"
)

// newEnvironment makes the globals of scripts, with a table redis.
func (e *Engine) newEnvironment(redis *lua.LTable) *environment {
	L := e.L
	g := L.NewTable()
	for name, f := range e.baseFunctions() {
		g.RawSetString(name, L.NewFunction(f))
	}
	str := lualib.OpenString(L, e)
	for name, t := range map[string]*lua.LTable{
		"string": str, "table": lualib.OpenTable(L, e, e.writable), "math": lualib.OpenMath(L, e.random),
		"coroutine": e.coroutineTable(), "redis": redis, "bit": lualib.OpenBit(L),
		"cjson": lualib.OpenJSON(L, e), "cmsgpack": lualib.OpenMsgpack(L, e), "struct": lualib.OpenStruct(L, e),
	} {
		g.RawSetString(name, e.readonly(t))
	}
	if L.GetMetatable(lua.LString("")) == lua.LNil {
		mt := L.NewTable()
		mt.RawSetString("__index", str)
		for name, f := range arithmetic {
			mt.RawSetString(name, L.NewFunction(f))
		}
		L.SetMetatable(lua.LString(""), mt)
	}
	g.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	e.guard(g)
	proxy := e.readonly(g)
	g.RawSetString("_G", proxy)
	return &environment{globals: g, proxy: proxy, meta: proxy.Metatable.(*lua.LTable)}
}

// guard makes the use of a name that a table of globals does not have an error.
func (e *Engine) guard(g *lua.LTable) {
	missing := e.L.NewTable()
	missing.RawSetString("__index", e.L.NewFunction(func(L *lua.LState) int {
		name, ok := lualib.Text(L.Get(2))
		if !ok {
			L.RaiseError("Second argument to luaProtectedTableError must be a string or number")
		}
		e.Spend(L, 4*len(name)) // it is copied
		L.RaiseError(nonexistent, name)
		return 0
	}))
	g.Metatable = missing
}

// readonly makes a table that shows another one and cannot be changed.
func (e *Engine) readonly(t *lua.LTable) *lua.LTable {
	proxy, mt := e.L.CreateTable(0, 0), e.L.CreateTable(0, 4)
	mt.RawSetString("__index", t)
	mt.RawSetString("__newindex", e.L.NewFunction(func(L *lua.LState) int {
		L.RaiseError(readonlyTable)
		return 0
	}))
	proxy.Metatable = mt
	e.proxies[proxy] = t
	return proxy
}

// shown returns the table whose content a table shows: itself, or another one.
func (e *Engine) shown(t *lua.LTable) *lua.LTable {
	if t.Metatable != lua.LNil {
		if real := e.proxies[t]; real != nil {
			return real
		}
	}
	return t
}

// writable raises an error for a table that is read-only.
func (e *Engine) writable(L *lua.LState, t *lua.LTable) {
	if e.shown(t) != t {
		e.raise(L, lua.LString(readonlyTable))
	}
}

// baseFunctions are the functions that are globals.
func (e *Engine) baseFunctions() map[string]lua.LGFunction {
	next := e.L.NewFunction(e.luaNext)
	ipairsNext := e.L.NewFunction(func(L *lua.LState) int {
		i := lualib.CheckInt(L, "ipairs", 2) + 1
		v := e.shown(lualib.CheckTable(L, "ipairs", 1)).RawGet(lua.LNumber(i))
		if v == lua.LNil {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(i))
		L.Push(v)
		return 2
	})
	return map[string]lua.LGFunction{
		"assert": e.luaAssert, "error": e.luaError, "pcall": e.luaPcall, "xpcall": e.luaXpcall,
		"next": e.luaNext, "select": luaSelect, "unpack": e.luaUnpack,
		"tonumber": luaToNumber, "tostring": luaToString,
		"getmetatable": e.luaGetMetatable, "setmetatable": e.luaSetMetatable,
		"rawget": e.luaRawGet, "rawset": e.luaRawSet, "rawequal": luaRawEqual,
		"load": e.luaLoad, "loadstring": e.luaLoadString,
		"newproxy": luaNewProxy,
		"type": func(L *lua.LState) int {
			if L.GetTop() < 1 {
				lualib.ArgError(L, "type", 1, "value expected")
			}
			return push(L, lua.LString(lualib.TypeName(L.Get(1))))
		},
		"pairs": func(L *lua.LState) int {
			L.Push(next)
			L.Push(lualib.CheckTable(L, "pairs", 1))
			L.Push(lua.LNil)
			return 3
		},
		"ipairs": func(L *lua.LState) int {
			L.Push(ipairsNext)
			L.Push(lualib.CheckTable(L, "ipairs", 1))
			L.Push(lua.LNumber(0))
			return 3
		},
		"collectgarbage": func(L *lua.LState) int { return push(L, lua.LNumber(0)) },
		"gcinfo": func(L *lua.LState) int {
			L.Push(lua.LNumber(0))
			return push(L, lua.LNumber(0)) + 1
		},
	}
}

func push(L *lua.LState, v lua.LValue) int {
	L.Push(v)
	return 1
}

func (e *Engine) luaNext(L *lua.LState) int {
	t := e.shown(lualib.CheckTable(L, "next", 1))
	k := L.Get(2)
	k, v := t.Next(k)
	if k == lua.LNil {
		return push(L, lua.LNil)
	}
	L.Push(k)
	return 1 + push(L, v)
}

func (e *Engine) luaAssert(L *lua.LState) int {
	n := L.GetTop()
	if n < 1 {
		lualib.ArgError(L, "assert", 1, "value expected")
	}
	if !lua.LVAsBool(L.Get(1)) {
		text := "assertion failed!"
		if L.Get(2) != lua.LNil {
			text = lualib.CheckString(L, "assert", 2)
		}
		e.Spend(L, 4*len(text)) // it is copied
		L.Error(lua.LString(text), 0+1)
	}
	return n
}

func luaSelect(L *lua.LState) int {
	n := L.GetTop()
	if s, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(s), "#") {
		return push(L, lua.LNumber(n-1))
	}
	i := lualib.CheckInt(L, "select", 1)
	if i < 0 {
		i = n + i
	} else if i > n {
		i = n
	}
	if i < 1 {
		lualib.ArgError(L, "select", 1, "index out of range")
	}
	return n - i
}

func (e *Engine) luaUnpack(L *lua.LState) int {
	t := e.shown(lualib.CheckTable(L, "unpack", 1))
	from, to := lualib.OptInt(L, "unpack", 2, 1), 0
	if L.Get(3) == lua.LNil {
		to = t.Len()
	} else {
		to = lualib.CheckInt(L, "unpack", 3)
	}
	if from > to {
		return 0
	}
	if n := to - from + 1; n <= 0 || n >= 8000 {
		L.RaiseError("too many results to unpack")
	}
	e.Spend(L, 16*(to-from+1))
	for i := range to - from + 1 {
		L.Push(t.RawGet(lua.LNumber(from + i)))
	}
	return to - from + 1
}

func luaToString(L *lua.LState) int {
	if L.GetTop() < 1 {
		lualib.ArgError(L, "tostring", 1, "value expected")
	}
	v := L.Get(1)
	if f := L.GetMetaField(v, "__tostring"); f != lua.LNil {
		L.Push(f)
		L.Push(v)
		L.Call(1, 1)
		return 1
	}
	if s, ok := lualib.Text(v); ok {
		return push(L, lua.LString(s))
	}
	if v == lualib.Null {
		return push(L, lua.LString("userdata: (nil)"))
	}
	return push(L, lua.LString(v.String()))
}

func (e *Engine) luaGetMetatable(L *lua.LState) int {
	if L.GetTop() < 1 {
		lualib.ArgError(L, "getmetatable", 1, "value expected")
	}
	v := L.Get(1)
	if t, ok := v.(*lua.LTable); ok && e.proxies[t] != nil {
		return push(L, e.temporary(e.L.CreateTable(0, 0)))
	}
	mt, ok := L.GetMetatable(v).(*lua.LTable)
	if !ok {
		return push(L, lua.LNil)
	}
	if protected := mt.RawGetString("__metatable"); protected != lua.LNil {
		return push(L, protected)
	}
	if _, ok := v.(lua.LString); ok {
		shown := e.L.CreateTable(0, 1)
		shown.RawSetString("__index", e.eval.globals.RawGetString("string"))
		return push(L, e.temporary(shown))
	}
	return push(L, mt)
}

// temporary is readonly for a table that the script alone may keep.
func (e *Engine) temporary(t *lua.LTable) *lua.LTable {
	proxy := e.readonly(t)
	delete(e.proxies, proxy)
	proxy.Metatable.(*lua.LTable).RawSetString("__metatable", lua.LFalse)
	return proxy
}

func (e *Engine) luaSetMetatable(L *lua.LState) int {
	t := lualib.CheckTable(L, "setmetatable", 1)
	mt := L.Get(2)
	if _, ok := mt.(*lua.LTable); !ok && (mt != lua.LNil || L.GetTop() < 2) {
		lualib.ArgError(L, "setmetatable", 2, "nil or table expected")
	}
	e.writable(L, t)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	t.Metatable = mt
	return push(L, t)
}

func (e *Engine) luaRawGet(L *lua.LState) int {
	t := lualib.CheckTable(L, "rawget", 1)
	return push(L, e.shown(t).RawGet(L.Get(2)))
}

func (e *Engine) luaRawSet(L *lua.LState) int {
	t := lualib.CheckTable(L, "rawset", 1)
	e.writable(L, t)
	if t.Metatable != lua.LNil && t.Metatable.(*lua.LTable).RawGetString("__metatable") == lua.LFalse {
		e.raise(L, lua.LString(readonlyTable))
	}
	if n, ok := L.Get(2).(lua.LNumber); ok {
		e.Spend(L, lualib.SparseCost(t, float64(n)))
	}
	lualib.RawSet(L, t, L.Get(2), L.Get(3))
	return push(L, t)
}

func luaRawEqual(L *lua.LState) int { return push(L, lua.LBool(L.RawEqual(L.Get(1), L.Get(2)))) }

func luaNewProxy(L *lua.LState) int {
	u := L.NewUserData()
	switch v := L.Get(1).(type) {
	case lua.LBool:
		if v {
			u.Metatable = L.NewTable()
		}
	case *lua.LUserData:
		u.Metatable = v.Metatable
	}
	return push(L, u)
}

// luaConcat is the operator .. of two or more values.
func (e *Engine) luaConcat(L *lua.LState) int {
	n := L.GetTop()
	size := 0
	var room [8]string
	parts := room[:0]
	for i := 1; i <= n; i++ {
		s, ok := lualib.Text(L.Get(i))
		if !ok {
			return e.concatOthers(L, n)
		}
		parts = append(parts, s)
		size += len(s)
	}
	e.Spend(L, size)
	return push(L, lua.LString(strings.Join(parts, "")))
}

// concatOthers concatenates values that are not all text, from the right.
func (e *Engine) concatOthers(L *lua.LState, n int) int {
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		a, isText := lualib.Text(left)
		b, areBoth := lualib.Text(right)
		if isText && areBoth {
			e.Spend(L, len(a)+len(b))
			right = lua.LString(a + b)
			continue
		}
		f := L.GetMetaField(left, "__concat")
		if f == lua.LNil {
			f = L.GetMetaField(right, "__concat")
		}
		if f == lua.LNil {
			if isText {
				left = right
			}
			L.RaiseError("attempt to concatenate a %s value", lualib.TypeName(left))
		}
		L.Push(f)
		L.Push(left)
		L.Push(right)
		L.Call(2, 1)
		right = L.Get(-1)
		L.Pop(1)
	}
	return push(L, right)
}

// luaIndex returns its first argument, an index, for which a table may need memory. The second is the
// table, if that is known.
func (e *Engine) luaIndex(L *lua.LState) int {
	k := L.Get(1)
	n, ok := k.(lua.LNumber)
	if !ok || n < 1<<12 {
		return push(L, k)
	}
	t, _ := L.Get(2).(*lua.LTable)
	if t != nil && t.Metatable != lua.LNil {
		t = nil // __newindex may lead to another one
	}
	if t == nil || t.RawGetInt(int(min(n, lua.LNumber(lua.MaxArrayIndex))-1)) == lua.LNil {
		e.Spend(L, lualib.SparseCost(t, float64(n)))
	}
	return push(L, k)
}

// luaSpread returns its arguments, for which a table's list gets memory.
func (e *Engine) luaSpread(L *lua.LState) int {
	n := L.GetTop()
	e.Spend(L, 16*n)
	return n
}

// luaArg makes the table arg of a function with more arguments than names.
func (e *Engine) luaArg(L *lua.LState) int {
	n := L.GetTop()
	e.Spend(L, 16*n)
	t := L.CreateTable(n, 1)
	for i := 1; i <= n; i++ {
		t.RawSetInt(i, L.Get(i))
	}
	t.RawSetString("n", lua.LNumber(n))
	return push(L, t)
}
