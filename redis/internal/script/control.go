package script

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
)

// raise raises a value, and notes where.
func (e *Engine) raise(L *lua.LState, v lua.LValue) {
	e.raised, e.raisedWhere = v, L.Where(1)
	L.Error(v, 0)
}

func (e *Engine) luaError(L *lua.LState) int {
	v, level := L.Get(1), lualib.OptInt(L, "error", 2, 1)
	if s, ok := lualib.Text(v); ok {
		v = lua.LString(s)
		if level > 0 {
			if where := L.Where(level); where != "" && !strings.HasPrefix(where, "[G]:") {
				e.Spend(L, len(s))
				v = lua.LString(where + " " + s)
			}
		}
	}
	e.raise(L, v)
	return 0
}

// enter counts a function that runs others on Go's stack.
func (e *Engine) enter(L *lua.LState) {
	if e.depth >= maxProtected {
		L.RaiseError("stack overflow")
	}
	e.depth++
}

// protect calls the function at the bottom of the stack with all arguments behind it. After an
// error it returns the value that was raised.
func (e *Engine) protect(L *lua.LState, nargs int) (failed bool, v lua.LValue) {
	e.enter(L)
	depth, resumed := e.depth, e.resumed
	e.probe(L)
	L.Insert(e.shield, 1)
	keep := keepUpvalues(L, false)
	err := L.PCall(nargs+1, lua.MultRet, nil)
	keepUpvalues(L, keep)
	e.depth, e.resumed = depth-1, resumed
	if err == nil {
		return false, nil
	}
	L.G.CurrentThread = L
	v = e.valueOf(err)
	if s, ok := v.(lua.LString); ok {
		v = lua.LString(translate(string(s)))
	}
	return true, v
}

// probe raises an error if the stack of calls has no room for the call of shield.
func (e *Engine) probe(L *lua.LState) {
	L.Push(e.nothing)
	L.Call(0, 0)
}

// noTrace stands where an error would have a stack trace.
const noTrace = "-"

// untraced is the function Engine.shield: it calls its first argument with the others. PCall calls it
// in place of a function, since otherwise PCall makes a stack trace of each error. That takes a time
// that is quadratic in the depth, and a line for each tail call that there has been.
func untraced(L *lua.LState) int {
	base := baseOf(L)
	keepUpvalues(L, true) // until PCall returns
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		closeUpvalues(L, base)
		err, ok := r.(*lua.ApiError)
		if !ok {
			err = &lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(fault(r, place(L, 0)))}
		}
		err.StackTrace = noTrace
		panic(err)
	}()
	L.Call(L.GetTop()-1, lua.MultRet)
	return L.GetTop()
}

// fault is the text of an error that gopher-lua or Go has panicked with. place is like the start of a
// line of a stack trace.
func fault(r any, place string) string {
	text := fmt.Sprint(r)
	// The second one is of a tail call that has found no room for its registers, see place.
	if strings.Contains(text, "callstack overflow") || strings.HasSuffix(text, "index out of range [-1]") {
		text = "stack overflow"
	}
	if source, line, ok := where(place); ok {
		text = source + ":" + line + ": " + text
	}
	return text
}

// valueOf returns the value that an error of PCall stands for.
func (e *Engine) valueOf(err error) lua.LValue {
	a, ok := err.(*lua.ApiError)
	if !ok || a.Object == nil {
		return lua.LString(err.Error())
	}
	if a.Type != lua.ApiErrorPanic {
		return a.Object
	}
	_, frames, _ := strings.Cut(a.StackTrace, "\n\t")
	return lua.LString(fault(a.Object, frames))
}

