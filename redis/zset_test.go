package redis

import (
	"fmt"
	"strings"
	"testing"
)

func TestZadd(t *testing.T) {
	newBench(t, &Server{}).script(`
		ZADD z 1 a 2 b => :2
		ZADD z 1 a 3 b => :0
		ZADD z CH 2 a 3 b 4 c => :2
		ZADD z NX 9 a 5 d => :1
		ZADD z XX CH 6 d 7 none => :1
		ZADD z GT CH 1 d => :0
		ZADD z LT CH 1 d => :1
		ZADD z INCR 2.5 d => $3 3.5
		ZADD z NX INCR 1 d => $-1
		ZADD none XX 1 a => :0
		ZADD none XX INCR 1 a => $-1
		EXISTS none => :0
		ZADD z 1 => -ERR wrong number of arguments for 'zadd' command
		ZADD z 1 a 2 => -ERR syntax error
		ZADD z NX XX 1 a => -ERR XX and NX options at the same time are not compatible
		ZADD z NX GT 1 a => -ERR GT, LT, and/or NX options at the same time are not compatible
		ZADD z GT LT 1 a => -ERR GT, LT, and/or NX options at the same time are not compatible
		ZADD z INCR 1 a 2 b => -ERR INCR option supports a single increment-element pair
		ZADD z x a => -ERR value is not a valid float
		ZADD z nan a => -ERR value is not a valid float
		ZADD z inf i => :1
		ZINCRBY z -inf i => -ERR resulting score is not a number (NaN)
		ZSCORE z i => $3 inf
		ZRANGE z 0 -1 WITHSCORES => *10 $1 a $1 2 $1 b $1 3 $1 d $3 3.5 $1 c $1 4 $1 i $3 inf
		ZREM z i none => :1
		ZMSCORE z a none => *2 $1 2 $-1
		ZREM z a b c d => :4
		EXISTS z => :0
		SET s x => +OK
		ZADD s 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
		ZCARD s => -WRONGTYPE Operation against a key holding the wrong kind of value
	`)
}

// The replies do not depend on how a set is stored.
func TestZsetRanges(t *testing.T) {
	for _, entries := range []string{"128", "0"} {
		b := newBench(t, &Server{})
		b.script("CONFIG SET zset-max-ziplist-entries " + entries + " => +OK")
		b.script(`
			ZADD z 1 a 2 b 2 c 3 d 5 e => :5
			ZADD lex 0 a 0 b 0 c 0 d => :4
			ZCOUNT z (1 3 => :3
			ZCOUNT z x 3 => -ERR min or max is not a float
			ZLEXCOUNT lex [b + => :3
			ZLEXCOUNT lex b + => -ERR min or max not valid string range item
			ZRANK z c => :2
			ZREVRANK z c => :2
			ZRANK z none => $-1
			ZRANGE z 1 -2 => *3 $1 b $1 c $1 d
			ZRANGE z 0 1 REV => *2 $1 e $1 d
			ZREVRANGE z 0 0 WITHSCORES => *2 $1 e $1 5
			ZRANGE z 9 10 => *0
			ZRANGE z (1 5 BYSCORE LIMIT 1 2 => *2 $1 c $1 d
			ZRANGE z 3 -inf BYSCORE REV LIMIT 0 -1 => *4 $1 d $1 c $1 b $1 a
			ZRANGE lex (a [c BYLEX => *2 $1 b $1 c
			ZRANGE lex + - BYLEX REV LIMIT 1 2 => *2 $1 c $1 b
			ZRANGE z 0 1 LIMIT 0 1 => -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
			ZRANGE lex - + BYLEX WITHSCORES => -ERR syntax error, WITHSCORES not supported in combination with BYLEX
			ZRANGEBYSCORE z -inf 2 WITHSCORES LIMIT 1 1 => *2 $1 b $1 2
			ZREVRANGEBYSCORE z 3 (1 => *3 $1 d $1 c $1 b
			ZRANGEBYLEX lex - (c => *2 $1 a $1 b
			ZREVRANGEBYLEX lex (c - => *2 $1 b $1 a
			ZRANGEBYSCORE z 1 2 REV => -ERR syntax error
			ZRANGESTORE new z 1 3 => :3
			ZRANGE new 0 -1 => *3 $1 b $1 c $1 d
			ZRANGESTORE new none 0 -1 => :0
			EXISTS new => :0
			ZREMRANGEBYRANK z 0 0 => :1
			ZREMRANGEBYSCORE z 2 (3 => :2
			ZREMRANGEBYLEX lex - [b => :2
			ZRANGE z 0 -1 => *2 $1 d $1 e
			ZRANGE lex 0 -1 => *2 $1 c $1 d
			ZPOPMIN z => *2 $1 d $1 3
			ZPOPMAX z 5 => *2 $1 e $1 5
			ZPOPMAX z 5 => *0
			ZPOPMIN lex -1 => -ERR value is out of range, must be positive
			ZMPOP 2 z lex MAX COUNT 1 => *2 $3 lex *1 *2 $1 d $1 0
			ZMPOP 1 z MIN => *-1
			HELLO 3 => ...
			ZADD z 1 a 1.5 b => :2
			ZRANGE z 0 -1 WITHSCORES => *2 *2 $1 a ,1 *2 $1 b ,1.5
			ZPOPMIN z => *2 $1 a ,1
			ZPOPMIN z 1 => *1 *2 $1 b ,1.5
			ZSCORE z a => _
		`)
	}
}

