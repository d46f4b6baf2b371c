package script

import (
	"fmt"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
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
	// maxSource bounds the length of a script. To compile it takes about 150 times as much.
	maxSource = 2 << 20
	// maxProtected bounds how deep pcall and the like nest, as C's stack does in Redis.
	maxProtected = 190

	registrySize = 1 << 10
	registryMost = 1 << 20
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

	call, pcall *lua.LFunction              // of the table redis
	shield      *lua.LFunction              // untraced
	nothing     *lua.LFunction              // does nothing
	wrap        *lua.LFunction              // see wrapper
	keys, argv  *lua.LTable                 // KEYS and ARGV, always the same tables
	done        *lua.LTable                 // {ok = "OK"}, for results: no script gets it
	upvalues    []lua.LValue                // of scripts: see upvalueNames
	random      *lualib.Random              // for scripts and functions alike
	proxies     map[*lua.LTable]*lua.LTable // read-only tables, and what they show

	running   bool
	ofLibrary bool   // what runs is a library's
	filled    filled // by the last Eval
	depth     int    // of pcall and the like
	resumed   int    // coroutines within each other
	loading   func(Function) error

	ticks    int         // instructions until the next call of slow
	due      atomic.Bool // the timer has fired; beside ticks, since both are looked at together
	every    int         // instructions between two calls
	last     time.Time   // when slow returned
	counted  int         // instructions of the run, at the last call of slow
	timer    *time.Timer // sets due
	armed    bool        // it is set
	toCheck  int         // instructions until the memory is looked at
	pending  int         // announced bytes since it was
	base     int64
	floor    int64 // the heap without garbage, as far as is known
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
	e.begin()
	e.running = false
	e.random = lualib.NewRandom(func() bool { return e.running && e.loading == nil })
	e.keys, e.argv = e.L.NewTable(), e.L.NewTable()
	e.done = e.L.NewTable()
	e.done.RawSetString("ok", lua.LString("OK"))
	e.shield, e.nothing = e.L.NewFunction(untraced), e.L.NewFunction(func(*lua.LState) int { return 0 })
	e.wrap = e.wrapper()
	e.call, e.pcall = e.commandFunction(true, used), e.commandFunction(false, used)
	e.upvalues = []lua.LValue{
		e.L.NewFunction(e.luaConcat), e.L.NewFunction(e.luaIndex), e.L.NewFunction(luaMod), e.L.NewFunction(e.luaSpread), e.L.NewFunction(e.luaArg),
		e.call, e.pcall, e.commandFunction(true, unused), e.commandFunction(false, unused),
		e.commandFunction(true, returned), e.commandFunction(false, returned), e.keys, e.argv,
	}
	e.eval = e.newEnvironment(e.redisTable(version, true))
	e.library = e.newEnvironment(e.redisTable(version, false))
	e.eval.globals.RawSetString("KEYS", e.keys)
	e.eval.globals.RawSetString("ARGV", e.argv)
	return e
}

// A Function is a compiled script, or a function of a library.
type Function struct {
	Name        string
	Description string
	HasText     bool // there is a Description
	Flags       []string

	f         *lua.LFunction
	readsOnly bool // it reads KEYS and ARGV, and keeps neither
	flat      bool // calls cannot nest deep in it
}

// Compile compiles a script. name is what errors call it.
func (e *Engine) Compile(source, name string) (*Function, error) {
	r := rewriter{whole: true}
	f, err := e.compile(source, name, e.eval.proxy, &r)
	if err != nil {
		return nil, err
	}
	return &Function{f: f, readsOnly: r.global.readsOnly(), flat: !r.global.nests}, nil
}

func (e *Engine) compile(source, name string, env *lua.LTable, r *rewriter) (f *lua.LFunction, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("%s: %v", name, r)
		}
	}()
	if strings.HasPrefix(source, "\x1bLua") {
		return nil, fmt.Errorf("%s: bad binary format", name)
	}
	if len(source) > maxSource {
		return nil, fmt.Errorf("%s: chunk is longer than %d bytes", name, maxSource)
	}
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return nil, syntaxError(err, name, source)
	}
	proto, err := lua.Compile(r.script(chunk), name)
	if err != nil {
		if c, ok := err.(*lua.CompileError); ok {
			return nil, fmt.Errorf("%s:%d: %s", name, c.Line, c.Message)
		}
		return nil, err
	}
	return e.close(proto, env, e.upvalues)
}

// close makes the function that a chunk returns, with upvalues as the arguments of the chunk.
func (e *Engine) close(proto *lua.FunctionProto, env *lua.LTable, upvalues []lua.LValue) (*lua.LFunction, error) {
	noArg(proto)
	outer := e.L.NewFunctionFromProto(proto)
	outer.Env = env
	e.probe(e.L)
	e.L.Push(outer)
	for _, v := range upvalues {
		e.L.Push(v)
	}
	if err := e.L.PCall(len(upvalues), 1, nil); err != nil {
		return nil, err
	}
	f := e.L.Get(-1).(*lua.LFunction)
	e.L.Pop(1)
	return f, nil
}

// noArg keeps the virtual machine from making the table arg for each call: the rewriter has it
// made where a function uses it.
func noArg(p *lua.FunctionProto) {
	p.IsVarArg &^= lua.VarArgNeedsArg
	for _, inner := range p.FunctionPrototypes {
		noArg(inner)
	}
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
