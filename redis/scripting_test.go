package redis

import (
	"strings"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

// threeCommands is a short script, as applications have them.
const threeCommands = "redis.call('set',KEYS[1],ARGV[1]) local v=redis.call('get',KEYS[1]) redis.call('incr',KEYS[2]) return v"

// A call of a script allocates little more than its keys, arguments and replies as values of Lua.
func TestScriptsAllocateLittle(t *testing.T) {
	b := newBench(t, &Server{})
	b.allFast()
	digest := b.do("a", "SCRIPT", "LOAD", threeCommands)[4:]
	f := b.connect("a")
	f.out = make([]byte, 0, 1<<10)
	in := resp.AppendRequest(nil, "EVALSHA", digest, "2", "k", "n", "xxx")
	run := func() {
		f.out = f.out[:0]
		b.send(f, in)
	}
	run()
	if n := testing.AllocsPerRun(100, run); n > 12 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkScripts(b *testing.B) {
	for _, source := range []string{"return 1", "return redis.call('incr',KEYS[1])", threeCommands, "return redis.call('set',KEYS[1],ARGV[1])"} {
		b.Run(strings.ReplaceAll(source, " ", "_"), func(b *testing.B) {
			const batch = 32
			s := newBench(b, &Server{})
			digest := s.do("a", "SCRIPT", "LOAD", source)[4:]
			f := s.connect("a")
			f.out = make([]byte, 0, 64<<10)
			in := []byte(strings.Repeat(string(resp.AppendRequest(nil, "EVALSHA", digest, "2", "k", "n", "xxx")), batch))
			b.ReportAllocs()
			for i := 0; i < b.N; i += batch {
				f.out = f.out[:0]
				s.send(f, in)
			}
		})
	}
}

// What a script leaves in KEYS, ARGV or what it raises is no other script's, and runs nowhere else.
func TestScriptsLeaveNothing(t *testing.T) {
	newBench(t, &Server{}).script(`
		EVAL "return KEYS" 1 a => *1 $1 a
		EVAL "return {ARGV, KEYS}" 1 a x y => *2 *2 $1 x $1 y *1 $1 a
		EVAL "return ARGV" 0 => *0
		EVAL "function KEYS.f() end return 1" 0 => :1
		EVAL "local n=0 for _ in pairs(KEYS) do n=n+1 end return n" 1 k => :1
		EVAL "function KEYS:f() end return 1" 0 => :1
		EVAL "local n=0 for _ in pairs(KEYS) do n=n+1 end return n" 1 k => :1
		FUNCTION LOAD "#!lua name=l\nsetmetatable(ARGV,{__index=function() return 'evil' end})" => -ERR Error registering functions: ...
		FUNCTION LOAD "#!lua name=l\nredis.register_function('f',function() return loadstring('KEYS.x=1')() end) redis.register_function('g',function() return ARGV[1] end)" => $1 l
		FCALL f 0 => -ERR ...
		FCALL g 0 x => -ERR ...
		EVAL "return {ARGV[2] or 'none', KEYS.x or 'none'}" 0 x => *2 $4 none $4 none
		EVAL "error(setmetatable({},{__index=function() error('x') end}))" 0 => -ERR unknown error...
		EVAL "error(setmetatable({},{__index=function() while true do end end}))" 0 => -ERR unknown error...
		EVAL "local redis={call=function(x) return x..'!' end} local call=redis.call return call('y')" 0 => $2 y!
	`)
}

func TestEval(t *testing.T) {
	newBench(t, &Server{}).script(`
		EVAL "return 1" 0 => :1
		EVAL "return {KEYS[1],ARGV[1]}" 1 k v => *2 $1 k $1 v
		EVAL "return redis.call('SET',KEYS[1],ARGV[1])" 1 k v => +OK
		EVAL "return redis.call('GET',KEYS[1])" 1 k => $1 v
		EVAL "return redis.call('GET','nokey')" 0 => $-1
		EVAL "return redis.call('INCR',KEYS[1])" 1 k => -ERR value is not an integer or out of range script: da8455f0535fd532821b3713a4eccd80fc4b8457, on @user_script:1.
		EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 => :1
		EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0 => :1
		EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8dc 0 => -NOSCRIPT No matching script. Please use EVAL.
		EVALSHA short 0 => -NOSCRIPT No matching script. Please use EVAL.
		EVAL "return 1" x => -ERR value is not an integer or out of range
		EVAL "return 1" 1 => -ERR Number of keys can't be greater than number of args
		EVAL "return 1" -1 => -ERR Number of keys can't be negative
		SCRIPT LOAD "return 2" => $40 7f923f79fe76194c868d7e1d0820de36700eb649
		SCRIPT EXISTS 7f923f79fe76194c868d7e1d0820de36700eb649 xx => *2 :1 :0
		SCRIPT FLUSH => +OK
		SCRIPT EXISTS 7f923f79fe76194c868d7e1d0820de36700eb649 => *1 :0
		SCRIPT KILL => -NOTBUSY No scripts in execution right now.
		EVAL_RO "return redis.call('GET',KEYS[1])" 1 k => $1 v
		EVAL_RO "return redis.pcall('DEL',KEYS[1])" 1 k => -ERR Write commands are not allowed from read-only scripts.
		EVAL "return redis.pcall('SUBSCRIBE','x')" 0 => -ERR This Redis command is not allowed from script
		EVAL "return redis.pcall('XREAD','BLOCK',0,'STREAMS','s','0')" 0 => -ERR XREAD command is not allowed with BLOCK option from scripts
		EVAL "return redis.pcall('BLPOP','none',0)" 0 => -ERR This Redis command is not allowed from script
		MULTI => +OK
		EVAL "redis.call('SET','a','1') return redis.call('GET','a')" 0 => +QUEUED
		GET a => +QUEUED
		EXEC => *2 $1 1 $1 1
		EVAL "redis.call('SELECT',1) redis.call('SET','b',1) return 1" 0 => :1
		GET b => $-1
		EVAL "redis.setresp(3) return redis.call('HGETALL','none')" 0 => *0
		EVAL "return 1 +" 0 => -ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'
	`)
}

func TestFunctions(t *testing.T) {
	b := newBench(t, &Server{})
	do := func(want string, args ...string) {
		t.Helper()
		if got := b.do("a", args...); got != want {
			t.Errorf("%q\n got %s\nwant %s", args, got, want)
		}
	}
	const code = "#!lua name=lib\nlocal n = 0\nredis.register_function('f', function(keys, args) n = n + 1 return {keys[1], args[1], n} end)\n" +
		"redis.register_function{function_name='g', callback=function() return redis.call('SET','x','1') end, flags={'no-writes'}}"
	do("$3 lib", "FUNCTION", "LOAD", code)
	do("-ERR Library 'lib' already exists", "FUNCTION", "LOAD", code)
	do("$3 lib", "FUNCTION", "LOAD", "REPLACE", code)
	do("*3 $1 k $1 v :1", "FCALL", "f", "1", "k", "v")
	do("*3 $1 k $1 v :2", "FCALL", "f", "1", "k", "v")
	do("-ERR Write commands are not allowed from read-only scripts. script: g, on @user_function:4.", "FCALL", "g", "0")
	do("-ERR Can not execute a script with write flag using *_ro command.", "FCALL_RO", "f", "0")
	do("-ERR Function not found", "FCALL", "h", "0")
	do("*1 *6 $12 library_name $3 lib $6 engine $3 LUA $9 functions *2 *6 $4 name $1 f $11 description $-1 $5 flags *0 *6 $4 name $1 g $11 description $-1 $5 flags *1 +no-writes",
		"FUNCTION", "LIST")
	f := b.connect("a")
	dump := b.do("a", "FUNCTION", "DUMP")
	_ = f
	if len(dump) < 100 {
		t.Fatalf("dump %q", dump)
	}
	do("*4 $14 running_script $-1 $7 engines *2 $3 LUA *4 $15 libraries_count :1 $15 functions_count :2", "FUNCTION", "STATS")
	do("+OK", "FUNCTION", "DELETE", "lib")
	do("$3 lib", "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('r', function() return math.random(100000) end)")
	do(":39647", "EVAL", "return math.random(100000)", "0")
	do(":84049", "FCALL", "r", "0")
	do(":35334", "EVAL", "return math.random(100000)", "0")
	do("+OK", "FUNCTION", "DELETE", "lib")
	do("-ERR Library not found", "FUNCTION", "DELETE", "lib")
	do("-ERR Missing library metadata", "FUNCTION", "LOAD", "return 1")
	do("-ERR No functions registered", "FUNCTION", "LOAD", "#!lua name=lib\nlocal x = 1")
	do("+OK", "FUNCTION", "FLUSH")
}

// Keys that a script adds or deletes are not its own memory, and most are not in Go's heap.
func TestScriptsMemoryIsNotThatOfKeys(t *testing.T) {
	b := newBench(t, &Server{})
	b.s.scripts.lua().MaxMemory = 8 << 20
	b.script(`
		CONFIG SET busy-reply-threshold 0 => +OK
		EVAL "local v = string.rep('x', 250) for i = 1, 2e5 do redis.call('SET', 'key:' .. i, v) end return redis.call('DBSIZE')" 0 => :200000
		EVAL "for i = 1, 1e5 do end redis.call('FLUSHALL') for i = 1, 1e5 do end return 'fine'" 0 => $4 fine
		EVAL "local v = string.rep('x', 250) for i = 1, 2e5 do redis.call('SET', 'key:' .. i, v) end local t = {} for i = 1, 32 do t[i] = string.rep('x', 2^20) end return 1" 0 => -ERR not enough memory...
	`)
}
