package script

import (
	"strings"
	"testing"
)

// Calls and tables that need no look-up are the globals, unless the script has such names itself.
func TestNames(t *testing.T) {
	e, h := newEngine()
	for range 2 { // KEYS and ARGV are used again
		for _, x := range []struct{ source, want string }{
			{"redis.call('echo', 'a') return redis.call('echo', 'b')", "$1 b"},
			{"redis.call('nothing')", "-ERR Unknown Redis command called from script @user_script:1"},
			{"redis.pcall('nothing') return 1", ":1"},
			{"return redis.call('raw', '+OK\\r\\n')", "+OK"},
			{"return redis.pcall('raw', '+FINE\\r\\n')", "+FINE"},
			{"return redis.pcall('raw', '-ERR failed\\r\\n')", "-ERR failed"},
			{"return (redis.call('raw', '+OK\\r\\n'))", "+OK"},
			{"local function f() return redis.call('raw', '+OK\\r\\n') end local t = f() t.ok = 'changed' return f()", "+OK"},
			{"local f = loadstring([[return redis.call('raw', '+OK\\r\\n')]]) f().ok = 'changed' return f()", "+OK"},
			{"if true then return redis.call('raw', '+OK\\r\\n') end", "+OK"},
			{"redis.call('raw', '-ERR failed\\r\\n') return 1", "-ERR failed @user_script:1"},
			{"\nredis.pcall('raw', '-ERR failed\\r\\n')\nredis.call() return 1", "-ERR Please specify at least one argument for this redis lib call @user_script:3"},
			{"local redis = {call = function(x) return x .. '!' end} redis.call('x') return redis.call('y')", "$2 y!"},
			{"local function f(redis) return redis.call end return f({call = 7})", ":7"},
			{"local call = redis.call call('echo', 'a') return call('echo', 'b')", "$1 b"},
			{"local call, x = redis.call, 1 call = function(x) return x .. '!' end call('y') return call('y')", "$2 y!"},
			{"local call = redis.call do local call = tostring return call(5) end", "$1 5"},
			{"do local call = redis.call end call('echo', 'x')", "-ERR user_script:1: Script attempted to access nonexistent global variable 'call' @user_script:1"},
			{"return {redis.call('raw', '*2\\r\\n:1\\r\\n:2\\r\\n'), redis.call == redis['call']}", "*2 *2 :1 :2 :1"},
			{"return KEYS[1] .. KEYS[2] .. #KEYS .. ARGV[1] .. #ARGV", "$8 k1k22a11"},
			{"return {KEYS[3] == nil, _G.KEYS == KEYS, _G['ARGV'][1]}", "*3 :1 :1 $2 a1"},
			{"KEYS[1] = 'x' KEYS[9] = 'y' KEYS.z = 1 return {KEYS[1], KEYS[9]}", "*2 $1 x $1 y"},
			{"setmetatable(KEYS, {__index = function() return 'none' end}) return KEYS[5]", "$4 none"},
			{"local KEYS = {'mine'} return KEYS[1]", "$4 mine"},
			{"local f = function(KEYS) return KEYS end return f(5)", ":5"},
			{"loadstring('KEYS[3] = 1')() return #KEYS", ":3"},
			{"local unpack = function(x) x[5] = 'kept' end unpack(KEYS) return KEYS[5]", "$4 kept"},
			{"local n = 0 for i, k in ipairs(KEYS) do n = n + i end return {n, unpack(KEYS)}", "*3 :3 $2 k1 $2 k2"},
			{"local n = 0 for _ in pairs(KEYS) do n = n + 1 end return n", ":2"},
			{"return pcall(function() KEYS = 1 end)", "$-1"},
			{"function KEYS() end", "-ERR user_script:1: Attempt to modify a readonly table @user_script:1"},
		} {
			if got := eval(e, h, x.source); got != x.want {
				t.Errorf("%s\n got %s\nwant %s", x.source, got, x.want)
			}
		}
	}
}

