package redis

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
)

func TestKeys(t *testing.T) {
	newBench(t, &Server{}).script(`
		MSET a 1 b 2 c 3 => +OK
		DBSIZE => :3
		EXISTS a b a none => :3
		TOUCH a none => :1
		DEL a a none => :1
		UNLINK b none => :1
		KEYS * => *1 $1 c
		KEYS d* => *0
		TYPE c => +string
		TYPE none => +none
		RANDOMKEY => $1 c
		SELECT 1 => +OK
		RANDOMKEY => $-1
		KEYS * => *0
		SET c other => +OK
		SELECT 0 => +OK
		GET c => $1 3
		FLUSHDB => +OK
		GET c => $-1
		SELECT 1 => +OK
		GET c => $5 other
		FLUSHALL ASYNC => +OK
		DBSIZE => :0
		FLUSHALL NOW => -ERR syntax error
		FLUSHDB SYNC ASYNC => -ERR syntax error
		FLUSHDB sync => +OK
		SELECT 16 => -ERR DB index is out of range
		SELECT -1 => -ERR DB index is out of range
		SELECT x => -ERR value is not an integer or out of range
		SELECT 99999999999 => -ERR value is out of range, value must between -2147483648 and 2147483647
		SET "" empty => +OK
		KEYS * => *1 $0
		KEYS ** => *0
		SCAN 0 MATCH * => *2 $1 0 *1 $0
	`)
}

func TestRename(t *testing.T) {
	newBench(t, &Server{}).script(`
		RENAME none x => -ERR no such key
		RENAMENX none x => -ERR no such key
		SET a 1 EX 100 => +OK
		SET b 2 => +OK
		RENAME a b => +OK
		GET a => $-1
		GET b => $1 1
		TTL b => :100
		DBSIZE => :1
		RENAME b b => +OK
		RENAMENX b b => :0
		SET c 3 => +OK
		RENAMENX b c => :0
		RENAMENX b d => :1
		TTL d => :100
		GET c => $1 3
		DBSIZE => :2
	`)
}

func TestExpire(t *testing.T) {
	newBench(t, &Server{}).script(`
		EXPIRE none 10 => :0
		TTL none => :-2
		PTTL none => :-2
		EXPIRETIME none => :-2
		PERSIST none => :0
		SET k v => +OK
		TTL k => :-1
		PEXPIRETIME k => :-1
		PERSIST k => :0
		EXPIRE k 10 => :1
		TTL k => :10
		EXPIRETIME k => :1700000010
		PEXPIRETIME k => :1700000010000
		+9400ms
		TTL k => :1
		PTTL k => :600
		+200ms
		TTL k => :0
		PTTL k => :400
		+400ms
		GET k => $-1
		TTL k => :-2
		DBSIZE => :0
		SET k v => +OK
		PEXPIRE k 100 => :1
		PERSIST k => :1
		TTL k => :-1
		EXPIREAT k 1700000100 => :1
		TTL k => :90
		PEXPIREAT k 1700000100500 => :1
		PTTL k => :90500
		EXPIRE k -1 => :1
		EXISTS k => :0
		SET k v => +OK
		EXPIREAT k 1 => :1
		EXISTS k => :0
		SET k v => +OK
		EXPIRE k x => -ERR value is not an integer or out of range
		EXPIRE k 9223372036854775807 => -ERR invalid expire time in 'expire' command
		PEXPIRE k 9223372036854775807 => -ERR invalid expire time in 'pexpire' command
		EXPIREAT k 9223372036854776 => -ERR invalid expire time in 'expireat' command
		PEXPIREAT k 9223372036854775807 => :1
		PEXPIRETIME k => :9223372036854775807
		TTL k => :9223370336854766
		+1000h
		GET k => $1 v
		PERSIST k => :1
	`)
}

