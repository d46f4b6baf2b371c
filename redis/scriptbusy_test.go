package redis

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// busyBench makes a bench in which a script is suspended at once.
func busyBench(t *testing.T) *bench {
	b := newBench(t, &Server{})
	b.s.config.busyReply = 1
	return b
}

// endScript lets time pass until no script is suspended. A short one is, too, if the process has stood
// still in the middle of it.
func (b *bench) endScript() {
	for b.s.scripts.busy {
		b.advance(time.Millisecond)
	}
}

const endless = "while true do end"

func TestBusyScript(t *testing.T) {
	b := busyBench(t)
	if got := b.do("a", "EVAL", endless, "0"); got != "" {
		t.Fatalf("got %q", got)
	}
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	for range 3 {
		if got := b.do("b", "GET", "k"); got != busy {
			t.Errorf("GET: %s", got)
		}
		b.advance(time.Millisecond)
	}
	if got := b.do("b", "FUNCTION", "KILL"); got != busy {
		t.Errorf("FUNCTION KILL: %s", got)
	}
	if got := b.do("b", "FUNCTION", "STATS"); got != busy {
		t.Errorf("FUNCTION STATS: %s", got)
	}
	if got := b.do("b", "SCRIPT", "KILL"); got != "+OK" {
		t.Errorf("SCRIPT KILL: %s", got)
	}
	b.endScript()
	if got := b.connect("a").take(); !strings.HasPrefix(got, "-ERR Error running script") && !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL...") {
		t.Errorf("the script: %s", got)
	}
	if got := b.do("b", "GET", "k"); got != "$-1" {
		t.Errorf("GET after it: %s", got)
	}
	got := b.do("a", "EVAL", "return 1", "0")
	b.endScript()
	if got += b.connect("a").take(); got != ":1" {
		t.Errorf("the next script: %s", got)
	}
}

// A script cannot catch its end.
func TestKillIsNotCaught(t *testing.T) {
	b := busyBench(t)
	b.do("a", "EVAL", "while true do pcall(function() while true do end end) end", "0")
	b.do("b", "SCRIPT", "KILL")
	b.endScript()
	if got := b.connect("a").take(); !strings.HasPrefix(got, "-ERR Script killed") {
		t.Errorf("the script: %s", got)
	}
}

func TestScriptThatHasWritten(t *testing.T) {
	b := busyBench(t)
	b.do("a", "EVAL", "redis.call('SET','k','1') for i=1,1e6 do end return redis.call('GET','k')", "0")
	for !b.s.scripts.run.dirty {
		b.advance(time.Millisecond)
	}
	if got := b.do("b", "SCRIPT", "KILL"); !strings.HasPrefix(got, "-UNKILLABLE") {
		t.Errorf("SCRIPT KILL: %s", got)
	}
	b.endScript()
	if got := b.connect("a").take(); got != "$1 1" {
		t.Errorf("the script: %s", got)
	}
}

// A script may be suspended in the middle of a function of a library, too.
func TestBusyInALibrary(t *testing.T) {
	for _, source := range []string{"return #string.upper(string.rep('x', 2e7))", "return #redis.sha1hex(string.rep('x', 2e7)) + 2e7 - 40"} {
		b := busyBench(t)
		if got := b.do("a", "EVAL", source, "0"); got != "" {
			t.Errorf("%s: got %q", source, got)
		}
		if got := b.do("b", "GET", "k"); !strings.HasPrefix(got, "-BUSY") {
			t.Errorf("GET: %s", got)
		}
		b.endScript()
		if got := b.connect("a").take(); got != ":20000000" {
			t.Errorf("%s: %s", source, got)
		}
	}
}

// A transaction is one step, also around a script that is suspended, and when its client goes.
func TestBusyTransaction(t *testing.T) {
	for _, goes := range []bool{false, true} {
		b := busyBench(t)
		b.do("a", "MULTI")
		b.do("a", "SET", "x", "1")
		b.do("a", "EVAL", endless, "0")
		b.do("a", "EVAL", "return 7", "0")
		b.do("a", "INCR", "x")
		if got := b.do("a", "EXEC"); got != "*4 +OK" {
			t.Errorf("EXEC: %s", got)
		}
		if goes {
			b.connect("a").aborted = errPanicked
			b.connect("a").end()
		}
		b.do("b", "SCRIPT", "KILL")
		b.endScript()
		if got := b.connect("a").take(); !goes && (!strings.HasPrefix(got, "-ERR Script killed") || !strings.HasSuffix(got, " :7 :2")) {
			t.Errorf("the rest of EXEC: %s", got)
		}
		if got := b.do("b", "GET", "x"); got != "$1 2" {
			t.Errorf("GET x: %s", got)
		}
		if n := b.s.blocking.count; n != 0 {
			t.Errorf("%d clients are blocked", n)
		}
	}
}

// Time stands still for a script, and keys do not expire.
func TestBusyTime(t *testing.T) {
	b := busyBench(t)
	b.do("b", "SET", "k", "v", "PX", "10")
	b.do("a", "EVAL", "for i=1,1e6 do end return redis.call('PTTL','k')", "0")
	for b.s.scripts.busy {
		b.advance(time.Second)
	}
	if got := b.connect("a").take(); got != ":10" {
		t.Errorf("PTTL: %s", got)
	}
	if got := b.do("b", "GET", "k"); got != "$-1" {
		t.Errorf("GET: %s", got)
	}
}

func TestShutdownEndsScript(t *testing.T) {
	b := busyBench(t)
	b.do("a", "EVAL", endless, "0")
	b.s.scripts.end()
	if b.s.scripts.busy {
		t.Error("the script still runs")
	}
}

func TestEvalCacheIsBounded(t *testing.T) {
	b := newBench(t, &Server{})
	kept := b.do("a", "SCRIPT", "LOAD", "return 'kept'")
	for i := range maxEvals + 100 {
		b.do("a", "EVAL", "return "+string(rune('a'+i%26))+" or "+strings.Repeat("1", i/26+1), "0")
	}
	if n := len(b.s.scripts.byDigest); n != maxEvals+1 {
		t.Errorf("%d scripts", n)
	}
	for i := range 20 {
		b.do("a", "EVAL", "return "+strconv.Itoa(i)+" --"+strings.Repeat("x", 1<<20), "0")
	}
	if n := b.s.scripts.memory; n > maxEvalBytes+1<<10 {
		t.Errorf("%d bytes of sources", n)
	}
	if got := b.do("a", "EVALSHA", kept[4:], "0"); got != "$4 kept" {
		t.Errorf("EVALSHA: %s", got)
	}
}
