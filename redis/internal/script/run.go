package script

import (
	"errors"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
)

// loadTime is how long the load of a library may take.
const loadTime = 500 * time.Millisecond

// Eval runs a script that Compile has made.
func (e *Engine) Eval(f *Function, keys, args [][]byte) (Value, *Error) {
	g := e.eval.globals
	g.RawSetString("KEYS", e.strings(keys))
	g.RawSetString("ARGV", e.strings(args))
	defer func() { // also if a command panics; they are nobody else's
		g.RawSetString("KEYS", lua.LNil)
		g.RawSetString("ARGV", lua.LNil)
	}()
	return e.run(f.f)
}

// Call runs a function of a library.
func (e *Engine) Call(f *Function, keys, args [][]byte) (Value, *Error) {
	return e.run(f.f, e.strings(keys), e.strings(args))
}

// Running reports whether a script runs.
func (e *Engine) Running() bool { return e.running }

// strings makes a table of strings.
func (e *Engine) strings(list [][]byte) *lua.LTable {
	t := e.L.CreateTable(len(list), 0)
	for _, s := range list {
		t.Append(lua.LString(s))
	}
	return t
}

// begin sets up a run.
func (e *Engine) begin() {
	e.running, e.killed, e.based = true, nil, false
	e.ticks, e.toCheck, e.pending = tickEvery, checkEvery, 0
	e.depth, e.resumed = 0, 0
	e.raised, e.raisedWhere, e.panicked = nil, "", nil
}

func (e *Engine) run(f *lua.LFunction, args ...lua.LValue) (Value, *Error) {
	e.begin()
	L := e.L
	L.SetTop(0)
	L.Push(f)
	for _, v := range args {
		L.Push(v)
	}
	err := L.PCall(len(args), 1, nil)
	e.running, e.killed = false, nil
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

// Load runs the code of a library, which registers functions: for each, register is called. An
// error of register is raised in the library.
func (e *Engine) Load(code, version string, register func(*Function) error) error {
	f, err := e.compile(code, "user_function", e.library.proxy)
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
	_, failure := e.run(f)
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