// The values of ... and the table arg are as in Lua.
func TestVarArgs(t *testing.T) {
	e, h := newEngine()
	for _, x := range []struct{ source, want string }{
		{"local function f(...) return {...} end return f(1, 2, 3)", "*3 :1 :2 :3"},
		{"local function f(...) return {(...)} end return f(1, 2, 3)", "*1 :1"},
		{"local function f(...) return {..., 9} end return f(1, 2, 3)", "*2 :1 :9"},
		{"local function f() return 1, 2 end return {f(), f()}", "*3 :1 :1 :2"},
		{"local function f() return 1, 2 end return {f(), (f())}", "*2 :1 :1"},
		{"local function f(a, ...) return arg end local t = f(1, 2, nil) return {t.n, t[1]}", "*2 :2 :2"},
		{"local function f(...) local g = function() return arg.n end return g() end return f(1, 2)", ":2"},
		{"local function f(...) local g = function(...) return arg.n end return g(1) + arg.n end return f(1, 2)", ":3"},
		{"local function f(...) arg = 5 return arg end return f(1)", ":5"},
		{"local function f(...) return 7 end return f(1, 2)", ":7"},
		{"return arg", "-ERR user_script:1: Script attempted to access nonexistent global variable 'arg' @user_script:1"},
		{"return {...}", "*0"},
	} {
		if got := eval(e, h, x.source); got != x.want {
			t.Errorf("%s\n got %s\nwant %s", x.source, got, x.want)
		}
	}
}

// A coroutine cannot yield from within a function of Go's, as in Lua 5.1 from one of C's.
func TestYield(t *testing.T) {
	e, h := newEngine()
	const across = "attempt to yield across metamethod/C-call boundary"
	for _, body := range []string{
		"pcall(function() coroutine.yield(1) end)", "pcall(coroutine.yield, 1)", "xpcall(function() coroutine.yield(1) end, tostring)",
		"table.sort({3, 2, 1}, function() coroutine.yield(1) end)", "string.gsub('x', 'x', function() coroutine.yield(1) end)",
		"return setmetatable({}, {__index = function() coroutine.yield(1) end}).x",
		"return setmetatable({}, {__add = function() coroutine.yield(1) end}) + 1",
		"for x in function() coroutine.yield(1) end do end",
	} {
		source := strings.ReplaceAll("local co = coroutine.create(function() local ok, e = BODY if ok == false then error(e, 0) end end) "+
			"local ok, e = coroutine.resume(co) return {tostring(ok), e, coroutine.status(co)}", "BODY", body)
		if strings.HasPrefix(body, "return") || strings.HasPrefix(body, "for") {
			source = strings.ReplaceAll(source, "local ok, e = "+body+" if ok == false then error(e, 0) end", body)
		}
		if got := eval(e, h, source); !strings.Contains(got, across) || !strings.Contains(got, "$5 false") || !strings.Contains(got, "$4 dead") {
			t.Errorf("%s: %s", body, got)
		}
	}
	for _, x := range []struct{ source, want string }{
		{"local f = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end return 9 end) return {f(), f(), f(), f()}", "*4 :1 :2 :3 :9"},
		{"local f = coroutine.wrap(function() local function g(n) if n == 0 then coroutine.yield('deep') else g(n - 1) end end g(50) return 'end' end) return {f(), f()}", "*2 $4 deep $3 end"},
		{"local f = coroutine.wrap(function() local g = coroutine.wrap(function() coroutine.yield(1) return 2 end) coroutine.yield(g()) return g() end) return {f(), f()}", "*2 :1 :2"},
		{"local f = coroutine.wrap(function() local ok = pcall(function() local g = coroutine.wrap(function() coroutine.yield(1) end) g() end) return tostring(ok) end) return f()", "$4 true"},
		{"local f = coroutine.wrap(function() return coroutine.yield(4) end) return {f(), f(5)}", "*2 :4 :5"},
		{"coroutine.yield(1)", "-ERR " + across},
		{"return coroutine.yield(1)", "-ERR " + across},
		{"local y = coroutine.yield local f = coroutine.wrap(function() return y(4) end) return {f(), f(5)}", "*2 :4 :5"},
		{"local f = coroutine.wrap(coroutine.yield) return {f(1), f(2)}", "*2 :1 :2"},
		{"local f = coroutine.wrap(coroutine.yield) f(1) f(2) f(3)", "-ERR user_script:1: cannot resume dead coroutine"},
		{"local f = coroutine.wrap(string.upper) return f('x')", "$1 X"},
		{"local co = coroutine.create(pcall) return {coroutine.resume(co, error, 'x'), coroutine.status(co)}", "*2 :1 $4 dead"},
		{"local f = coroutine.wrap(redis.call) return f('echo', 'x')", "$1 x"},
		{"local co = coroutine.create(string.rep) return {select(2, coroutine.resume(co))}", "*1 $56 bad argument #1 to 'rep' (string expected, got no value)"},
		{"local co = coroutine.create(function() local t return t.x end) return {select(2, coroutine.resume(co))}", "*1 $43 user_script:1: attempt to index a nil value"},
		{"local function y(...) return coroutine.yield(...) end local f = coroutine.wrap(function() return y(y(1)) end) return {f(), f(2), f(3)}", "*3 :1 :2 :3"},
	} {
		if got := eval(e, h, x.source); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s\n got %s\nwant %s", x.source, got, x.want)
		}
	}
}

