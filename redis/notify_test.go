package redis

import (
	"strings"
	"testing"
	"time"
)

func TestEventsParameter(t *testing.T) {
	b := newBench(t, &Server{})
	for _, x := range []struct{ set, want string }{
		{"", ""}, {"KEA", "AKE"}, {"g$lshzxetdnKEm", "AKEm"}, {"g$lshzxetd", "A"}, {"Ex", "xE"},
		{"mKn", "nKm"}, {"g$lshzxet", "g$lshzxet"}, {"AAKK", "AK"},
	} {
		if got := b.do("a", "CONFIG", "SET", "notify-keyspace-events", x.set); got != "+OK" {
			t.Errorf("%q: %s", x.set, got)
		}
		got := b.do("a", "CONFIG", "GET", "notify-keyspace-events")
		if _, value, _ := strings.Cut(got, "notify-keyspace-events "); strings.Join(strings.Fields(value)[1:], "") != x.want {
			t.Errorf("%q became %s, want %s", x.set, value, x.want)
		}
	}
	b.script(`
		CONFIG SET notify-keyspace-events Kx => +OK
		CONFIG SET notify-keyspace-events KEy => -ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.
		CONFIG GET notify-keyspace-events => *2 $22 notify-keyspace-events $2 xK
	`)
}

func TestEvents(t *testing.T) {
	newBench(t, &Server{}).script(`
		s: PSUBSCRIBE * => *3 $10 psubscribe $1 * :1
		SET k v => +OK
		s? =>
		CONFIG SET notify-keyspace-events g$ => +OK
		SET k v => +OK
		s? =>
		CONFIG SET notify-keyspace-events EA => +OK
		SET k v EX 10 => +OK
		s? => *4 $8 pmessage $1 * $18 __keyevent@0__:set $1 k *4 $8 pmessage $1 * $21 __keyevent@0__:expire $1 k
		SELECT 3 => +OK
		CONFIG SET notify-keyspace-events K$ => +OK
		SET k v EX 10 => +OK
		s? => *4 $8 pmessage $1 * $16 __keyspace@3__:k $3 set
		CONFIG SET notify-keyspace-events Kx => +OK
		+11s
		GET k => $-1
		s? => *4 $8 pmessage $1 * $16 __keyspace@3__:k $7 expired
		CONFIG SET notify-keyspace-events "" => +OK
		SET k v => +OK
		s? =>
	`)
}

// A client that listens to its own changes gets the messages behind the whole reply.
func TestEventsForTheRunningClient(t *testing.T) {
	newBench(t, &Server{}).script(`
		HELLO 3 => %7...
		CONFIG SET notify-keyspace-events EA => +OK
		PSUBSCRIBE * => >3 $10 psubscribe $1 * :1
		SET k v => +OK >4 $8 pmessage $1 * $18 __keyevent@0__:set $1 k
		RPUSH l a b => :2 >4 $8 pmessage $1 * $20 __keyevent@0__:rpush $1 l
		LMPOP 1 l LEFT COUNT 2 => *2 $1 l *2 $1 a $1 b >4 $8 pmessage $1 * $19 __keyevent@0__:lpop $1 l >4 $8 pmessage $1 * $18 __keyevent@0__:del $1 l
		MULTI => +OK
		DEL k => +QUEUED
		PING => +QUEUED
		EXEC => *2 :1 +PONG >4 $8 pmessage $1 * $18 __keyevent@0__:del $1 k
		CLIENT REPLY OFF =>
		SET k v => >4 $8 pmessage $1 * $18 __keyevent@0__:set $1 k
		CLIENT REPLY ON => +OK
		PUBLISH c x => >4 $8 pmessage $1 * $1 c $1 x :1
	`)
}

// A waiting client's events come before those of who served it ends.
func TestEventsOfBlockedClients(t *testing.T) {
	newBench(t, &Server{}).script(`
		s: PSUBSCRIBE __keyevent* => *3 $10 psubscribe $11 __keyevent* :1
		CONFIG SET notify-keyspace-events Elg => +OK
		b: BLMOVE l m LEFT RIGHT 0 =>
		RPUSH l x => :1
		b? => $1 x
		s? => *4 $8 pmessage $11 __keyevent* $20 __keyevent@0__:rpush $1 l *4 $8 pmessage $11 __keyevent* $20 __keyevent@0__:rpush $1 m *4 $8 pmessage $11 __keyevent* $19 __keyevent@0__:lpop $1 l *4 $8 pmessage $11 __keyevent* $18 __keyevent@0__:del $1 l
	`)
}

