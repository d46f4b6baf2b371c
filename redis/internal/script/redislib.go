package script

import (
	"crypto/sha1"
	"encoding/hex"
	"io"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
)

// redisTable makes the table redis, for EVAL or for the functions of libraries.
func (e *Engine) redisTable(version string, eval bool) *lua.LTable {
	t := e.L.NewTable()
	functions := map[string]lua.LGFunction{
		"log":           e.log,
		"setresp":       e.setProtocol,
		"sha1hex":       e.sha1hex,
		"error_reply":   e.errorReply,
		"status_reply":  func(L *lua.LState) int { return e.fieldTable(L, "ok") },
		"set_repl":      e.setReplication,
		"acl_check_cmd": e.aclCheck,
	}
	if eval {
		functions["breakpoint"] = func(L *lua.LState) int { return push(L, lua.LFalse) }
		functions["debug"] = func(*lua.LState) int { return 0 }
		functions["replicate_commands"] = func(L *lua.LState) int { return push(L, lua.LTrue) }
	}
	for name, f := range functions {
		t.RawSetString(name, e.L.NewFunction(f))
	}
	t.RawSetString("call", e.call)
	t.RawSetString("pcall", e.pcall)
	for name, n := range map[string]int{"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3} {
		t.RawSetString(name, lua.LNumber(n))
	}
	e.putConstants(t, version)
	return t
}

// putConstants adds what the table redis has at the load of a library, too.
func (e *Engine) putConstants(t *lua.LTable, version string) {
	for i, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		t.RawSetString(name, lua.LNumber(i))
	}
	n := 0
	for _, part := range strings.Split(version, ".") {
		x, _ := strconv.Atoi(part)
		n = n<<8 | x
	}
	t.RawSetString("REDIS_VERSION", lua.LString(version))
	t.RawSetString("REDIS_VERSION_NUM", lua.LNumber(n))
}

// errorTable makes the table that stands for an error: {err = text}.
func (e *Engine) errorTable(text string) *lua.LTable {
	t := e.L.CreateTable(0, 2)
	t.RawSetString("err", lua.LString(text))
	return t
}

// coded makes a text like that of an error reply, which begins with a code: "-CODE text", or
// else the code is ERR.
func coded(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	if strings.HasPrefix(text, "-") {
		text = text[1:]
		if code, rest, ok := strings.Cut(text, " "); ok {
			return code + " " + strings.Trim(rest, "\r\n")
		}
	}
	return "ERR " + strings.Trim(text, "\r\n")
}

// fail raises an error of one of the functions of redis.
func (e *Engine) fail(L *lua.LState, text string) { e.raise(L, e.errorTable(coded(text))) }

// commandArgs copies the arguments of a command.
func (e *Engine) commandArgs(L *lua.LState) (args [][]byte, fault string) {
	n := L.GetTop()
	if n == 0 {
		return nil, "Please specify at least one argument for this redis lib call"
	}
	args, text := e.args[:0], e.text[:0]
	size := 0
	for i := 1; i <= n; i++ {
		if s, ok := L.Get(i).(lua.LString); ok {
			size += len(s)
		} else {
			size += 32
		}
	}
	if cap(text) < size {
		e.Spend(L, size)
		text = make([]byte, 0, size)
	}
	for i := 1; i <= n; i++ {
		start := len(text)
		switch v := L.Get(i).(type) {
		case lua.LString:
			text = append(text, v...)
		case lua.LNumber:
			if whole := int64(v); lua.LNumber(whole) == v && whole > -1e15 && whole < 1e15 && whole != 0 {
				text = strconv.AppendInt(text, whole, 10)
			} else {
				text = lualib.AppendNumber(text, float64(v), 17)
			}
		default:
			e.forgetArgs(args)
			return nil, "Lua redis lib command arguments must be strings or integers"
		}
		args = append(args, text[start:len(text):len(text)])
	}
	const keep = 64 << 10
	if e.args = args[:0]; cap(text) <= keep {
		e.text = text[:0]
	}
	return args, ""
}

// forgetArgs lets go of the memory of arguments.
func (e *Engine) forgetArgs(args [][]byte) {
	clear(args)
	if cap(args) > 1024 {
		e.args = nil
	}
}

// commandFunction makes redis.call, or redis.pcall if raise is false, for calls whose value is used
// so. If it is unused, they return none.
func (e *Engine) commandFunction(raise bool, use valueUse) *lua.LFunction {
	return e.L.NewFunction(func(L *lua.LState) int {
		v := e.command(L, raise, use)
		if use == unused {
			return 0
		}
		return push(L, v)
	})
}

