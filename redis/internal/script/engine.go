package script

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// A Host is the server that an Engine belongs to.
type Host interface {
	// Call runs a command for redis.call, and returns its reply, which is valid until the next
	// call. If it refuses the command, refusal is the text of the error, with or without a code.
	// args are valid during the call.
	Call(args [][]byte) (reply []byte, refusal string)
	// Permitted reports whether the user who runs the script may run a command, and whether
	// there is such a command.
	Permitted(args [][]byte) (permitted, known bool)
	// SetProtocol chooses the version of RESP that Call replies in. A run begins with 2.
	SetProtocol(version int)
	// Log logs a text of redis.log, with a level of LogDebug to LogWarning.
	Log(level int, text string)
	// Tick is called now and then while a script runs. It may call Engine.Kill.
	Tick()
	// Outside is memory that grows while a script runs, and is not the script's.
	Outside() int64
}

// The levels of redis.log.
const (
	LogDebug = iota
	LogVerbose
	LogNotice
	LogWarning
)

const (
	// DefaultMaxMemory is the Engine's MaxMemory if that is 0.
	DefaultMaxMemory = 256 << 20
	// maxCalls bounds how deep functions call each other.
	maxCalls = 10000
	// maxCoroutines bounds how deep coroutines resume each other. Each has a stack of calls.
	maxCoroutines = 16
	// maxProtected bounds how deep pcall and the like nest, as C's stack does in Redis.
	maxProtected = 190

	registrySize = 1 << 10
	registryMost = 1 << 20

	tickEvery  = 4096     // instructions between two looks at the clock
	checkEvery = 16 << 10 // instructions between two looks at the memory
	checkBytes = 8 << 20  // announced bytes between two looks
)

// With gopher-lua's value an index of 60 million makes a table take a gigabyte.
func init() { lua.MaxArrayIndex = 1 << 22 }

// An Engine compiles and runs scripts. Make one with New.
type Engine struct {
	// MaxMemory is how much the heap may grow while a script runs.
	MaxMemory int64

	host Host
	L    *lua.LState

	eval    *environment
	library *environment

	concat, index *lua.LFunction
	proxies       map[*lua.LTable]*lua.LTable // read-only tables, and what they show

	running bool
	depth   int // of pcall and the like
	resumed int // coroutines within each other
	loading func(Function) error

	ticks    int // instructions until the next call of slow
	toCheck  int // instructions until the memory is looked at
	pending  int // announced bytes since it was
	base     int64
	based    bool
	killed   lua.LValue // not nil: what to raise
	deadline time.Time  // of loading a library

	raised      lua.LValue // the value that was raised last by error or redis.call
	raisedWhere string     // where
	panicked    any        // of Host.Call
	sample      []metrics.Sample
	args        [][]byte
	text        []byte
}

// environment is what scripts see as globals.
type environment struct {
	globals *lua.LTable
	proxy   *lua.LTable // read-only
	meta    *lua.LTable // of proxy
}

// New makes an Engine. version is Redis's version that scripts see.
func New(host Host, version string) *Engine {
	e := &Engine{host: host, MaxMemory: DefaultMaxMemory, proxies: make(map[*lua.LTable]*lua.LTable)}
	e.sample = []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	e.L = lua.NewState(lua.Options{
		CallStackSize: maxCalls, MinimizeStackMemory: true, SkipOpenLibs: true,
		RegistrySize: registrySize, RegistryMaxSize: registryMost, RegistryGrowStep: registrySize,
	})
	e.L.G.MainThread = e.L
	e.L.G.CurrentThread = e.L
	e.L.SetContext(&hook{engine: e, L: e.L})
	e.ticks, e.toCheck = tickEvery, checkEvery
	e.concat = e.L.NewFunction(e.luaConcat)
	e.index = e.L.NewFunction(e.luaIndex)
	e.eval = e.newEnvironment(e.redisTable(version, true))
	e.library = e.newEnvironment(e.redisTable(version, false))
	return e
}

// A Function is a compiled script, or a function of a library.
type Function struct {
	Name        string
	Description string
	HasText     bool // there is a Description
	Flags       []string

	f *lua.LFunction
}

// Compile compiles a script. name is what errors call it.
func (e *Engine) Compile(source, name string) (*Function, error) {
	f, err := e.compile(source, name, e.eval.proxy)
	if err != nil {
		return nil, err
	}
	return &Function{f: f}, nil
}

