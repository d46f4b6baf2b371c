package script

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// What a script may use is bounded, and the engine goes on after it.
func TestAbuse(t *testing.T) {
	e, h := newEngine()
	e.MaxMemory = 24 << 20
	const memory = "-ERR not enough memory"
	for _, x := range []struct{ source, want string }{
		{"local s = 'x' while true do s = s .. s end", memory},
		{"return string.rep('x', 1e9)", memory},
		{"return string.rep('', 1e15)", "$0"},
		{"local t = {} while true do t[#t+1] = {} end", memory},
		{"local t = {} for i = 1, 1e9 do t[i] = {} t[i][4e6] = 1 end", memory},
		{"local t = {} for i = 1, 1e9 do t[i] = tostring(i) .. 'abc' end", memory},
		{"local t = {} for i = 1, 1e9 do table.insert(t, string.rep('y', 1e6)) end", memory},
		{"local t = {} t[1e15] = 1 return #t", ":0"},
		{"local f f = function() return 1 + f() end return f()", "-ERR user_script:1: stack overflow"},
		{"local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k+1] end return t[1]", "-ERR"},
		{"local f f = function() return pcall(f) end return select('#', f())", ":"},
		{"local function f() return coroutine.wrap(f)() end return f()", "-ERR"},
		{"return string.find(string.rep('a', 300000), string.rep('a?', 3000) .. 'b')", "-ERR too long"},
		{"return string.match(string.rep('(', 100000), string.rep('(', 40))", "-ERR"},
		{"return {unpack({}, 1, 1e6)}", "-ERR user_script:1: too many results to unpack"},
		{"return cmsgpack.unpack(string.rep('\\145', 100000))", "-ERR"},
		{"return cjson.decode(string.rep('[', 100000))", "-ERR"},
		{"return " + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000), ":1"},
		{"return " + strings.Repeat("not ", 3000) + "x", "compile: "},
		{"return " + strings.Repeat("{", 3000) + strings.Repeat("}", 3000), "compile: user_script: chunk has too many syntax levels"},
		{"cjson.encode_max_depth(2147483647) local t = {} t[1] = t return cjson.encode(t)", "-ERR user_script:1: Cannot serialise, excessive nesting"},
		{"return cmsgpack.unpack(string.char(0xdc, 3, 0xe8) .. string.rep(string.char(0x81, 0xce, 0, 0x3f, 0xff, 0xfe, 1), 1000))", memory},
		{"local a = {} for i = 1, 1e5 do a[i] = 0.1 end local b = {} for i = 1, 900 do b[i] = a end return #cmsgpack.pack(b)", memory},
		{"function a" + strings.Repeat(".b", 100000) + "() end", "compile: user_script: chunk has too many syntax levels"},
		{"return '" + strings.Repeat("x", maxSource) + "'", "compile: user_script: chunk is longer than 2097152 bytes"},
		{"return {" + numbers(260000) + "}", "compile: user_script: chunk has too many constants"},
		{"return #{" + numbers(15000) + "}", ":15000"},
		{"load(gcinfo)", "-ERR"},
		{"local function f(n, ...) if n < 9000 then return f(n + 1, {...}, ...) + 1 end return 1 end return f(1, 1)", "-ERR"},
		{"local t = {} for i = 1, 7000 do t[i] = i end local keep = {} local function f(...) for i = 1, 1e9 do keep[i] = {...} end end f(unpack(t))", memory},
		{"local t = {} for i = 1, 7000 do t[i] = i end local keep = {} local function g(...) return arg end local function f(...) for i = 1, 1e9 do keep[i] = g(...) end end f(unpack(t))", memory},
		{"while true do pcall(error) end", "-ERR too long"},
		{"coroutine.wrap(function() while true do end end)()", "-ERR too long"},
		{"local s = string.rep('x', 1e7) local t = {} for i = 1, 1e3 do t[i] = redis.error_reply(s) end", memory},
		{"local s = string.rep('x', 1e7) local t = {} for i = 1, 1e3 do local ok, m = pcall(function() error(s) end) t[i] = m end", memory},
		{"local P = {} P[4000000] = 1 local mt = {} setmetatable(P, mt) local keep = {} for i = 1, 1000 do local n = {} keep[i] = n mt.__newindex = n P[4000001] = 1 end", memory},
		{"local t = {} for i = 1, 3e5 do t[i] = i end table.sort(t, rawequal) table.sort(t, rawequal)", "-ERR too long"},
		{"local t = {} for i = 1, 3e5 do t[i] = 'x' end table.foreachi(t, rawequal) while true do end", "-ERR too long"},
		{"local s = string.rep('x', 1e6) local t = {} for i = 1, 200 do local ok, m = pcall(function() return _G[s] end) t[i] = m end", memory},
		{"local s = string.rep('x', 1e6) local t = {} for i = 1, 200 do local ok, m = pcall(cjson.encode_keep_buffer, s) t[i] = m end", memory},
		{"local s = string.rep('x', 1e6) local t = {} for i = 1, 200 do local ok, m = pcall(assert, false, s) t[i] = m end", memory},
		{"return #cjson.encode(string.rep('\\1', 1e7))", memory},
		{"return string.rep(string.rep('x', 10), 1e18)", memory},
		{"local t = setmetatable({}, {}) getmetatable(t).__tostring = tostring return tostring(t)", "-ERR stack overflow"},
		{"local f f = function() return 1 + f() end return select(2, pcall(f))", "$29 user_script:1: stack overflow"},
		{"return 1", ":1"},
	} {
		h.ticks, h.limit = 0, 0
		if strings.Contains(x.want, "too long") {
			h.limit = 10
		} else {
			h.limit = 1 << 20
		}
		if got := eval(e, h, x.source); !strings.HasPrefix(got, x.want) {
			t.Errorf("%.80s\n got %.300s\nwant %s", x.source, got, x.want)
		}
	}
}