func TestZsetAlgebra(t *testing.T) {
	newBench(t, &Server{}).script(`
		ZADD a 1 x 2 y => :2
		ZADD b 10 y 20 z => :2
		SADD s x y => :2
		ZUNION 2 a b WITHSCORES => *6 $1 x $1 1 $1 y $2 12 $1 z $2 20
		ZUNION 2 a b WEIGHTS 2 1 AGGREGATE MAX WITHSCORES => *6 $1 x $1 2 $1 y $2 10 $1 z $2 20
		ZINTER 2 a b WITHSCORES => *2 $1 y $2 12
		ZINTER 2 a s WITHSCORES => *4 $1 x $1 2 $1 y $1 3
		ZDIFF 2 a b WITHSCORES => *2 $1 x $1 1
		ZINTERCARD 2 a s => :2
		ZINTERCARD 2 a s LIMIT 1 => :1
		ZUNIONSTORE d 2 a s => :2
		ZRANGE d 0 -1 WITHSCORES => *4 $1 x $1 2 $1 y $1 3
		ZDIFFSTORE d 2 a s => :0
		EXISTS d => :0
		ZINTERSTORE s 2 a b AGGREGATE MIN => :1
		TYPE s => +zset
		ZUNION 0 a => -ERR at least 1 input key is needed for 'zunion' command
		ZUNION 2 a => -ERR syntax error
		ZUNION 1 a WEIGHTS x => -ERR weight value is not a float
		ZDIFF 1 a WEIGHTS 1 => -ERR syntax error
		SET str x => +OK
		ZUNION 2 a str => -WRONGTYPE Operation against a key holding the wrong kind of value
	`)
}