func TestEvictedEvent(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		s: SUBSCRIBE __keyevent@0__:evicted => *3 $9 subscribe $22 __keyevent@0__:evicted :1
		CONFIG SET notify-keyspace-events Ee => +OK
		SET k v => +OK
		CONFIG SET maxmemory-policy allkeys-lru => +OK
		CONFIG SET maxmemory 1 => +OK
		PING => +PONG
		s? => *3 $7 message $22 __keyevent@0__:evicted $1 k
	`)
}

// Expiry by the timer reaches subscribers too.
func TestExpiredEventOfTheTimer(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		s: SUBSCRIBE __keyevent@0__:expired => *3 $9 subscribe $22 __keyevent@0__:expired :1
		CONFIG SET notify-keyspace-events Ex => +OK
		SET k v PX 10 => +OK
	`)
	b.advance(20 * time.Millisecond)
	b.s.tick()
	b.s.space.expire(10)
	b.s.published()
	if got := b.connect("s").take(); got != "*3 $7 message $22 __keyevent@0__:expired $1 k" {
		t.Error(got)
	}
}

// Events that nobody wants cost nothing.
func TestNoEventsAllocateNothing(t *testing.T) {
	b := newBench(t, &Server{})
	b.do("s", "PSUBSCRIBE", "*")
	db := &b.s.space.dbs[0]
	key := []byte("k")
	if n := testing.AllocsPerRun(100, func() { db.notify(eventString, "set", key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if b.s.space.store.OnInsert != nil {
		t.Error("the store reports new keys to nobody")
	}
}

func TestShardChannels(t *testing.T) {
	newBench(t, &Server{}).script(`
		SPUBLISH c hi => :0
		s: SSUBSCRIBE c d c => *3 $10 ssubscribe $1 c :1 *3 $10 ssubscribe $1 d :2 *3 $10 ssubscribe $1 c :2
		s: SUBSCRIBE c => *3 $9 subscribe $1 c :1
		s: PSUBSCRIBE * => *3 $10 psubscribe $1 * :2
		SPUBLISH c hi => :1
		s? => *3 $8 smessage $1 c $2 hi
		PUBLISH d hi => :1
		s? => *4 $8 pmessage $1 * $1 d $2 hi
		PUBSUB SHARDCHANNELS => *2 $1 c $1 d
		PUBSUB SHARDCHANNELS d* => *1 $1 d
		PUBSUB SHARDCHANNELS a b => -ERR unknown subcommand or wrong number of arguments for 'SHARDCHANNELS'. Try PUBSUB HELP.
		PUBSUB SHARDNUMSUB c none => *4 $1 c :1 $4 none :0
		PUBSUB NUMSUB d => *2 $1 d :0
		PUBSUB CHANNELS => *1 $1 c
		s: UNSUBSCRIBE => *3 $11 unsubscribe $1 c :1
		s: PUNSUBSCRIBE => *3 $12 punsubscribe $1 * :0
		s: GET k => -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
		s: SUNSUBSCRIBE c none => *3 $12 sunsubscribe $1 c :1 *3 $12 sunsubscribe $4 none :1
		s: SUNSUBSCRIBE => *3 $12 sunsubscribe $1 d :0
		s: SUNSUBSCRIBE => *3 $12 sunsubscribe $-1 :0
		s: GET k => $-1
		PUBSUB SHARDCHANNELS => *0
		s: MULTI => +OK
		s: SSUBSCRIBE c => +QUEUED
		s: EXEC => *1 -ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client
		s: SSUBSCRIBE c => *3 $10 ssubscribe $1 c :1
		s: RESET => +RESET
		PUBSUB SHARDNUMSUB c => *2 $1 c :0
	`)
}

func TestWait(t *testing.T) {
	newBench(t, &Server{}).script(`
		WAIT 0 0 => :0
		WAIT -1 100 => :0
		WAIT x 0 => -ERR value is not an integer or out of range
		WAIT 0 x => -ERR timeout is not an integer or out of range
		WAIT 0 -1 => -ERR timeout is negative
		WAIT 0 9223372036854775807 => :0
		WAIT 1 => -ERR wrong number of arguments for 'wait' command
		WAIT 1 100 =>
		+99ms
		a? =>
		+1ms
		a? => :0
		MULTI => +OK
		WAIT 1 0 => +QUEUED
		EXEC => *1 :0
		WAIT 1 0 =>
		b: CLIENT UNBLOCK 1 => :1
		a? => :0
		PING => +PONG
	`)
}
