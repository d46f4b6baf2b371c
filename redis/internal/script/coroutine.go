package script

import (
	"runtime"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

const yieldAcross = "attempt to yield across metamethod/C-call boundary"

// acrossGo reports whether the function that calls it, coroutine.yield, was called by the
// interpreter within a function of Go's, such as pcall or a metamethod's caller: that cannot
// return before its callee has. gopher-lua does not look, and goes on with a wrong stack. Only
// Go's stack tells.
func acrossGo() bool {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for loops := 0; ; {
		frame, more := frames.Next()
		switch _, name, _ := strings.Cut(frame.Function, "gopher-lua."); name {
		case "mainLoopWithContext":
			loops++
		case "threadRun":
			return loops != 1
		}
		if !more || loops > 1 {
			return true
		}
	}
}

// ofLuaName is the name of the chunk ofLuaSource, and so begins the errors of what it calls.
const ofLuaName = "\x00"

// ofLuaSource makes a function of Lua's of one of Go's. gopher-lua cannot run a function of Go's as a
// coroutine, nor resume a coroutine that has called yield as a tail call: the caller's frame has gone
// then. all returns its arguments.
const ofLuaSource = `local all = ... return function(f) return function(...) return all(f(...)) end end`

// wrapper returns the function that ofLuaSource makes.
func (e *Engine) wrapper() *lua.LFunction {
	chunk, err := parse.Parse(strings.NewReader(ofLuaSource), ofLuaName)
	if err != nil {
		panic(err)
	}
	proto, err := lua.Compile(chunk, ofLuaName)
	if err != nil {
		panic(err)
	}
	f, err := e.close(proto, e.L.NewTable(), []lua.LValue{e.L.NewFunction(e.luaSpread)})
	if err != nil {
		panic(err)
	}
	return f
}

// ofLua makes a function of Lua's of one of Go's.
func (e *Engine) ofLua(L *lua.LState, f *lua.LFunction) *lua.LFunction {
	L.Push(e.wrap)
	L.Push(f)
	L.Call(1, 1)
	made := L.Get(-1).(*lua.LFunction)
	L.Pop(1)
	return made
}

// coroutineTable makes the library coroutine: gopher-lua's, with threads that count their
// instructions, and that resume each other only so deep.
func (e *Engine) coroutineTable() *lua.LTable {
	L := e.L
	top := L.GetTop()
	lua.OpenCoroutine(L)
	theirs := L.Get(-1).(*lua.LTable)
	L.SetTop(top)
	function := func(name string) lua.LGFunction { return theirs.RawGetString(name).(*lua.LFunction).GFunction }
	create, resume, yield := function("create"), function("resume"), function("yield")
	newThread := func(L *lua.LState) int {
		e.Spend(L, 64<<10)
		if f, ok := L.Get(1).(*lua.LFunction); ok && f.IsG {
			L.Replace(1, e.ofLua(L, f))
		}
		create(L)
		th := L.Get(-1).(*lua.LState)
		th.SetContext(&hook{engine: e, L: th})
		return 1
	}
	resumed := func(L *lua.LState) int { return e.resume(L, resume) }
	t := L.NewTable()
	t.RawSetString("yield", e.ofLua(L, L.NewFunction(func(L *lua.LState) int {
		if L.Parent == nil || acrossGo() {
			e.raised, e.raisedWhere = lua.LString(yieldAcross), place(L, 2)
			L.Error(e.raised, 0)
		}
		return yield(L)
	})))
	for _, name := range []string{"status", "running"} {
		t.RawSetString(name, L.NewFunction(function(name)))
	}
	t.RawSetString("create", L.NewFunction(newThread))
	t.RawSetString("resume", L.NewFunction(resumed))
	t.RawSetString("wrap", L.NewFunction(func(L *lua.LState) int {
		newThread(L)
		th := L.Get(-1)
		L.Pop(1)
		return push(L, L.NewClosure(func(L *lua.LState) int {
			L.Insert(th, 1)
			return e.unwrap(L, resumed(L))
		}))
	}))
	return t
}

// resume resumes the coroutine that is the first argument, by gopher-lua's function.
func (e *Engine) resume(L *lua.LState, resume lua.LGFunction) int {
	if e.resumed >= maxCoroutines {
		L.Push(lua.LFalse)
		return 1 + push(L, lua.LString("C stack overflow"))
	}
	if th, ok := L.Get(1).(*lua.LState); ok && th.Dead {
		L.Push(lua.LFalse)
		return 1 + push(L, lua.LString("cannot resume dead coroutine"))
	}
	e.Spend(L, 16*L.GetTop())
	e.resumed++
	n := resume(L)
	e.resumed--
	if text, ok := L.Get(-1).(lua.LString); ok && n == 2 && L.Get(-2) == lua.LFalse {
		// The text of an error is translated here, since it may hold a long key.
		L.Pop(1)
		return 1 + push(L, lua.LString(translate(strings.TrimPrefix(string(text), ofLuaName+":1: "))))
	}
	return n
}

// unwrap makes the n results of resume those of a function that coroutine.wrap has made.
func (e *Engine) unwrap(L *lua.LState, n int) int {
	if L.Get(-n) != lua.LFalse {
		return n - 1
	}
	first := lua.LValue(lua.LNil)
	if n > 1 {
		first = L.Get(-n + 1)
	}
	if text, ok := first.(lua.LString); ok {
		e.Spend(L, len(text))
		first = lua.LString(L.Where(1)+" ") + text
	}
	e.raise(L, first)
	return 0
}

// place is where the first function of Lua's at a level or above is; "" if it is not near.
func place(L *lua.LState, level int) (where string) {
	// gopher-lua panics if a tail call found no room for its function, which has no line yet.
	defer func() { _ = recover() }()
	for ; level < 10; level++ {
		if s := L.Where(level); !strings.HasPrefix(s, "[G]:") {
			return s
		}
	}
	return ""
}
