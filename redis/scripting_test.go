package redis

import "testing"

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
	do("-ERR Library not found", "FUNCTION", "DELETE", "lib")
	do("-ERR Missing library metadata", "FUNCTION", "LOAD", "return 1")
	do("-ERR No functions registered", "FUNCTION", "LOAD", "#!lua name=lib\nlocal x = 1")
	do("+OK", "FUNCTION", "FLUSH")
}