// Garbage from before a script does not give it more memory.
func TestGarbageIsNoRoom(t *testing.T) {
	e, h := newEngine()
	e.MaxMemory = 24 << 20
	h.limit = 1 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	const source = "local t = {} for i = 1, 100 do t[i] = string.rep('x', 1e6) end return #t"
	for range 5 {
		if got := eval(e, h, source); !strings.HasPrefix(got, "-ERR not enough memory") {
			t.Error(got)
		}
		for range 200 {
			garbage = make([]byte, 1<<20)
		}
	}
}

var garbage []byte

// A panic of the server's passes through the script, which cannot catch it.
func TestPanic(t *testing.T) {
	e, h := newEngine()
	func() {
		defer func() {
			if r := recover(); r != "a fault of the server" {
				t.Errorf("recovered %v", r)
			}
		}()
		eval(e, h, "while true do pcall(redis.call, 'panic') end")
	}()
	if got := eval(e, h, "return 1"); got != ":1" {
		t.Errorf("afterwards: %s", got)
	}
}

// A script leaves nothing behind.
func TestSandbox(t *testing.T) {
	e, h := newEngine()
	for _, source := range []string{
		"getmetatable('').__index = 1", "table.insert(string, 1)", "table.sort(redis)", "string.len = 1",
		"getmetatable(_G).__index = 1", "rawset(getmetatable(''), 'x', 1)", "KEYS = 1", "_G.x = 1",
		"redis.call = 1", "setmetatable(string, nil)", "cjson.null = 1", "loadstring('x = 1')()",
	} {
		if got := eval(e, h, source); !strings.Contains(got, "readonly table") {
			t.Errorf("%s: %s", source, got)
		}
	}
	if got := eval(e, h, "return ('x'):rep(2) .. string.len('abc')"); got != "$3 xx3" {
		t.Errorf("afterwards: %s", got)
	}
}

// The size of a reply is known before it is made, whatever tables are in it more than once.
func TestFits(t *testing.T) {
	e, _ := newEngine()
	for source, want := range map[string]bool{
		"return {1, {2, 'x'}, {ok='fine'}}":                                                                         true,
		"local t = {1} for i = 1, 40 do t = {t, t} end return t":                                                    false,
		"local t = {} t[1] = t t[2] = t return t":                                                                   false,
		"return {map={a=string.rep('x', 500000), b='y'}}":                                                           true,
		"local t = {} for i = 1, 1e5 do t[i] = 1 end for i = 1, 1e5 do t[i] = nil end return {map=t}":               false,
		"local t = {} for i = 1, 1e5 do t['k' .. i] = 1 end for i = 1, 1e5 do t['k' .. i] = nil end return {set=t}": false,
		"local t = {} for i = 1, 1e4 do t[i] = {} end return t":                                                     false,
		"return {map={a=string.rep('x', 500000), b=string.rep('x', 800000)}}":                                       false,
	} {
		f, err := e.Compile(source, "user_script")
		if err != nil {
			t.Fatal(source, err)
		}
		v, failure := e.Eval(f, nil, nil)
		if failure != nil || v.Fits(1<<20) != want {
			t.Errorf("%s: %v, want %v", source, failure, want)
		}
	}
}

// numbers lists distinct numbers.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strconv.Itoa(100000+i) + ",")
	}
	return b.String()
}
