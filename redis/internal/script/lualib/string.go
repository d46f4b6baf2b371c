package lualib

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// OpenString returns Lua's library string.
func OpenString(L *lua.LState, m Meter) *lua.LTable {
	find := func(L *lua.LState) int { return findOrMatch(L, m, "find") }
	match := func(L *lua.LState) int { return findOrMatch(L, m, "match") }
	gmatch := func(L *lua.LState) int { return gmatch(L, m) }
	return module(L, []function{
		{"find", find}, {"match", match}, {"gmatch", gmatch}, {"gfind", gmatch},
		{"gsub", func(L *lua.LState) int { return gsub(L, m) }},
		{"format", func(L *lua.LState) int { return format(L, m) }},
		{"rep", func(L *lua.LState) int {
			s, n := CheckString(L, "rep", 1), max(CheckInt(L, "rep", 2), 0)
			if len(s) == 0 {
				n = 0
			}
			size := math.MaxInt
			if n == 0 || len(s) <= math.MaxInt/n {
				size = len(s) * n
			}
			m.Spend(L, size)
			text := strings.Repeat(s, n)
			m.Work(L, size)
			return pushString(L, text)
		}},
		{"len", func(L *lua.LState) int {
			L.Push(lua.LNumber(len(CheckString(L, "len", 1))))
			return 1
		}},
		{"sub", sub}, {"byte", bytesOf}, {"char", char},
		mapped(m, "upper", upper), mapped(m, "lower", lower),
		{"reverse", func(L *lua.LState) int { return reversed(L, m) }},
		{"dump", func(L *lua.LState) int {
			return pushString(L, "\x1bLua") // load and loadstring refuse it, as Redis's do
		}},
	})
}

func pushString(L *lua.LState, s string) int {
	L.Push(lua.LString(s))
	return 1
}

// mapped is a function that changes the bytes of a string, each by itself.
func mapped(m Meter, name string, f func([]byte)) function {
	return function{name, func(L *lua.LState) int {
		s := CheckString(L, name, 1)
		m.Spend(L, 2*len(s))
		b := make([]byte, 0, len(s))
		for from := 0; from < len(s); from += chunk {
			part := s[from:min(from+chunk, len(s))]
			b = append(b, part...)
			f(b[from:])
			m.Work(L, looked*len(part))
		}
		return pushString(L, string(b))
	}}
}

// reversed is string.reverse.
func reversed(L *lua.LState, m Meter) int {
	s := CheckString(L, "reverse", 1)
	m.Spend(L, 2*len(s))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
		if i%chunk == chunk-1 {
			m.Work(L, looked*chunk)
		}
	}
	return pushString(L, string(b))
}

func upper(b []byte) {
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 32
		}
	}
}

func lower(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 32
		}
	}
}

// position makes an index that may count from the end one from the start.
func position(i, n int) int {
	if i < 0 {
		i += n + 1
	}
	return max(i, 0)
}

func sub(L *lua.LState) int {
	s := CheckString(L, "sub", 1)
	from := max(position(CheckInt(L, "sub", 2), len(s)), 1)
	to := min(position(OptInt(L, "sub", 3, -1), len(s)), len(s))
	if from > to {
		return pushString(L, "")
	}
	return pushString(L, s[from-1:to])
}

func bytesOf(L *lua.LState) int {
	s := CheckString(L, "byte", 1)
	from := position(OptInt(L, "byte", 2, 1), len(s))
	to := min(position(OptInt(L, "byte", 3, from), len(s)), len(s))
	from = max(from, 1)
	if to-from >= maxResults {
		L.RaiseError("string slice too long")
	}
	for i := from; i <= to; i++ {
		L.Push(lua.LNumber(s[i-1]))
	}
	return max(to-from+1, 0)
}