// Functions that work for long count as many instructions.
func TestLongWork(t *testing.T) {
	e, h := newEngine()
	for _, source := range []string{
		"local s = string.rep('x', 4e6) A return #s:upper()", "local s = string.rep('x', 4e6) A return #s:reverse()",
		"local s = string.rep('x', 4e6) A return s:find('yy', 1, true)", "local s = string.rep('x', 4e6) A return s:find('[y]')",
		"local s = '[' .. string.rep('x', 1e6) .. ']' A return ('y'):find(s)", "local s = string.rep('x', 1e6) A return #s:gsub('', '')",
		"local s = string.rep('x', 4e6) A return #redis.sha1hex(s)", "local s = string.rep('x', 4e6) A return #cjson.encode(s)",
		"local s = '\"' .. string.rep('x', 4e6) .. '\"' A return #cjson.decode(s)", "local s = string.rep('x', 4e6) A return #string.format('%q', s)",
		"local t = {} for i = 1, 1e5 do t[i] = i end A for i = 1, 10 do table.insert(t, 1, 0) end",
		"local t = {} for i = 1, 1e5 do t[i] = i end A for i = 1, 10 do table.remove(t, 1) end",
		"local t = {} for i = 1, 1e5 do t[i] = i end A return #table.concat(t)", "local t = {} for i = 1, 1e5 do t[i] = i end A table.sort(t)",
		"local t = {} for i = 1, 1e5 do t[i] = i end A return table.maxn(t)", "A return redis.call('raw', '*20000\\r\\n' .. string.rep(':1\\r\\n', 20000))[1]",
	} {
		run := func(source string) int {
			if got := eval(e, h, source); strings.HasPrefix(got, "-") || strings.HasPrefix(got, "compile") {
				t.Errorf("%s: %.200s", source, got)
			}
			return e.counted
		}
		before := 0
		if setup, _, ok := strings.Cut(source, " A "); ok {
			before = run(setup)
		}
		if n := run(strings.Replace(source, "A ", "", 1)) - before; n < 50_000 {
			t.Errorf("%s: %d instructions", source, n)
		}
	}
}

// A table that grows element by element costs no more than its elements.
func TestDenseTable(t *testing.T) {
	e, h := newEngine()
	for _, body := range []string{"t[i] = 0", "x.y[i] = 0", "x['y'][i] = 0", "t[i], n = 0, i"} {
		source := "local n = 0 local t = {} local x = {y = {}} for i = 1, 2e5 do " + body + " end return #t + #x.y"
		if got := eval(e, h, source); got != ":200000" || e.counted > 5_000_000 {
			t.Errorf("%s: %s, %d instructions", body, got, e.counted)
		}
	}
}
