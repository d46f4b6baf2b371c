package script

import (
	"errors"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
)

// loadTime is how long the load of a library may take.
const loadTime = 500 * time.Millisecond

// Eval runs a script that Compile has made. The value may hold KEYS and ARGV, so it is complete
// until Forget.
func (e *Engine) Eval(f *Function, keys, args [][]byte) (Value, *Error) {
	e.Forget()
	size := e.fill(e.keys, keys) + e.fill(e.argv, args)
	e.filled = filled{f, len(keys), len(args)}
	return e.run(f, size)
}

// filled is what KEYS and ARGV hold.
type filled struct {
	f          *Function // nil: nothing
	keys, args int
}

// Forget empties KEYS and ARGV, which are nobody else's, when the value of Eval is not needed any
// more.
func (e *Engine) Forget() {
	if x := e.filled; x.f != nil {
		e.filled = filled{}
		e.empty(e.keys, x.f, x.keys)
		e.empty(e.argv, x.f, x.args)
	}
}

// fill sets the elements of KEYS or ARGV. It returns the length of all.
func (e *Engine) fill(t *lua.LTable, list [][]byte) (size int) {
	for i, s := range list {
		t.RawSetInt(i+1, lua.LString(s))
		size += len(s)
	}
	return size
}

// empty removes the n elements of KEYS or ARGV. The table keeps its room if nothing else can be
// in it.
func (e *Engine) empty(t *lua.LTable, f *Function, n int) {
	const room = 64
	if !f.readsOnly || n > room {
		*t = lua.LTable{Metatable: lua.LNil}
		return
	}
	for i := range n {
		t.RawSetInt(i+1, lua.LNil)
	}
}

// Call runs a function of a library.
func (e *Engine) Call(f *Function, keys, args [][]byte) (Value, *Error) {
	e.Forget()
	e.ofLibrary = true
	defer func() { e.ofLibrary = false }() // also if a command panics
	size := 0
	k, v := e.strings(keys, &size), e.strings(args, &size)
	return e.run(f, size, k, v)
}

// Running reports whether a script runs.
func (e *Engine) Running() bool { return e.running }

// strings makes a table of strings, and adds their length to size.
func (e *Engine) strings(list [][]byte, size *int) *lua.LTable {
	t := e.L.CreateTable(len(list), 0)
	for _, s := range list {
		t.Append(lua.LString(s))
		*size += len(s)
	}
	return t
}

// begin sets up a run.
func (e *Engine) begin() {
	e.running, e.killed, e.based = true, nil, false
	e.ticks, e.every, e.counted, e.last = tickFirst, tickFirst, 0, time.Time{}
	e.toCheck, e.pending = checkEvery, 0
	e.depth, e.resumed = 0, 0
	e.raised, e.raisedWhere, e.panicked = nil, "", nil
}

// run runs a function. size is the length of the strings that it is given.
func (e *Engine) run(f *Function, size int, args ...lua.LValue) (Value, *Error) {
	e.begin()
	if size > 64<<10 {
		e.ticks -= size >> 6 // as if the script had made them
	}
	L := e.L
	L.SetTop(0)
	n := len(args)
	if !f.flat {
		L.Push(e.shield)
		n++
	}
	L.Push(f.f)
	for _, v := range args {
		L.Push(v)
	}
	err := e.protected(n)
	L.G.CurrentThread = L
	if e.panicked != nil {
		panic(e.panicked)
	}
	if err != nil {
		x := e.failure(e.valueOf(err))
		e.raised = nil
		L.SetTop(0)
		return Value{}, x
	}
	v := L.Get(-1)
	e.raised = nil
	L.SetTop(0)
	return Value{v}, nil
}

// protected calls the function at the bottom of the stack. The run ends, also by a panic.
func (e *Engine) protected(nargs int) error {
	defer func() { e.running, e.killed = false, nil }()
	return e.L.PCall(nargs, 1, nil)
}