// command runs a command and returns its reply, or nil if that is unused.
func (e *Engine) command(L *lua.LState, raise bool, use valueUse) lua.LValue {
	if !e.running || e.loading != nil {
		// At the load of a library the table redis has no such fields.
		name := "pcall"
		if raise {
			name = "call"
		}
		L.RaiseError(nonexistent, name)
	}
	args, fault := e.commandArgs(L)
	if fault != "" {
		t := e.errorTable(coded(fault))
		if raise {
			e.raise(L, t)
		}
		return t
	}
	L.SetTop(0)
	reply, refusal := e.callHost(L, args)
	e.forgetArgs(args)
	failed := len(reply) > 0 && reply[0] == '-'
	switch {
	case refusal != "":
		t := e.errorTable(coded(refusal))
		t.RawSetString("ignore_error_stats_update", lua.LTrue)
		if raise {
			e.raise(L, t)
		}
		return t
	case use == unused && !(raise && failed):
		return nil
	case use == returned && string(reply) == "+OK\r\n":
		return e.done
	}
	p := replyReader{e: e, L: L, b: reply}
	v := p.value()
	if raise && failed {
		e.raise(L, v)
	}
	return v
}

// callHost calls the command. A panic of the server's ends the script, and then goes on: scripts
// must not catch it.
func (e *Engine) callHost(L *lua.LState, args [][]byte) (reply []byte, refusal string) {
	returned := false
	defer func() {
		if !returned {
			e.panicked = recover()
			e.kill(lua.LString("the command panicked"))
			L.Error(e.killed, 0)
		}
	}()
	reply, refusal = e.host.Call(args)
	returned = true
	return reply, refusal
}

func (e *Engine) sha1hex(L *lua.LState) int {
	if L.GetTop() != 1 {
		e.fail(L, "wrong number of arguments")
	}
	s, _ := lualib.Text(L.Get(1))
	const chunk = 64 << 10
	sum := sha1.New()
	for len(s) > chunk {
		io.WriteString(sum, s[:chunk])
		s = s[chunk:]
		e.Work(L, 8*chunk)
	}
	io.WriteString(sum, s)
	return push(L, lua.LString(hex.EncodeToString(sum.Sum(nil))))
}

// Digest returns the SHA-1 of a script in hexadecimal digits.
func Digest(script []byte) string {
	sum := sha1.Sum(script)
	return hex.EncodeToString(sum[:])
}

// fieldTable returns a table with the argument in one field.
func (e *Engine) fieldTable(L *lua.LState, field string) int {
	s, ok := L.Get(1).(lua.LString)
	if !ok || L.GetTop() != 1 {
		return push(L, e.errorTable(coded("wrong number or type of arguments")))
	}
	t := L.CreateTable(0, 1)
	t.RawSetString(field, s)
	return push(L, t)
}

func (e *Engine) errorReply(L *lua.LState) int {
	s, ok := L.Get(1).(lua.LString)
	if !ok || L.GetTop() != 1 {
		return push(L, e.errorTable(coded("wrong number or type of arguments")))
	}
	e.Spend(L, 2*len(s))
	return push(L, e.errorTable(coded("-"+strings.TrimPrefix(string(s), "-"))))
}

// setReplication checks the arguments of redis.set_repl, which has no effect: there are no
// replicas.
func (e *Engine) setReplication(L *lua.LState) int {
	if !e.running || e.loading != nil {
		e.fail(L, "redis.set_repl can only be called inside a script invocation")
	}
	if L.GetTop() != 1 {
		e.fail(L, "redis.set_repl() requires two arguments.")
	}
	f, _ := lualib.ToNumber(L.Get(1))
	if lualib.Int64(f)&^3 != 0 {
		e.fail(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

func (e *Engine) setProtocol(L *lua.LState) int {
	if !e.running || e.loading != nil {
		e.fail(L, "redis.setresp can only be called inside a script invocation")
	}
	if L.GetTop() != 1 {
		e.fail(L, "redis.setresp() requires one argument.")
	}
	f, _ := lualib.ToNumber(L.Get(1))
	if n := lualib.Int64(f); n == 2 || n == 3 {
		e.host.SetProtocol(int(n))
		return 0
	}
	e.fail(L, "RESP version must be 2 or 3.")
	return 0
}

// maxLogged is how much of a text redis.log logs: to write it takes longer than to make it.
const maxLogged = 64 << 10

func (e *Engine) log(L *lua.LState) int {
	n := L.GetTop()
	if n < 2 {
		e.fail(L, "redis.log() requires two arguments or more.")
	}
	f, ok := lualib.ToNumber(L.Get(1))
	if !ok {
		e.fail(L, "First argument must be a number (log level).")
	}
	level := lualib.Int64(f)
	if level < LogDebug || level > LogWarning {
		e.fail(L, "Invalid debug level.")
	}
	var words []string
	for i := 2; i <= n; i++ {
		if s, ok := lualib.Text(L.Get(i)); ok {
			e.Spend(L, len(s))
			words = append(words, s)
		}
	}
	text := strings.Join(words, " ")
	if len(text) > maxLogged {
		text = text[:maxLogged] + "..."
	}
	e.host.Log(int(level), text)
	return 0
}

func (e *Engine) aclCheck(L *lua.LState) int {
	if !e.running || e.loading != nil {
		e.fail(L, "redis.acl_check_cmd can only be called inside a script invocation")
	}
	args, fault := e.commandArgs(L)
	if fault != "" {
		e.fail(L, fault)
	}
	permitted, known := e.host.Permitted(args)
	e.forgetArgs(args)
	if !known {
		e.fail(L, "Invalid command passed to redis.acl_check_cmd()")
	}
	return push(L, lua.LBool(permitted))
}