func TestZsetEncodings(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET zset-max-listpack-entries 3 zset-max-listpack-value 5 => +OK
		CONFIG GET zset-max-ziplist-value => *2 $22 zset-max-ziplist-value $1 5
		ZADD z 1 a 2 b 3 c => :3
		OBJECT ENCODING z => $8 listpack
		ZADD z 4 d => :1
		OBJECT ENCODING z => $8 skiplist
		ZREM z d c => :2
		OBJECT ENCODING z => $8 skiplist
		ZADD long 1 123456 => :1
		OBJECT ENCODING long => $8 skiplist
		ZUNIONSTORE small 1 z => :2
		OBJECT ENCODING small => $8 listpack
		COPY z copy => :1
		ZRANGE copy 0 -1 => *2 $1 a $1 b
		RENAME copy other => +OK
		EXPIRE other 10 => :1
		ZADD other 9 i 8 j 7 k => :3
		TTL other => :10
		+10s
		EXISTS other => :0
		ZSCAN z 0 MATCH a COUNT 100 => *2 $1 0 *2 $1 a $1 1
		ZSCAN none 0 => *2 $1 0 *0
		ZSCAN z x => -ERR invalid cursor
		ZSCAN z 0 TYPE zset => -ERR syntax error
	`)
	args := []string{"ZADD", "many"}
	for i := range 3000 {
		args = append(args, fmt.Sprint(i), fmt.Sprint("m", i))
	}
	b.do("a", args...)
	if usage := b.do("a", "MEMORY", "USAGE", "many"); len(usage) < len(":100000") {
		t.Errorf("3000 members take %s bytes", usage)
	}
	b.script("ZRANGE many 2999 -1 => *1 $5 m2999")
}

func TestZrandmember(t *testing.T) {
	for _, entries := range []string{"128", "0"} {
		b := newBench(t, &Server{})
		b.do("a", "CONFIG", "SET", "zset-max-listpack-entries", entries)
		b.do("a", "ZADD", "z", "1", "a", "2", "b", "3", "c")
		counts := make(map[string]int)
		for range 300 {
			counts[b.do("a", "ZRANDMEMBER", "z")]++
		}
		for _, member := range []string{"a", "b", "c"} {
			if n := counts["$1 "+member]; n < 50 || n > 150 {
				t.Errorf("%s came %d times of 300", member, n)
			}
		}
		for range 20 {
			if got := strings.Fields(b.do("a", "ZRANDMEMBER", "z", "2")); len(got) != 5 || got[2] == got[4] {
				t.Errorf("two different members are %q", got)
			}
			if got := strings.Fields(b.do("a", "ZRANDMEMBER", "z", "-5", "WITHSCORES")); len(got) != 21 {
				t.Errorf("five members are %q", got)
			}
		}
		b.script(`
			ZRANDMEMBER none => $-1
			ZRANDMEMBER none 3 => *0
			ZRANDMEMBER z 0 => *0
			ZRANDMEMBER z 9223372036854775807 WITHSCORES => -ERR value is out of range
		`)
	}
}

func TestZsetBlocking(t *testing.T) {
	newBench(t, &Server{}).script(`
		w: BZPOPMIN z y 0 =>
		ZADD y 1 a 2 b => :2
		w? => *3 $1 y $1 a $1 1
		w: BZPOPMAX y 0 => *3 $1 y $1 b $1 2
		w: BZMPOP 0 1 z MAX COUNT 2 =>
		SADD s x y z => :3
		ZUNIONSTORE z 1 s => :3
		w? => *2 $1 z *2 *2 $1 z $1 1 *2 $1 y $1 1
		ZCARD z => :1
		BZPOPMIN s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
		BZPOPMIN z -1 => -ERR timeout is negative
		MULTI => +OK
		BZPOPMIN none 0 => +QUEUED
		EXEC => *1 *-1
	`)
}

func TestParseDouble(t *testing.T) {
	for text, want := range map[string]float64{
		"1": 1, "-1.5": -1.5, "+.5": .5, "5.": 5, "1e3": 1000, "0x10": 16, "0x1p-1": .5, "0X.8": .5, "1e-320": 1e-320, "0e999": 0,
	} {
		if f, ok := parseDouble([]byte(text)); !ok || f != want {
			t.Errorf("%q is %v, %v", text, f, ok)
		}
	}
	for _, text := range []string{"", " 1", "1 ", ".", "-", "0x", "1e", "1e400", "1e-400", "nan", "1_0", "0x1p", "infx", "1\x00"} {
		if f, ok := parseDouble([]byte(text)); ok {
			t.Errorf("%q is taken for %v", text, f)
		}
	}
}
