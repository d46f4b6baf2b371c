package redis

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/rondo-go/rondo/rondotest"
)

func TestClientPause(t *testing.T) {
	newBench(t, &Server{}).script(`
		CLIENT PAUSE x => -ERR timeout is not an integer or out of range
		CLIENT PAUSE -1 => -ERR timeout is negative
		CLIENT PAUSE 1 x => -ERR CLIENT PAUSE mode must be WRITE or ALL
		CLIENT PAUSE 1 WRITE x => -ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
		CLIENT UNPAUSE => +OK
		CLIENT PAUSE 0 => +OK
		SET k v => +OK
		CLIENT PAUSE 1000 WRITE => +OK
		GET k => $1 v
		b: SET k w =>
		b: GET k =>
		c: MULTI => +OK
		c: SET k x =>
		d: MULTI => +OK
		d: GET k => +QUEUED
		d: EXEC => *1 $1 v
		e: PUBLISH c m =>
		f: SET k => -ERR wrong number of arguments for 'set' command
		CLIENT UNBLOCK 2 => :0
		CLIENT INFO => ...
		+999ms
		b? =>
		+1ms
		+0ms
		b? => +OK
		c? => +QUEUED
		c: EXEC => *1 +OK
		e? => :0
		GET k => $1 x
		CLIENT PAUSE 500 WRITE => +OK
		CLIENT PAUSE 1000 => +OK
		CLIENT PAUSE 1 WRITE =>
		g: PING =>
		+600ms
		g? =>
		+400ms
		+0ms
		g? => +PONG
		a? => +OK
		+1ms
		CLIENT PAUSE 1000 WRITE => +OK
		h: SET k h =>
		CLIENT UNPAUSE => +OK
		+0ms
		h? => +OK
		GET k => $1 h
		MULTI => +OK
		CLIENT PAUSE 1000 => +QUEUED
		SET k i => +QUEUED
		EXEC => *2 +OK +OK
		GET k =>
		+1000ms
		+0ms
		a? => $1 i
	`)
}

// During a pause no command finds an expired key, but none is deleted either.
func TestPauseKeepsExpiredKeys(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET k ab PX 10 => +OK
		SET l ab PX 10 => +OK
		SET o ab PX 10 => +OK
		SADD s a => :1
		PEXPIRE s 10 => :1
		CLIENT PAUSE 1000 WRITE => +OK
		+20ms
		GET k => $-1
		MGET k l => *2 $-1 $-1
		EXISTS k s => :0
		TTL k => :-2
		TYPE s => +none
		KEYS * => *0
		SCAN 0 => *2 $1 0 *0
		LCS k l => $0
		SMEMBERS s => *0
		SINTER s => *0
		OBJECT ENCODING k => $-1
		DBSIZE => :4
		RANDOMKEY => ...
	`)
	if n := b.s.space.store.Expired(); n != 0 {
		t.Errorf("%d keys were deleted during the pause", n)
	}
	b.script(`
		CLIENT UNPAUSE => +OK
		GET k => $-1
		DBSIZE => :3
		RANDOMKEY => $-1
		DBSIZE => :0
	`)
}

// A transaction that begins a pause may still write, also to expired keys.
func TestPauseWithinTransaction(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET a 1 PX 10 => +OK
		SET b 1 PX 10 => +OK
		SET c 1 => +OK
		+20ms
		MULTI => +OK
		CLIENT PAUSE 1000 WRITE => +QUEUED
		GET a => +QUEUED
		APPEND a x => +QUEUED
		GET b => +QUEUED
		RENAME c b => +QUEUED
		GET b => +QUEUED
		DBSIZE => +QUEUED
		EXEC => *7 +OK $-1 :1 $-1 +OK $1 1 :2
		CLIENT UNPAUSE => +OK
		MGET a b c => *3 $1 x $1 1 $-1
	`)
}

// Expired keys are deleted by themselves as soon as the pause has ended.
func TestNetworkPauseHoldsExpiry(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		a := dial(t, net)
		a.do("CLIENT PAUSE 1000 WRITE", "+OK")
		a.do("CLIENT UNPAUSE", "+OK")
		a.do("SET k v PX 100", "+OK")
		a.do("CLIENT PAUSE 1000 WRITE", "+OK")
		net.Advance(900 * time.Millisecond)
		a.do("DBSIZE", ":1")
		a.do("GET k", "$-1")
		net.Advance(300 * time.Millisecond)
		a.do("DBSIZE", ":0")
	})
}

