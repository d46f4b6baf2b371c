package script

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A function that works for long stops in the middle.
func TestStopInTheMiddle(t *testing.T) {
	e, h := newEngine()
	const hollow = "local t = {} for i = 1, 1e5 do t[i] = 1 end for i = 1, 1e5 do t[i] = nil end local all = {} for i = 1, 500 do all[i] = t end"
	const large = "local t = {} for i = 1, 3e5 do t[i] = i end"
	for _, x := range []struct{ setup, source string }{
		{"local s = string.rep(' ', 2e6)", "struct.size(s)"},
		{"local s = string.rep('x', 2e6)", "struct.pack(s)"},
		{"local s = string.rep('x', 2e6)", "struct.unpack(s, s)"},
		{"local s = 'i' .. string.rep('0', 8e6) .. '4'", "struct.size(s)"},
		{"local s = string.rep('%%', 1e6)", "string.format(s)"},
		{"local s = string.rep(' ', 8e6)", "cjson.decode(s)"},
		{"local s, p = string.rep('a', 4e6), string.rep('a', 1e6) .. 'b'", "string.find(s, p, 1, true)"},
		{"local p = string.rep('y', 8e6)", "string.find('x', p)"},
		{"local s = string.rep('%', 4e6)", "string.gsub('x', 'x', s)"},
		{hollow, "cjson.encode(all)"},
		{hollow, "cmsgpack.pack(all)"},
		{large, "cjson.encode(t)"},
		{large, "cmsgpack.pack(t)"},
	} {
		h.ticks, h.limit = 0, 0
		if got := eval(e, h, x.setup+" redis.call('mark') return "+x.source); !strings.HasPrefix(got, "-ERR too long") {
			t.Errorf("%s %s: %d ticks, %.200s", x.setup, x.source, h.ticks, got)
		}
	}
}

// When the timer has fired, the next instruction looks at the clock, and so does the next function
// that works for long.
func TestDue(t *testing.T) {
	e, h := newEngine()
	if got := eval(e, h, "redis.call('due') return redis.call('ticks')"); got != ":1" {
		t.Errorf("after an instruction: %s", got)
	}
	h.ticks = 0
	e.begin()
	e.due.Store(true)
	e.Work(e.L, 1)
	e.due.Store(true)
	e.Spend(e.L, 1)
	e.running = false
	if h.ticks != 2 {
		t.Errorf("%d ticks by Work and Spend", h.ticks)
	}
	// Much may have been allocated: the memory is looked at.
	if got := eval(e, h, "for i = 1, 3000 do end redis.call('due') return 1"); got != ":1" || !e.based {
		t.Errorf("the memory was not looked at: %s", got)
	}
}

// The timer is set for long scripts, and for those that are given long strings.
func TestTimer(t *testing.T) {
	e, h := newEngine()
	eval(e, h, "return redis.call('echo', 'x')")
	if e.timer != nil {
		t.Error("a short script has set the timer")
	}
	eval(e, h, "for i = 1, 1e4 do end")
	if !e.armed && !e.due.Load() {
		t.Error("a long script has not set the timer")
	}
	e, _ = newEngine()
	f, err := e.Compile("return 1", "user_script")
	if err != nil {
		t.Fatal(err)
	}
	e.Eval(f, nil, [][]byte{make([]byte, 1<<20)})
	if e.timer == nil {
		t.Error("a long argument has not set the timer")
	}
}

// An error has no stack trace, whose cost the depth and the tail calls decide.
func TestNoTraces(t *testing.T) {
	e, h := newEngine()
	for source, want := range map[string]string{
		"local function f(n) if n > 0 then return f(n - 1) end for i = 1, 50 do pcall(error) end return 1 end return f(1e5)":       ":1",
		"local function f(n) if n > 0 then return 1 + f(n - 1) end for i = 1, 100 do pcall(error) end return 1 end return f(5000)": ":5001",
		"local function f(n) if n > 0 then return f(n - 1) end return 1 + f(100) end return f(100)":                                "-ERR user_script:1: stack overflow @user_script:1",
		"local function f(n) if n > 0 then return f(n - 1) end return 1 + f(100) end return tostring(pcall(f, 100))":               "$5 false",
		"local function f(n) if n > 0 then return f(n - 1) end return 1 + (pcall(type, 1) and 0 or 0) + f(100) end return f(100)":  "-ERR user_script:1: stack overflow @user_script:1",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := eval(e, h, source)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; got != want || n > 30<<20 {
			t.Errorf("%s: %s, %d MiB were allocated", source, got, n>>20)
		}
	}
}

// A closure keeps its variables when a call too deep ends its function.
func TestUpvaluesAfterOverflow(t *testing.T) {
	e, h := newEngine()
	const source = "local get local function f() local x = 'kept' get = function() return x end return 1 + f() end " +
		"local ok = pcall(f) local a, b, c = 1, 2, 3 return {tostring(ok), get(), a + b + c}"
	if got := eval(e, h, source); got != "*3 $5 false $4 kept :6" {
		t.Error(got)
	}
}