func (e *Engine) luaPcall(L *lua.LState) int {
	if L.GetTop() < 1 {
		lualib.ArgError(L, "pcall", 1, "value expected")
	}
	if f := L.Get(1); f.Type() != lua.LTFunction && L.GetMetaField(f, "__call") == lua.LNil {
		L.Push(lua.LFalse)
		return 1 + push(L, lua.LString("attempt to call a "+lualib.TypeName(f)+" value"))
	}
	failed, v := e.protect(L, L.GetTop()-1)
	if !failed {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	if t, ok := v.(*lua.LTable); ok {
		if text := L.GetField(t, "err"); lua.LVCanConvToString(text) {
			v = text
		}
	}
	L.Push(lua.LFalse)
	return 1 + push(L, v)
}

func (e *Engine) luaXpcall(L *lua.LState) int {
	if L.GetTop() < 2 {
		lualib.ArgError(L, "xpcall", 2, "value expected")
	}
	handler := L.Get(2)
	L.SetTop(1)
	failed, v := e.protect(L, 0)
	if !failed {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	L.SetTop(0)
	L.Push(handler)
	L.Push(v)
	if failed, v := e.protect(L, 1); failed {
		L.SetTop(0)
		L.Push(v)
	}
	L.Insert(lua.LFalse, 1)
	return L.GetTop()
}

// translate gives the errors of gopher-lua's virtual machine the texts of Lua's. One that is longer
// than its texts are, beside a key, is a script's own.
func translate(s string) string {
	const longest = 1 << 10
	head, text := "", s
	if source, line, ok := where(s); ok {
		n := len(source) + len(line) + 2
		head, text = s[:n]+" ", strings.TrimPrefix(s[n:], " ")
	}
	var a, b, c string
	switch {
	case strings.HasPrefix(text, "attempt to index a non-table object("):
		a, _, _ = strings.Cut(strings.TrimPrefix(text[:min(len(text), longest)], "attempt to index a non-table object("), ")")
		text = "attempt to index a " + a + " value"
	case len(text) > longest:
		return s
	case text == "attempt to call a non-function object":
		text = "attempt to call a nil value"
	case strings.HasPrefix(text, "cannot perform "):
		if n, _ := fmt.Sscanf(text, "cannot perform %s operation between %s and %s", &c, &a, &b); n == 3 {
			if a == "number" {
				a = b
			}
			text = "attempt to perform arithmetic on a " + a + " value"
		}
	case text == "can not yield from outside of a coroutine":
		return yieldAcross
	case text == "__unm undefined":
		text = "attempt to perform arithmetic on a nil value"
	case text == "__len undefined":
		text = "attempt to get length of a nil value"
	case strings.HasPrefix(text, "attempt to compare "):
		if n, _ := fmt.Sscanf(text, "attempt to compare %s with %s", &a, &b); n == 2 && a == b {
			text = "attempt to compare two " + a + " values"
		}
	case strings.HasPrefix(text, "registry overflow"):
		text = "stack overflow"
	case strings.HasPrefix(text, "for statement "):
		text = strings.TrimPrefix(text, "for statement ")
		if word, rest, ok := strings.Cut(text, " "); ok {
			if word == "init" {
				word = "initial"
			}
			text = "'for' " + word + strings.Replace(" "+rest, " must", " value must", 1)
			text = strings.Replace(strings.Replace(text, "'for' limit value", "'for' limit", 1), "'for' step value", "'for' step", 1)
		}
	default:
		return s
	}
	return head + text
}

// longestPlace is more than the length of a place in a script: the name of a chunk has 60 bytes at most.
const longestPlace = 128

// where splits a text "source:line: ..." that an error begins with.
func where(s string) (source, line string, ok bool) {
	source, rest, ok := strings.Cut(s[:min(len(s), longestPlace)], ":")
	if !ok || strings.ContainsAny(source, " \n"+ofLuaName) {
		return "", "", false
	}
	line, _, ok = strings.Cut(rest, ":")
	if !ok || line == "" || strings.Trim(line, "0123456789") != "" {
		return "", "", false
	}
	return source, line, true
}

func (e *Engine) luaLoadString(L *lua.LState) int {
	source := lualib.CheckString(L, "loadstring", 1)
	name := source
	if L.Get(2) != lua.LNil {
		name = lualib.CheckString(L, "loadstring", 2)
	}
	return e.load(L, source, name)
}

func (e *Engine) luaLoad(L *lua.LState) int {
	f, ok := L.Get(1).(*lua.LFunction)
	if !ok {
		lualib.TypeError(L, "load", 1, "function")
	}
	name := "=(load)"
	if L.Get(2) != lua.LNil {
		name = lualib.CheckString(L, "load", 2)
	}
	var source strings.Builder
	for {
		e.Work(L, 256)
		L.Push(f)
		L.Call(0, 1)
		v := L.Get(-1)
		L.Pop(1)
		if v == lua.LNil || v == lua.LString("") {
			break
		}
		s, ok := lualib.Text(v)
		if !ok {
			L.RaiseError("reader function must return a string")
		}
		e.Spend(L, len(s))
		source.WriteString(s)
	}
	return e.load(L, source.String(), name)
}

func (e *Engine) load(L *lua.LState, source, name string) int {
	e.Spend(L, 16*len(source))
	proxy := e.eval.proxy
	if e.ofLibrary {
		proxy = e.library.proxy
	}
	f, err := e.compile(source, chunkName(name), proxy, &rewriter{library: e.ofLibrary})
	if err != nil {
		L.Push(lua.LNil)
		return 1 + push(L, lua.LString(err.Error()))
	}
	return push(L, f)
}

// chunkName is how errors show the name of a chunk.
func chunkName(name string) string {
	const most = 60
	switch {
	case strings.HasPrefix(name, "=") || strings.HasPrefix(name, "@"):
		return name[1:min(len(name), most)]
	}
	line, _, cut := strings.Cut(name, "\n")
	if n := most - len(`[string "..."]`) - 1; len(line) > n {
		line, cut = line[:n], true
	}
	if cut {
		line += "..."
	}
	return `[string "` + line + `"]`
}