func char(L *lua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		c := CheckInt(L, "char", i+1)
		if c < 0 || c > 255 {
			ArgError(L, "char", i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	return pushString(L, string(b))
}

func findOrMatch(L *lua.LState, m Meter, name string) int {
	s, p := CheckString(L, name, 1), CheckString(L, name, 2)
	from := min(max(position(OptInt(L, name, 3, 1), len(s)), 1)-1, len(s))
	if name == "find" && (lua.LVAsBool(L.Get(4)) || isPlain(L, m, p)) {
		if i := index(L, m, s, p, from); i >= 0 {
			L.Push(lua.LNumber(i + 1))
			L.Push(lua.LNumber(i + len(p)))
			return 2
		}
		L.Push(lua.LNil)
		return 1
	}
	ms := &matcher{L: L, m: m, src: s, pat: p}
	start := 0
	if strings.HasPrefix(p, "^") {
		start = 1
	}
	for ; from <= len(s); from++ {
		ms.level = 0
		if e := ms.match(from, start); e >= 0 {
			if name == "match" {
				return ms.push(from, e, true)
			}
			L.Push(lua.LNumber(from + 1))
			L.Push(lua.LNumber(e))
			return 2 + ms.push(from, e, false)
		}
		if start == 1 {
			break
		}
	}
	L.Push(lua.LNil)
	return 1
}

func gmatch(L *lua.LState, m Meter) int {
	s, p, from := CheckString(L, "gmatch", 1), CheckString(L, "gmatch", 2), 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		ms := &matcher{L: L, m: m, src: s, pat: p}
		for ; from <= len(s); from++ {
			ms.level = 0
			if e := ms.match(from, 0); e >= 0 {
				start := from
				if from = e; e == start {
					from++
				}
				return ms.push(start, e, true)
			}
		}
		return 0
	}))
	return 1
}

// substitution is a run of gsub.
type substitution struct {
	matcher
	b     []byte
	spent int // how much of b the Meter knows
	with  lua.LValue
}

func gsub(L *lua.LState, m Meter) int {
	g := &substitution{matcher: matcher{L: L, m: m, src: CheckString(L, "gsub", 1), pat: CheckString(L, "gsub", 2)}, with: L.Get(3)}
	switch v := g.with.(type) {
	case lua.LNumber:
		g.with = lua.LString(Number(float64(v)))
	case lua.LString, *lua.LFunction, *lua.LTable:
	default:
		ArgError(L, "gsub", 3, "string/function/table expected")
	}
	most := OptInt(L, "gsub", 4, len(g.src)+1)
	start := 0
	if strings.HasPrefix(g.pat, "^") {
		start = 1
	}
	s, n := 0, 0
	for n < most {
		g.level = 0
		e := g.match(s, start)
		if e >= 0 {
			n++
			g.add(s, e)
		}
		switch {
		case e > s:
			s = e
		case s < len(g.src):
			g.b = append(g.b, g.src[s])
			g.announce(chunk)
			s++
		default:
			L.Push(lua.LString(g.b))
			L.Push(lua.LNumber(n))
			return 2
		}
		if start == 1 {
			break
		}
	}
	m.Spend(L, len(g.src)-s)
	L.Push(lua.LString(append(g.b, g.src[s:]...)))
	L.Push(lua.LNumber(n))
	return 2
}

// add adds what replaces the match from s to e.
func (g *substitution) add(s, e int) {
	var v lua.LValue
	switch with := g.with.(type) {
	case lua.LString:
		g.template(string(with), s, e)
		return
	case *lua.LFunction:
		g.L.Push(with)
		g.L.Call(g.push(s, e, true), 1)
		v = g.L.Get(-1)
		g.L.Pop(1)
	case *lua.LTable:
		v = g.L.GetTable(with, g.captured(0, s, e))
	}
	if lua.LVIsFalse(v) {
		g.grow(g.src[s:e])
		return
	}
	text, ok := Text(v)
	if !ok {
		g.L.RaiseError("invalid replacement value (a %s)", TypeName(v))
	}
	g.grow(text)
}

func (g *substitution) grow(text string) {
	g.m.Spend(g.L, len(text))
	g.b = append(g.b, text...)
	g.spent += len(text)
}

// announce announces what has been added to b, if that is n bytes or more.
func (g *substitution) announce(n int) {
	if more := len(g.b) - g.spent; more >= n {
		g.m.Spend(g.L, more)
		g.spent = len(g.b)
	}
}

// template adds a text in which % stands before captures.
func (g *substitution) template(text string, s, e int) {
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			g.grow(text)
			return
		}
		g.grow(text[:i])
		c := byte(0)
		if i+1 < len(text) {
			c = text[i+1]
		}
		switch {
		case !isDigit(c):
			g.b = append(g.b, c)
		case c == '0':
			g.grow(g.src[s:e])
		default:
			v, _ := Text(g.captured(int(c-'1'), s, e))
			g.grow(v)
		}
		text = text[min(i+2, len(text)):]
	}
}