// After an error that is caught, a function still shares its variables with its closures, and those
// of the functions that it has ended keep theirs.
func TestUpvaluesAfterErrors(t *testing.T) {
	e, h := newEngine()
	for _, raise := range []string{"pcall(error)", "pcall(function() local t; t.x = 1 end)", "xpcall(error, tostring)", "pcall(pcall, error)",
		"pcall(string.rep)", "coroutine.resume(coroutine.create(error))", "pcall(function() pcall(error) error() end)"} {
		source := "local n = 0 local function add() n = n + 1 end add() RAISE add() n = n + 1 add() return n"
		if got := eval(e, h, strings.ReplaceAll(source, "RAISE", raise)); got != ":4" {
			t.Errorf("%s: %s", raise, got)
		}
		source = "local f = coroutine.wrap(function() local n = 0 local function add() n = n + 1 end add() RAISE add() n = n + 1 add() coroutine.yield(n) RAISE add() return n end) return f() * 10 + f()"
		if got := eval(e, h, strings.ReplaceAll(source, "RAISE", raise)); got != ":45" {
			t.Errorf("%s in a coroutine: %s", raise, got)
		}
	}
	const source = "local get, set pcall(function() local x = 1 get = function() return x end set = function(y) x = y end set(2) error() end) " +
		"local a, b, c, d = 5, 6, 7, 8 local function sum() return a + b + c + d end set(get() + 1) return {get(), sum()}"
	if got := eval(e, h, source); got != "*2 :3 :26" {
		t.Error(got)
	}
}

// Strings are converted to numbers as in C's Lua.
func TestStringArithmetic(t *testing.T) {
	e, h := newEngine()
	for source, want := range map[string]string{
		"return '10' + 5":     ":15",
		"return 10 - '4'":     ":6",
		"return '6' * '7'":    ":42",
		"return '9' / 3":      ":3",
		"return '2' ^ '5'":    ":32",
		"return -'3'":         ":-3",
		"return ' 0x10 ' + 0": ":16",
		"return '017' + 0":    ":17",
		"return '1_0' + 0":    "-ERR user_script:1: attempt to perform arithmetic on a string value @user_script:1",
		"return 1 + 'x'":      "-ERR user_script:1: attempt to perform arithmetic on a string value @user_script:1",
		"return '5' + {}":     "-ERR user_script:1: attempt to perform arithmetic on a table value @user_script:1",
		"return nil + '5'":    "-ERR user_script:1: attempt to perform arithmetic on a nil value @user_script:1",
		"return -'x'":         "-ERR user_script:1: attempt to perform arithmetic on a string value @user_script:1",
		"return '5' * setmetatable({}, {__mul = function(a, b) return a .. '!' end})": "$2 5!",
		"return 'x' - setmetatable({}, {__sub = function(a, b) return a .. '!' end})": "$2 x!",
		"return tostring(tonumber(string.rep('0', 4095) .. '7'))":                     "$1 7",
		"return tostring(tonumber(string.rep('0', 4096) .. '7'))":                     "$3 nil",
		"return tostring(tonumber(string.rep('0', 4096) .. '7', 8))":                  "$3 nil",
		"return cjson.decode('[' .. string.rep('1', 4096) .. ']')[1] == math.huge":    ":1",
		"return cjson.decode('[' .. string.rep('1', 4097) .. ']')":                    "-ERR user_script:1: Expected value but found invalid number at character 2 @user_script:1",
		"return #string.format(string.rep('%.1s', 2), string.rep('x', 9), 'y')":       ":2",
		"return string.format('%+-0#5d|', 3)":                                         "$6 +3   |",
		"return string.format('%-+ #00d', 3)":                                         "-ERR user_script:1: invalid format (repeated flags) @user_script:1",
	} {
		if got := eval(e, h, source); got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
}

// What a script logs is cut.
func TestLongLog(t *testing.T) {
	e, h := newEngine()
	eval(e, h, "redis.log(redis.LOG_WARNING, string.rep('x', 1e6))")
	if len(h.logs) != 1 || len(h.logs[0]) != maxLogged+3 {
		t.Errorf("%d texts were logged", len(h.logs))
	}
}

// The text of an error is one of the virtual machine's only if it is short.
func TestLongErrors(t *testing.T) {
	e, h := newEngine()
	for _, start := range []string{"cannot perform add operation between number and ", "attempt to compare ' .. y .. ' with ", "for statement init "} {
		source := "local y = string.rep('y', 2000) local s = '" + start + "' .. y local ok, m = pcall(error, s, 0) return tostring(m == s)"
		if got := eval(e, h, source); got != "$4 true" {
			t.Errorf("%s: %s", start, got)
		}
	}
}

// The fields of gopher-lua's that upvalues.go needs are there. Without them errors are caught, too.
func TestInside(t *testing.T) {
	if !inside.known {
		t.Error("this version of gopher-lua has other fields, see upvalues.go")
	}
	defer func(was fields) { inside = was }(inside)
	inside = fields{}
	e, h := newEngine()
	source := "local function f(n) if n == 0 then error('deep', 0) end return 1 + f(n - 1) end " +
		"local ok, m = pcall(f, 100) return {m, select(2, pcall(pcall, error, 'x'))}"
	if got, want := eval(e, h, source), "*3 $4 deep $-1 $1 x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A tail call that finds no room for its registers is an error like others, and scripts go on.
func TestTailCallWithoutRoom(t *testing.T) {
	e, h := newEngine()
	h.limit = 1 << 20
	locals := func(name string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%s%d", name, i)
		}
		return "local " + b.String()[1:] + " "
	}
	functions := "local g = function() " + locals("b", 190) + "return b1 end " +
		"local function f(n) " + locals("a", 110) + "if n == 0 then return g() end local r = f(n - 1) return r end "
	got := eval(e, h, functions+"return select(2, pcall(f, 9360))") // f has room, and g has none
	if got != "$14 stack overflow" {
		t.Errorf("got %.300s", got)
	}
	eval(e, h, functions+"return f(9360)")
	if got := eval(e, h, "return 1"); got != ":1" {
		t.Errorf("then got %s", got)
	}
}