func TestExpireConditions(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET k v => +OK
		EXPIRE k 100 XX => :0
		EXPIRE k 100 GT => :0
		EXPIRE k 100 NX => :1
		EXPIRE k 200 NX => :0
		EXPIRE k 50 GT => :0
		EXPIRE k 100 GT => :0
		EXPIRE k 200 GT => :1
		EXPIRE k 300 LT => :0
		EXPIRE k 100 lt => :1
		EXPIRE k 10 XX LT => :1
		TTL k => :10
		PERSIST k => :1
		EXPIRE k 70 LT => :1
		EXPIRE k 1 NX XX => -ERR NX and XX, GT or LT options at the same time are not compatible
		EXPIRE k 1 NX GT => -ERR NX and XX, GT or LT options at the same time are not compatible
		EXPIRE k 1 GT LT => -ERR GT and LT options at the same time are not compatible
		EXPIRE k 1 bogus => -ERR Unsupported option bogus
		EXPIRE k -5 GT => :0
		EXPIRE k -5 LT => :1
		EXISTS k => :0
	`)
}

// Expired keys are deleted without a request, at most limit at a time.
func TestExpiryIsBounded(t *testing.T) {
	b := newBench(t, &Server{})
	for i := range 1000 {
		b.do("a", "SET", strconv.Itoa(i), "v", "PX", strconv.Itoa(1000+i))
	}
	b.now = b.now.Add(1500 * time.Millisecond)
	b.s.tick()
	space := &b.s.space
	for left := 1000; left > 499; {
		space.expire(100)
		got := space.dbs[0].len()
		if left-got > 120 || got >= left && left > 499 {
			t.Fatalf("%d keys of %d are left", got, left)
		}
		left = got
	}
	space.expire(1000)
	if got := space.dbs[0].len(); got != 499 {
		t.Errorf("%d keys are left, want 499", got)
	}
	if next := b.now.UnixMilli() + 1; space.soonest() > next || space.soonest() < next-256 {
		t.Errorf("the next deadline is %d, want %d", space.soonest(), next)
	}
	b.now = b.now.Add(time.Hour)
	b.s.tick()
	space.expire(10000)
	if space.soonest() != never || space.dbs[0].len() != 0 || space.store.Expired() != 1000 || space.memory() > 2048 {
		t.Errorf("in the end: next %d, %d keys, %d expired, %d bytes", space.soonest(), space.dbs[0].len(), space.store.Expired(), space.memory())
	}
}

func TestScanOptions(t *testing.T) {
	newBench(t, &Server{}).script(`
		SCAN 0 => *2 $1 0 *0
		MSET k1 1 k2 2 x 3 => +OK
		SCAN 0 MATCH k* COUNT 100 => *2 $1 0 *2...
		SCAN 0 MATCH k1 COUNT 100 => *2 $1 0 *1 $2 k1
		SCAN 0 => *2 $1 0 *3...
		SCAN 0 TYPE hash => *2 $1 0 *0
		SCAN 0 TYPE nonsense => *2 $1 0 *0
		SCAN 0 TYPE STRING MATCH x => *2 $1 0 *1 $1 x
		SCAN x => -ERR invalid cursor
		SCAN "" => *2 $1 0 *3...
		SCAN -1 => *2 $1 0 *...
		SCAN "-" => -ERR invalid cursor
		SCAN " 0" => -ERR invalid cursor
		SCAN 99999999999999999999 => -ERR invalid cursor
		SCAN 0 COUNT 0 => -ERR syntax error
		SCAN 0 COUNT x => -ERR value is not an integer or out of range
		SCAN 0 COUNT => -ERR syntax error
		SCAN 0 MATCH => -ERR syntax error
		SCAN 0 bogus 1 => -ERR syntax error
		PEXPIRE x 10 => :1
		+10ms
		DBSIZE => :3
		SCAN 0 => *2 $1 0 *2 $2 k...
		DBSIZE => :2
	`)
}

// SCAN returns a key that is present throughout, whatever happens to others.
func TestScanReturnsWhatStays(t *testing.T) {
	for seed := range int64(200) {
		rnd := rand.New(rand.NewSource(seed))
		b := newBench(t, &Server{})
		var stay, others []string
		for i := range 50 + rnd.Intn(200) {
			key := fmt.Sprint("key", i)
			b.do("a", "SET", key, "v")
			if rnd.Intn(2) == 0 {
				stay = append(stay, key)
			} else {
				others = append(others, key)
			}
		}
		seen := make(map[string]bool)
		cursor, calls := "0", 0
		for cursor != "0" || calls == 0 {
			if calls++; calls > 1000 {
				t.Fatalf("seed %d: SCAN does not end", seed)
			}
			f := b.connect("a")
			b.send(f, resp.AppendRequest(nil, "SCAN", cursor, "COUNT", strconv.Itoa(1+rnd.Intn(20))))
			v, _, _, err := resp.ReadValue(f.out)
			if err != nil {
				t.Fatal(err)
			}
			cursor = string(v.Elems[0].Str)
			for _, key := range v.Elems[1].Elems {
				seen[string(key.Str)] = true
			}
			f.out = nil
			for range rnd.Intn(30) {
				if rnd.Intn(2) == 0 && len(others) > 0 {
					i := rnd.Intn(len(others))
					b.do("a", "DEL", others[i])
					others = slices.Delete(others, i, i+1)
				} else {
					key := fmt.Sprint("new", rnd.Int())
					b.do("a", "SET", key, "v")
					others = append(others, key)
				}
			}
		}
		for _, key := range stay {
			if !seen[key] {
				t.Errorf("seed %d: %s was never returned", seed, key)
			}
		}
	}
}

func TestScanOfKeysThatAreDeletedEnds(t *testing.T) {
	b := newBench(t, &Server{})
	for i := range 1000 {
		b.do("a", "SET", strconv.Itoa(i), "v")
	}
	reply := strings.Fields(b.do("a", "SCAN", "0", "COUNT", "600"))
	if n, err := strconv.Atoi(reply[3][1:]); err != nil || n < 600 || n > 640 || reply[2] == "0" {
		t.Fatal(reply[:4])
	}
	b.do("a", "FLUSHDB")
	if got := b.do("a", "SCAN", reply[2]); got != "*2 $1 0 *0" {
		t.Error(got)
	}
}

// After everything is deleted, one by one or at once, nothing counts any more.
func TestMemoryIsAccountedFor(t *testing.T) {
	b := newBench(t, &Server{})
	rnd := rand.New(rand.NewSource(1))
	for range 5000 {
		key, other := strconv.Itoa(rnd.Intn(50)), strconv.Itoa(rnd.Intn(50))
		switch rnd.Intn(9) {
		case 0, 1:
			b.do("a", "SET", key, strings.Repeat("x", rnd.Intn(300)))
		case 2:
			b.do("a", "APPEND", key, strings.Repeat("x", rnd.Intn(100)))
		case 3:
			b.do("a", "SETRANGE", key, strconv.Itoa(rnd.Intn(500)), "abc")
		case 4:
			b.do("a", "DEL", key)
		case 5:
			b.do("a", "RENAME", key, other)
		case 6:
			b.do("a", "SET", key, "1", "PX", strconv.Itoa(1+rnd.Intn(50)))
		case 7:
			b.do("a", "INCR", key)
		case 8:
			b.now = b.now.Add(time.Millisecond)
		}
	}
	const index = 16 * 64 // the smallest table
	if got := b.s.space.memory(); got <= index {
		t.Errorf("%d bytes with keys", got)
	}
	for i := range 50 {
		b.do("a", "DEL", strconv.Itoa(i))
	}
	b.now = b.now.Add(time.Second)
	b.s.tick()
	b.s.space.expire(10000) // drops what the wheel still has for deleted keys
	if got := b.s.space.memory(); got != index {
		t.Errorf("%d bytes without keys, want %d", got, index)
	}
	b.do("a", "FLUSHALL")
	if got := b.s.space.memory(); got != 0 {
		t.Errorf("%d bytes after FLUSHALL", got)
	}
}
