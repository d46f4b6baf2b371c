package redis

import (
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
)

func TestStrings(t *testing.T) {
	newBench(t, &Server{}).script(`
		GET k => $-1
		SET k v => +OK
		get k => $1 v
		GET => -ERR wrong number of arguments for 'get' command
		GET k k => -ERR wrong number of arguments for 'get' command
		SET k "" => +OK
		GET k => $0
		SET k "a\x00\r\nb" => +OK
		STRLEN k => :5
		STRLEN none => :0
		GETSET k new => $5 a` + "\x00" + ` b
		GET k => $3 new
		GETSET fresh x => $-1
		GETDEL fresh => $1 x
		GETDEL fresh => $-1
		EXISTS fresh => :0
		SETNX k other => :0
		SETNX n 1 => :1
		MSET a 1 b 2 => +OK
		MSET a 1 b => -ERR wrong number of arguments for 'mset' command
		MSETNX a 1 b => -ERR wrong number of arguments for 'msetnx' command
		MGET a none b => *3 $1 1 $-1 $1 2
		MSETNX c 1 a 9 => :0
		EXISTS c => :0
		MSETNX c 1 d 2 => :1
		MSET e 1 e 2 => +OK
		GET e => $1 2
	`)
}

func TestSetOptions(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET k v NX => +OK
		SET k w NX => $-1
		SET k w XX => +OK
		SET none w XX => $-1
		EXISTS none => :0
		SET k x GET => $1 w
		SET new x GET => $-1
		SET new y NX GET => $1 x
		GET new => $1 x
		SET gone y XX GET => $-1
		EXISTS gone => :0
		SET k v NX XX => -ERR syntax error
		SET k v XX NX => -ERR syntax error
		SET k v EX => -ERR syntax error
		SET k v EX 1 PX 1 => -ERR syntax error
		SET k v EX 1 KEEPTTL => -ERR syntax error
		SET k v KEEPTTL EX 1 => -ERR syntax error
		SET k v PERSIST => -ERR syntax error
		SET k v bogus => -ERR syntax error
		SET k v EX x => -ERR value is not an integer or out of range
		SET k v EX 0 => -ERR invalid expire time in 'set' command
		SET k v PX -1 => -ERR invalid expire time in 'set' command
		SET k v EX 9223372036854775807 => -ERR invalid expire time in 'set' command
		SET k v PX 9223372036854775807 => -ERR invalid expire time in 'set' command
		SETEX k 0 v => -ERR invalid expire time in 'setex' command
		PSETEX k -5 v => -ERR invalid expire time in 'psetex' command
		SETEX k x v => -ERR value is not an integer or out of range
		GET k => $1 x
		SET k v EX 10 => +OK
		PTTL k => :10000
		SET k v => +OK
		PTTL k => :-1
		SET k v px 1500 => +OK
		PTTL k => :1500
		SET k w KEEPTTL => +OK
		PTTL k => :1500
		GET k => $1 w
		SET k v EX 1 EX 2 => +OK
		PTTL k => :2000
		SET k v EXAT 1700000100 => +OK
		TTL k => :100
		SET k v PXAT 1700000000500 => +OK
		PTTL k => :500
		SET k v EXAT 1 => +OK
		EXISTS k => :0
		SETEX k 10 v => +OK
		TTL k => :10
		PSETEX k 10 v => +OK
		PTTL k => :10
	`)
}

func TestGetex(t *testing.T) {
	newBench(t, &Server{}).script(`
		GETEX none => $-1
		GETEX none EX 0 => $-1
		SET k v => +OK
		GETEX k => $1 v
		GETEX k EX 100 => $1 v
		TTL k => :100
		GETEX k => $1 v
		TTL k => :100
		GETEX k PERSIST => $1 v
		TTL k => :-1
		GETEX k PX 1500 => $1 v
		PTTL k => :1500
		GETEX k EX 0 => -ERR invalid expire time in 'getex' command
		GETEX k EX => -ERR syntax error
		GETEX k EX 1 PERSIST => -ERR syntax error
		GETEX k PERSIST EX 1 => -ERR syntax error
		GETEX k KEEPTTL => -ERR syntax error
		GETEX k NX => -ERR syntax error
		GETEX k EXAT 1700000100 => $1 v
		TTL k => :100
		GETEX k PXAT 1 => $1 v
		EXISTS k => :0
	`)
}

func TestIntegers(t *testing.T) {
	newBench(t, &Server{}).script(`
		INCR n => :1
		INCRBY n 10 => :11
		DECR n => :10
		DECRBY n 20 => :-10
		GET n => $3 -10
		INCRBY n x => -ERR value is not an integer or out of range
		INCRBY n 1.5 => -ERR value is not an integer or out of range
		INCRBY n " 1" => -ERR value is not an integer or out of range
		INCRBY n +1 => -ERR value is not an integer or out of range
		INCRBY n 9223372036854775808 => -ERR value is not an integer or out of range
		INCRBY n 18446744073709551619 => -ERR value is not an integer or out of range
		SET n 9223372036854775807 => +OK
		INCR n => -ERR increment or decrement would overflow
		DECR n => :9223372036854775806
		SET n -9223372036854775808 => +OK
		DECR n => -ERR increment or decrement would overflow
		DECRBY n 9223372036854775807 => -ERR increment or decrement would overflow
		DECRBY n -9223372036854775808 => -ERR decrement would overflow
		INCRBY n 9223372036854775807 => :-1
		SET s abc => +OK
		INCR s => -ERR value is not an integer or out of range
		SET s 01 => +OK
		INCR s => -ERR value is not an integer or out of range
		SET s "" => +OK
		INCR s => -ERR value is not an integer or out of range
		SET s 5 EX 100 => +OK
		INCR s => :6
		TTL s => :100
	`)
}

func TestAppendAndRanges(t *testing.T) {
	newBench(t, &Server{}).script(`
		APPEND k abc => :3
		APPEND k "" => :3
		APPEND k defgh => :8
		GET k => $8 abcdefgh
		GETRANGE k 0 2 => $3 abc
		GETRANGE k -3 -1 => $3 fgh
		GETRANGE k 0 -1 => $8 abcdefgh
		GETRANGE k 5 100 => $3 fgh
		GETRANGE k 4 2 => $0
		GETRANGE k -1 -5 => $0
		GETRANGE k -100 -50 => $1 a
		GETRANGE none 0 -1 => $0
		GETRANGE k a 1 => -ERR value is not an integer or out of range
		SUBSTR k 1 2 => $2 bc
		SETRANGE k 2 XY => :8
		GET k => $8 abXYefgh
		SETRANGE k 7 12 => :9
		SETRANGE new 3 x => :4
		GET new => $4 ` + "\x00\x00\x00" + `x
		SETRANGE none 10 "" => :0
		EXISTS none => :0
		SETRANGE k 100 "" => :9
		SETRANGE k -1 x => -ERR offset is out of range
		SETRANGE k 536870912 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
		SETRANGE k 9223372036854775807 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
		CONFIG SET proto-max-bulk-len 1mb => +OK
		SETRANGE k 1048576 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
		SETRANGE k 1048575 x => :1048576
		APPEND k x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
	`)
}

func TestWrongType(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET k v => +OK
		SET l x => +OK
	`)
	db := b.s.space.dbs[0].keys
	db.Put([]byte("l"), store.BytesValue(store.List, nil, false), store.NoDeadline)
	for _, cmd := range []string{
		"GET l", "GETSET l x", "GETDEL l", "GETEX l", "STRLEN l", "APPEND l x", "SETRANGE l 0 x", "GETRANGE l 0 1",
		"INCR l", "DECRBY l 1", "SET l x GET",
	} {
		b.script(cmd + " => -WRONGTYPE Operation against a key holding the wrong kind of value")
	}
	b.script(`
		TYPE l => +list
		MGET k l => *2 $1 v $-1
		SCAN 0 TYPE list => *2 $1 0 *1 $1 l
		SCAN 0 TYPE string => *2 $1 0 *1 $1 k
		SETNX l x => :0
		SET l x => +OK
		TYPE l => +string
	`)
}

func TestLongRepliesAreComplete(t *testing.T) {
	b := newBench(t, &Server{})
	long := strings.Repeat("x", 3*spillSize)
	b.do("a", "SET", "k", long)
	if got, want := b.do("a", "GET", "k"), "$196608 "+long; got != want {
		t.Errorf("GET returned %d bytes, want %d", len(got), len(want))
	}
	if got, want := b.do("a", "MGET", "k", "none", "k"), "*3 $196608 "+long+" $-1 $196608 "+long; got != want {
		t.Errorf("MGET returned %d bytes, want %d", len(got), len(want))
	}
	if got, want := b.do("a", "ECHO", long), "$196608 "+long; got != want {
		t.Errorf("ECHO returned %d bytes, want %d", len(got), len(want))
	}
}
