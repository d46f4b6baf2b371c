package redis

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// Under every policy that finds keys, a server stays below maxmemory and refuses nothing.
func TestEviction(t *testing.T) {
	const index = 16 * 64
	for _, policy := range policyNames[1:] {
		b := newBench(t, &Server{})
		b.do("a", "CONFIG", "SET", "maxmemory-policy", policy)
		b.do("a", "SET", "stays", "v")
		b.s.config.maxMemory = b.s.baseMemory + index + 100_000
		ttl := []string{"EX", "1000"}
		if !strings.HasPrefix(policy, "volatile") {
			ttl = nil
		}
		for i := range 5000 {
			request := append([]string{"SET", fmt.Sprint("k", i), "some value"}, ttl...)
			if got := b.do("a", request...); got != "+OK" {
				t.Fatalf("%s: SET %d: %s", policy, i, got)
			}
			if i%10 == 0 {
				b.do("a", "GET", "stays")
			}
		}
		keys := b.s.space.dbs[0].len()
		if keys < 500 || keys > 4500 || b.s.stats.evicted != int64(5001-keys) {
			t.Errorf("%s: %d keys are left, %d were evicted", policy, keys, b.s.stats.evicted)
		}
		if over := b.s.baseMemory + b.s.space.memory() - b.s.config.maxMemory; over > 100 {
			t.Errorf("%s: %d bytes too many", policy, over)
		}
		if !strings.HasSuffix(policy, "random") && policy != "allkeys-lru" && b.do("a", "EXISTS", "stays") != ":1" {
			t.Errorf("%s: the key in use was evicted", policy)
		}
	}
}

// Evicted keys count as changed for WATCH. Without keys to evict, commands that need memory
// are refused.
func TestEvictionIsSeen(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET k v EX 100 => +OK
		SET stays v => +OK
		CONFIG SET maxmemory-policy volatile-ttl => +OK
		WATCH k => +OK
		CONFIG SET maxmemory 1 => +OK
		GET stays => $1 v
		EXISTS k => :0
		SET k w => -OOM command not allowed when used memory > 'maxmemory'.
		CONFIG SET maxmemory 0 => +OK
		MULTI => +OK
		GET stays => +QUEUED
		EXEC => *-1
	`)
	if info := b.do("a", "INFO", "stats"); !strings.Contains(info, "evicted_keys:1 ") {
		t.Error(info)
	}
}

// TestMaxMemoryInALargeProgram: the memory of the program around a server does not count.
func TestMaxMemoryInALargeProgram(t *testing.T) {
	other := make([]byte, 64<<20)
	b := newBench(t, &Server{MaxMemory: 32 << 20})
	b.script(`
		SET key value => +OK
		GET key => $5 value
	`)
	runtime.KeepAlive(other)
}

// The commands of a millisecond evict a bounded number of keys, though each needs room, but as
// many as keep the memory from growing.
func TestEvictionTakesTurns(t *testing.T) {
	b := newBench(t, &Server{})
	b.do("a", "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	for i := range 20_000 {
		b.do("a", "SET", fmt.Sprint("k", i), "some value")
	}
	b.s.config.maxMemory = b.s.usedMemory() - 1_000_000
	b.advance(time.Millisecond)
	batch := func(value string, n int) {
		var in []byte
		for i := range n {
			in = resp.AppendRequest(in, "SET", fmt.Sprint("new", i), value)
		}
		b.send(b.connect("a"), in)
	}
	batch("some value", 100)
	if n := b.s.stats.evicted; n < evictInMilli || n > evictInMilli+evictAtOnce {
		t.Errorf("100 commands evicted %d keys, want about %d", n, evictInMilli)
	}
	b.advance(time.Millisecond)
	evicted, used := b.s.stats.evicted, b.s.usedMemory()
	batch(strings.Repeat("x", 1000), 100)
	if n := b.s.stats.evicted - evicted; n < 100 || b.s.usedMemory() > used+2000 {
		t.Errorf("100 larger values evicted %d keys, and the memory grew by %d bytes", n, b.s.usedMemory()-used)
	}
}