// Load runs the code of a library, which registers functions: for each, register is called. An
// error of register is raised in the library.
func (e *Engine) Load(code, version string, register func(*Function) error) error {
	e.Forget()
	f, err := e.compile(code, "user_function", e.library.proxy, &rewriter{library: true})
	if err != nil {
		return errors.New("Error compiling function: " + err.Error())
	}
	g := e.L.NewTable()
	redis := e.L.NewTable()
	redis.RawSetString("register_function", e.L.NewFunction(e.register))
	redis.RawSetString("log", e.L.NewFunction(e.log))
	e.putConstants(redis, version)
	e.guard(redis)
	g.RawSetString("redis", e.readonly(redis))
	e.guard(g)
	e.loading = func(f Function) error { return register(&f) }
	e.deadline = time.Now().Add(loadTime)
	e.library.meta.RawSetString("__index", g)
	e.ofLibrary = true
	_, failure := e.run(&Function{f: f}, 0)
	e.ofLibrary = false
	e.library.meta.RawSetString("__index", e.library.globals)
	delete(e.proxies, g.RawGetString("redis").(*lua.LTable))
	e.loading, e.deadline = nil, time.Time{}
	if failure != nil {
		return errors.New("Error registering functions: " + failure.Text)
	}
	return nil
}

// register is redis.register_function.
func (e *Engine) register(L *lua.LState) int {
	if e.loading == nil {
		e.fail(L, "redis.register_function can only be called on FUNCTION LOAD command")
	}
	f, fault := Function{}, ""
	switch L.GetTop() {
	case 1:
		f, fault = e.namedArgs(L)
	case 2:
		f, fault = positionalArgs(L)
	default:
		fault = "wrong number of arguments to redis.register_function"
	}
	if fault != "" {
		e.fail(L, fault)
	}
	if err := e.loading(f); err != nil {
		e.fail(L, err.Error())
	}
	return 0
}

func positionalArgs(L *lua.LState) (f Function, fault string) {
	var ok bool
	if f.Name, ok = lualib.Text(L.Get(1)); !ok {
		return f, "first argument to redis.register_function must be a string"
	}
	if f.f, ok = L.Get(2).(*lua.LFunction); !ok {
		return f, "second argument to redis.register_function must be a function"
	}
	return f, ""
}

func (e *Engine) namedArgs(L *lua.LState) (f Function, fault string) {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		return f, "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	}
	named := false
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		key, ok := lualib.Text(k)
		if !ok {
			return f, "named argument key given to redis.register_function is not a string"
		}
		switch lowered(key) {
		case "function_name":
			if f.Name, named = lualib.Text(v); !named {
				return f, "function_name argument given to redis.register_function must be a string"
			}
		case "description":
			if f.Description, f.HasText = lualib.Text(v); !f.HasText {
				return f, "description argument given to redis.register_function must be a string"
			}
		case "callback":
			if f.f, ok = v.(*lua.LFunction); !ok {
				return f, "callback argument given to redis.register_function must be a function"
			}
		case "flags":
			flags, ok := v.(*lua.LTable)
			if !ok {
				return f, "flags argument to redis.register_function must be a table representing function flags"
			}
			for i := 1; flags.RawGetInt(i) != lua.LNil; i++ {
				word, ok := lualib.Text(flags.RawGetInt(i))
				if !ok {
					return f, "unknown flag given"
				}
				f.Flags = append(f.Flags, lowered(word))
			}
			if !known(f.Flags) {
				return f, "unknown flag given"
			}
		default:
			return f, "unknown argument given to redis.register_function"
		}
	}
	switch {
	case !named:
		return f, "redis.register_function must get a function name argument"
	case f.f == nil:
		return f, "redis.register_function must get a callback argument"
	}
	return f, ""
}

// Flags are the names of the flags of scripts and functions, in Redis's order.
var Flags = []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

func known(flags []string) bool {
	for _, f := range flags {
		found := false
		for _, name := range Flags {
			found = found || name == f
		}
		if !found {
			return false
		}
	}
	return true
}

func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 32
		}
	}
	return string(b)
}