// No key is evicted during a pause.
func TestPauseHoldsEviction(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET k v => +OK
		CONFIG SET maxmemory-policy allkeys-random => +OK
		CLIENT PAUSE 1000 WRITE => +OK
		CONFIG SET maxmemory 1 => +OK
		GET k => $1 v
		CLIENT UNPAUSE => +OK
		GET k => $-1
	`)
}

// Pipelines go on after a pause, in order, on each transport.
func TestNetworkClientPause(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		a, b := dial(t, net), dial(t, net)
		a.do("CLIENT PAUSE 1000 WRITE", "+OK")
		b.Send("SET k 1\r\nINCR k\r\nGET k\r\nCLIENT UNPAUSE\r\n")
		began := net.Now()
		b.expect("+OK :2 $1 2 +OK")
		if d := net.Now().Sub(began); d < 990*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("seed %d: the pause took %v", net.Seed(), d)
		}
		c := newClient(t, net, s)
		a.do("CLIENT PAUSE 1000", "+OK")
		net.Await(func() {
			if got := ask(c, context.Background(), "GET k"); got != "2" {
				t.Errorf("seed %d: %s", net.Seed(), got)
			}
		})
		a.do("CLIENT PAUSE 1000", "+OK")
		b.request("GET k")
		net.Run()
		b.Close()
		net.Advance(2 * time.Second)
		if n := s.pause.waiting.Len(); n != 0 {
			t.Errorf("seed %d: %d clients wait", net.Seed(), n)
		}
	})
}

// While clients are paused, expired keys stay and are not found; writes that cannot wait
// take them for what they are.
func TestPausedExpiry(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET short 1 PX 100 => +OK
		SET other 1 PX 100 => +OK
		SET third 1 PX 100 => +OK
		SADD gone a => :1
		PEXPIRE gone 100 => :1
		SET long 22 => +OK
		CLIENT PAUSE 1000 WRITE => +OK
		+100ms
		GET short => $-1
		EXISTS short gone long => :1
		TTL short => :-2
		KEYS * => *1 $4 long
		SCAN 0 COUNT 100 => *2 $1 0 *1 $4 long
		RANDOMKEY => $4 long
		OBJECT ENCODING short => $-1
		LCS short long => $0
		SUNION gone gone => *0
		SINTERCARD 1 gone => :0
		DBSIZE => :5
	`)
	if n := b.s.space.store.Expired(); n != 0 {
		t.Errorf("%d keys were deleted", n)
	}
	b.script(`
		CLIENT UNPAUSE => +OK
		GET short => $-1
		DBSIZE => :4
	`)
}

// Writes that cannot wait for the end of a pause take expired keys for what they are.
func TestPausedWrites(t *testing.T) {
	newBench(t, &Server{}).script(`
		MSET a 1 b 2 c 3 d 4 => +OK
		RPUSH list x => :1
		PEXPIRE a 100 => :1
		PEXPIRE b 100 => :1
		PEXPIRE d 100 => :1
		b: BLMOVE other d LEFT LEFT 0 =>
		MULTI => +OK
		CLIENT PAUSE 1000 WRITE => +QUEUED
		RENAME c a => +QUEUED
		COPY a b => +QUEUED
		DBSIZE => +QUEUED
		LMOVE list other LEFT LEFT => +QUEUED
		+100ms
		EXEC => *5 +OK +OK :1 :4 $1 x
		b? => $1 x
		MGET a b c => *3 $1 3 $1 3 $-1
		LRANGE d 0 -1 => *1 $1 x
		DBSIZE => :3
	`)
}

// Nothing expires or is evicted by itself during a pause, and all that is due goes after it.
func TestNetworkPausedKeys(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		a := dial(t, net)
		for i := range 100 {
			a.do("SET k"+strconv.Itoa(i)+" v PX "+strconv.Itoa(5000+i), "+OK")
		}
		a.do("CLIENT PAUSE 10000 WRITE", "+OK")
		a.do("CONFIG SET maxmemory 1 maxmemory-policy allkeys-lru", "+OK")
		net.Advance(8 * time.Second)
		a.do("GET k0", "$-1")
		a.do("DBSIZE", ":100")
		a.do("CONFIG SET maxmemory 0", "+OK")
		a.do("SET k v", "+OK") // waits for the end of the pause
		net.Advance(time.Second)
		a.do("DBSIZE", ":1")
	})
}

// Clients that go away while they wait for the end of a pause leave nothing behind.
func TestPauseForgetsClients(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CLIENT PAUSE 1000 WRITE => +OK
		b: SET k b =>
		c: SET k c =>
		d: INCR n =>
	`)
	b.connect("c").client.abort(errPanicked)
	if n := b.s.pause.waiting.Len(); n != 2 {
		t.Errorf("%d clients wait", n)
	}
	b.script(`
		+1000ms
		+0ms
		b? => +OK
		c? =>
		d? => :1
		GET k => $1 b
	`)
	if n := b.s.pause.waiting.Len() + b.s.blocking.count; n != 0 {
		t.Errorf("%d clients wait", n)
	}
}

// A command that panics after a pause ends its own client alone.
func TestPanicsAfterPause(t *testing.T) {
	b := addedBench(t)
	b.script(`
		CLIENT PAUSE 1000 => +OK
		b: SET k b =>
		c: BREAKS =>
		d: APPEND k d =>
	`)
	panics(func() { b.advance(time.Second) })
	b.advance(0)
	b.script(`
		b? => +OK
		d? => :2
		d: GET k => $2 bd
	`)
	if b.clients["c"].aborted == nil {
		t.Error("the client of the broken command goes on")
	}
}
