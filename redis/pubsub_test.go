package redis

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
)

func TestPubsub(t *testing.T) {
	newBench(t, &Server{}).script(`
		PUBLISH c hi => :0
		s: SUBSCRIBE c d c => *3 $9 subscribe $1 c :1 *3 $9 subscribe $1 d :2 *3 $9 subscribe $1 c :2
		PUBLISH c hi => :1
		s? => *3 $7 message $1 c $2 hi
		s: PSUBSCRIBE c* h?llo => *3 $10 psubscribe $2 c* :3 *3 $10 psubscribe $5 h?llo :4
		PUBLISH c x => :2
		s? => *3 $7 message $1 c $1 x *4 $8 pmessage $2 c* $1 c $1 x
		PUBLISH hello x => :1
		s? => *4 $8 pmessage $5 h?llo $5 hello $1 x
		PUBSUB CHANNELS => *2...
		PUBSUB CHANNELS d => *1 $1 d
		PUBSUB CHANNELS x* => *0
		PUBSUB CHANNELS a b => -ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
		PUBSUB NUMSUB => *0
		PUBSUB NUMSUB c none => *4 $1 c :1 $4 none :0
		PUBSUB NUMPAT => :2
		PUBSUB bogus => -ERR unknown subcommand 'bogus'. Try PUBSUB HELP.
		s: UNSUBSCRIBE c none => *3 $11 unsubscribe $1 c :3 *3 $11 unsubscribe $4 none :3
		s: PUNSUBSCRIBE => *3 $12 punsubscribe $2 c* :2 *3 $12 punsubscribe $5 h?llo :1
		s: PUNSUBSCRIBE => *3 $12 punsubscribe $-1 :1
		s: UNSUBSCRIBE => *3 $11 unsubscribe $1 d :0
		s: UNSUBSCRIBE => *3 $11 unsubscribe $-1 :0
		s: GET k => $-1
		PUBSUB CHANNELS => *0
		PUBSUB NUMPAT => :0
		PUBLISH c x => :0
		s? =>
	`)
}

func TestSubscribedModeOfRESP2(t *testing.T) {
	newBench(t, &Server{}).script(`
		SUBSCRIBE c => *3 $9 subscribe $1 c :1
		GET k => -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
		CLIENT ID => -ERR Can't execute 'client|id': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
		PING => *2 $4 pong $0
		PING x => *2 $4 pong $1 x
		bogus => -ERR unknown command 'bogus', with args beginning with:
		RESET => +RESET
		PING => +PONG
		PUBSUB NUMSUB c => *2 $1 c :0
		SUBSCRIBE c => *3 $9 subscribe $1 c :1
		QUIT => +OK
	`)
}

func TestPubsubOfRESP3(t *testing.T) {
	newBench(t, &Server{}).script(`
		HELLO 3 => %7...
		SUBSCRIBE c => >3 $9 subscribe $1 c :1
		PSUBSCRIBE ? => >3 $10 psubscribe $1 ? :2
		GET k => _
		PING => +PONG
		b: PUBLISH c x => :2
		a? => >3 $7 message $1 c $1 x >4 $8 pmessage $1 ? $1 c $1 x
		PUBLISH c me => >3 $7 message $1 c $2 me >4 $8 pmessage $1 ? $1 c $2 me :2
		MULTI => +OK
		PUBLISH c one => +QUEUED
		SET k v => +QUEUED
		EXEC => *2 :2 +OK >3 $7 message $1 c $3 one >4 $8 pmessage $1 ? $1 c $3 one
		UNSUBSCRIBE c none => >3 $11 unsubscribe $1 c :1 >3 $11 unsubscribe $4 none :1
		UNSUBSCRIBE => >3 $11 unsubscribe _ :1
	`)
}

func TestSubscribeInTransaction(t *testing.T) {
	newBench(t, &Server{}).script(`
		MULTI => +OK
		SUBSCRIBE c => +QUEUED
		PING => +QUEUED
		EXEC => *2 *3 $9 subscribe $1 c :1 *2 $4 pong $0
		b: PUBLISH c x => :1
		a? => *3 $7 message $1 c $1 x
	`)
}