func (e *Engine) compile(source, name string, env *lua.LTable) (f *lua.LFunction, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("%s: %v", name, r)
		}
	}()
	if strings.HasPrefix(source, "\x1bLua") {
		return nil, fmt.Errorf("%s: bad binary format", name)
	}
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil, syntaxError(err, name, source)
	}
	r := &rewriter{}
	r.stmts(chunk)
	proto, err := lua.Compile(r.wrap(chunk), name)
	if err != nil {
		if c, ok := err.(*lua.CompileError); ok {
			return nil, fmt.Errorf("%s:%d: %s", name, c.Line, c.Message)
		}
		return nil, err
	}
	outer := e.L.NewFunctionFromProto(proto)
	outer.Env = env
	e.L.Push(outer)
	e.L.Push(e.concat)
	e.L.Push(e.index)
	if err := e.L.PCall(2, 1, nil); err != nil {
		return nil, err
	}
	f = e.L.Get(-1).(*lua.LFunction)
	e.L.Pop(1)
	f.Proto.IsVarArg &^= lua.VarArgNeedsArg
	return f, nil
}

// syntaxError gives the parser's error the form that Lua's have.
func syntaxError(err error, name, source string) error {
	p, ok := err.(*parse.Error)
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	text := p.Message
	switch text {
	case "", "syntax error":
		text = "unexpected symbol"
	case "unterminated string":
		text = "unfinished string"
	case "parse error":
		text = "unexpected symbol"
	}
	if p.Pos.Line == parse.EOF {
		return fmt.Errorf("%s:%d: %s near '<eof>'", name, strings.Count(source, "\n")+1, text)
	}
	if p.Token == "" {
		return fmt.Errorf("%s:%d: %s", name, p.Pos.Line, text)
	}
	return fmt.Errorf("%s:%d: %s near '%s'", name, p.Pos.Line, text, p.Token)
}

// Kill makes the running script end with an error.
func (e *Engine) Kill(text string) { e.kill(e.errorTable("ERR " + text)) }

func (e *Engine) kill(v lua.LValue) {
	e.killed = v
	e.ticks = 0
}

// hook is the context of a thread. The virtual machine calls Done before each instruction.
type hook struct {
	engine *Engine
	L      *lua.LState
}

// Done implements context.Context. It counts an instruction, and never ends the context.
func (h *hook) Done() <-chan struct{} {
	e := h.engine
	if e.ticks--; e.ticks < 0 {
		e.slow(h.L)
	}
	return nil
}

// Deadline implements context.Context.
func (h *hook) Deadline() (t time.Time, ok bool) { return t, false }

// Err implements context.Context.
func (h *hook) Err() error { return nil }

// Value implements context.Context.
func (h *hook) Value(any) any { return nil }

var _ context.Context = (*hook)(nil)

// slow does what need not be done at each instruction.
func (e *Engine) slow(L *lua.LState) {
	e.ticks = tickEvery
	if e.running && e.killed == nil {
		if !e.deadline.IsZero() && time.Now().After(e.deadline) {
			e.kill(e.errorTable("ERR FUNCTION LOAD timeout"))
		} else if e.deadline.IsZero() {
			e.host.Tick()
		}
		if e.toCheck -= tickEvery; e.toCheck <= 0 {
			e.check(0)
		}
	}
	if e.killed != nil {
		e.ticks = 0
		e.raised, e.raisedWhere = e.killed, L.Where(0)
		L.Error(e.killed, 0)
	}
}

// Spend implements lualib.Meter.
func (e *Engine) Spend(L *lua.LState, n int) {
	if e.pending += n; e.pending > checkBytes || n < 0 {
		e.check(n)
		if e.killed != nil {
			L.Error(e.killed, 0)
		}
	}
}

// Work implements lualib.Meter.
func (e *Engine) Work(L *lua.LState) {
	if e.ticks -= 64; e.ticks < 0 {
		e.slow(L)
	}
}

// heap returns the bytes of objects, also those that are garbage.
func (e *Engine) heap() int64 {
	metrics.Read(e.sample)
	return int64(e.sample[0].Value.Uint64()) - e.host.Outside()
}

// check kills the script if the heap has grown too much, with n bytes more. It collects the
// garbage first.
func (e *Engine) check(n int) {
	e.pending, e.toCheck = 0, checkEvery
	more := int64(n)
	now := e.heap()
	if !e.based {
		e.base, e.based = now, true
	}
	if more <= e.MaxMemory && now-e.base+more <= e.MaxMemory {
		return
	}
	if more <= e.MaxMemory {
		runtime.GC()
		if e.heap()-e.base+more <= e.MaxMemory {
			return
		}
	}
	e.kill(e.errorTable("ERR not enough memory"))
}