func TestClientsThatLeaveAreUnsubscribed(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		s: SUBSCRIBE c d => ...
		s: PSUBSCRIBE * => ...
		x: SUBSCRIBE c => ...
		s: QUIT => +OK
		PUBLISH c x => :1
	`)
	if n := len(b.s.broker.channels.list) + len(b.s.broker.patterns.list); n != 1 {
		t.Errorf("%d topics are left, want 1", n)
	}
}

func TestManySubscribersComeAndGo(t *testing.T) {
	b := newBench(t, &Server{})
	for _, name := range []string{"p", "q", "r", "s", "t"} {
		b.script(name + ": SUBSCRIBE c => ...")
	}
	b.script(`
		q: UNSUBSCRIBE c => ...
		t: UNSUBSCRIBE c => ...
		p: UNSUBSCRIBE c => ...
		PUBLISH c x => :2
		q? =>
		r? => *3 $7 message $1 c $1 x
		s? => *3 $7 message $1 c $1 x
	`)
}

// A subscriber that does not read is cut off at the hard limit, at the soft
// limit after its time, and not before.
func TestOutputLimits(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET client-output-buffer-limit "pubsub 1000 500 60" => +OK
		slow: SUBSCRIBE c => ...
		fast: SUBSCRIBE c => ...
		PUBLISH c x => :2
	`)
	slow, fast := b.connect("slow"), b.connect("fast")
	slow.waiting = 499
	b.script(`PUBLISH c x => :2`)
	slow.waiting = 999
	b.script(`PUBLISH c x => :2`)
	if slow.client.softSince == 0 {
		t.Error("output above the soft limit is not watched")
	}
	b.now = b.now.Add(30 * time.Second)
	slow.waiting = 100
	b.script(`PUBLISH c x => :2`)
	b.now = b.now.Add(40 * time.Second)
	slow.waiting = 600
	b.script(`PUBLISH c x => :2`)
	if slow.aborted != nil {
		t.Fatal("cut off though output had fallen meanwhile")
	}
	b.now = b.now.Add(61 * time.Second)
	b.s.upkeep.check()
	if slow.aborted == nil {
		t.Fatal("not cut off after the soft limit's time")
	}
	b.script(`PUBLISH c x => :1`)

	fast.waiting = 1000
	b.script(`
		PUBLISH c x => :1
		PUBLISH c x => :0
	`)
	if fast.aborted == nil || len(b.s.upkeep.overSoft) != 0 {
		t.Error("not cut off at the hard limit")
	}
}

func TestOutputLimitOfNormalClients(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`SET k ` + strings.Repeat("x", 100) + ` => +OK`)
	a := b.connect("a")
	a.waiting = 1 << 30
	b.script(`
		GET k => $100...
		CONFIG SET client-output-buffer-limit "normal 1000 0 0" =>
	`)
	if a.aborted == nil {
		t.Error("not cut off by the limit it has set")
	}
}

// A client that has not given the password is cut off when its output is full.
func TestOutputLimitOfStrangers(t *testing.T) {
	b := newBench(t, &Server{Password: "sesame"})
	a := b.connect("a")
	a.waiting = 1000
	b.script(`PING => -NOAUTH Authentication required.`)
	if a.aborted != nil {
		t.Error("cut off for little output")
	}
	a.waiting = rondo.DefaultHighWater + 1
	b.script(`PING => -NOAUTH Authentication required.`)
	if a.aborted == nil {
		t.Error("not cut off")
	}
}

// A hard limit of up to a megabyte holds for the output of a batch, though the client
// reads: then nothing of that is sent.
func TestStrictOutputLimit(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET k ` + strings.Repeat("x", 10_000) + ` => +OK
		SET long ` + strings.Repeat("x", 150_000) + ` => +OK
		HSET h f v => :1
		CONFIG SET client-output-buffer-limit "normal 100000 0 0" => +OK
	`)
	gets := bytes.Repeat(resp.AppendRequest(nil, "GET", "k"), 15)
	for name, in := range map[string][]byte{
		"a value":     resp.AppendRequest(nil, "GET", "long"),
		"an array":    resp.AppendRequest(nil, append([]string{"MGET"}, slices.Repeat([]string{"k"}, 13)...)...),
		"a pipeline":  gets,
		"no end":      resp.AppendRequest(nil, "HRANDFIELD", "h", "-999999999"),
		"transaction": append(append([]byte("MULTI\r\n"), gets...), "SET done 1\r\nEXEC\r\n"...),
	} {
		f := b.connect(name)
		b.send(f, in)
		if f.aborted == nil || len(f.out) > 0 {
			t.Errorf("%s: the client got %d bytes, and is closed: %v", name, len(f.out), f.aborted)
		}
	}
	f := b.connect("one by one")
	for range 15 {
		b.send(f, gets[:len(gets)/15])
	}
	if f.aborted != nil || len(f.out) < 150_000 {
		t.Errorf("a client that reads got %d bytes, and is closed: %v", len(f.out), f.aborted)
	}
	b.script(`GET done => $1 1`)
}
