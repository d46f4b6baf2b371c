package redis

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

func TestTracking(t *testing.T) {
	newBench(t, &Server{}).script(`
		HELLO 3 => %7...
		CLIENT TRACKING ON => +OK
		GET k => _
		b: SET k 1 => +OK
		a? => >2 $10 invalidate *1 $1 k
		b: SET k 2 => +OK
		a? =>
		MGET k l => *2 $1 2 _
		b: MSET k 3 l 3 m 3 => +OK
		a? => >2 $10 invalidate *1 $1 k >2 $10 invalidate *1 $1 l
		GET k => $1 3
		SET k 4 => +OK >2 $10 invalidate *1 $1 k
		SET k 5 => +OK
		GET k => $1 5
		b: RENAME k n => +OK
		a? => >2 $10 invalidate *1 $1 k
		TYPE n => +string
		XREAD STREAMS s 0 x => -ERR Unbalanced...
		b: XADD s 1-1 f v => $3 1-1
		XREAD STREAMS s 5 => _
		b: XADD s 1-2 f v => $3 1-2
		a? => >2 $10 invalidate *1 $1 s
		b: COPY n k => :1
		a? =>
		b: MOVE n 1 => :1
		a? => >2 $10 invalidate *1 $1 n
		CLIENT TRACKING OFF => +OK
		GET k => $1 5
		b: SET k 6 => +OK
		a? =>
		CLIENT TRACKING ON => +OK
		GET k => $1 6
		CLIENT TRACKING OFF => +OK
		b: SET k 7 => +OK
		a? =>
	`)
}

// TestTrackingOfAll shows what tells clients that all keys may have changed.
func TestTrackingOfAll(t *testing.T) {
	b := newBench(t, &Server{Debug: DebugYes})
	b.script(`
		HELLO 3 => %7...
		CLIENT TRACKING ON => +OK
		c: HELLO 3 => %7...
		c: CLIENT TRACKING ON BCAST PREFIX x => +OK
		GET k => _
		b: FLUSHALL => +OK
		a? => >2 $10 invalidate _
		c? => >2 $10 invalidate _
		FLUSHDB => +OK >2 $10 invalidate _
		c? => >2 $10 invalidate _
		MULTI => +OK
		FLUSHDB => +QUEUED
		GET k => +QUEUED
		EXEC => *2 +OK _ >2 $10 invalidate _
		c? => >2 $10 invalidate _
		b: SWAPDB 0 1 => +OK
		a? => >2 $10 invalidate _
		c? => >2 $10 invalidate _
		b: DEBUG RELOAD => +OK
		a? => >2 $10 invalidate _
	`)
	if n := b.s.tracking.table.len(); n != 0 {
		t.Errorf("%d keys in the table", n)
	}
}

func TestTrackingOfWhatExpires(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		HELLO 3 => %7...
		CLIENT TRACKING ON => +OK
		c: HELLO 3 => %7...
		c: CLIENT TRACKING ON BCAST NOLOOP => +OK
		c: MSET k 1 l 1 => +OK
		c: PEXPIRE k 10 => :1
		c: PEXPIRE l 10 => :1
		MGET k l => *2 $1 1 $1 1
		+20ms
		MGET k l => *2 _ _ >2 $10 invalidate *1 $1 k >2 $10 invalidate *1 $1 l
		c? => >2 $10 invalidate *2 $1 k $1 l
		b: SET k 1 PX 10 => +OK
		a? => >2 $10 invalidate *1 $1 k
		c? => >2 $10 invalidate *1 $1 k
		GET k => $1 1
		+20ms
	`)
	b.s.tick()
	b.s.space.expire(100)
	b.endTurn()
	b.script(`
		a? => >2 $10 invalidate *1 $1 k
		c? => >2 $10 invalidate *1 $1 k
	`)
}

func TestTrackingRedirect(t *testing.T) {
	newBench(t, &Server{}).script(`
		r: CLIENT ID => :1
		r: SUBSCRIBE __redis__:invalidate => *3 $9 subscribe $20 __redis__:invalidate :1
		CLIENT TRACKING ON REDIRECT 1 => +OK
		CLIENT GETREDIR => :1
		GET k => $-1
		b: SET k 1 => +OK
		a? =>
		r? => *3 $7 message $20 __redis__:invalidate *1 $1 k
		GET k => $1 1
		SET k 2 => +OK
		r? => *3 $7 message $20 __redis__:invalidate *1 $1 k
		b: FLUSHALL => +OK
		r? => *3 $7 message $20 __redis__:invalidate $-1
		r: UNSUBSCRIBE => *3 $11 unsubscribe $20 __redis__:invalidate :0
		GET k => $-1
		b: SET k 1 => +OK
		r? =>
		r: HELLO 3 => %7...
		GET k => $1 1
		b: SET k 1 => +OK
		r? => >2 $10 invalidate *1 $1 k
		GET k => $1 1
		r: SET k 3 => +OK >2 $10 invalidate *1 $1 k
		GET k => $1 3
		r: QUIT => +OK
		b: SET k 1 => +OK
		a? =>
		CLIENT TRACKINGINFO => *6 $5 flags *2 $2 on $15 broken_redirect $8 redirect :1 $8 prefixes *0
		GET k => $1 1
		HELLO 3 => %7...
		b: SET k 1 => +OK
		a? => >2 $21 tracking-redir-broken :1
		CLIENT TRACKING ON => +OK
		CLIENT TRACKINGINFO => %3 $5 flags ~1 $2 on $8 redirect :0 $8 prefixes *0
		GET k => $1 1
		b: SET k 1 => +OK
		a? => >2 $10 invalidate *1 $1 k
	`)
}

// TestTrackingWithoutPush has clients to which the server can send nothing.
func TestTrackingWithoutPush(t *testing.T) {
	newBench(t, &Server{}).script(`
		CLIENT TRACKING ON => +OK
		GET k => $-1
		b: SET k 1 => +OK
		a? =>
		GET k => $1 1
		SUBSCRIBE x => *3...
		b: SET k 1 => +OK
		a? =>
		c: CLIENT TRACKING ON BCAST => +OK
		b: SET k 1 => +OK
		c? =>
	`)
}

func TestTrackingModes(t *testing.T) {
	newBench(t, &Server{}).script(`
		HELLO 3 => %7...
		CLIENT CACHING YES => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
		CLIENT TRACKING ON OPTIN => +OK
		GET k => _
		b: SET k 1 => +OK
		a? =>
		CLIENT CACHING NO => -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
		CLIENT CACHING x => -ERR syntax error
		CLIENT CACHING YES => +OK
		CLIENT TRACKINGINFO => %3 $5 flags ~3 $2 on $5 optin $11 caching-yes $8 redirect :0 $8 prefixes *0
		GET k => $1 1
		GET l => _
		b: MSET k 2 l 2 => +OK
		a? => >2 $10 invalidate *1 $1 k
		CLIENT CACHING YES => +OK
		bogus => -ERR unknown command...
		GET k => $1 2
		b: SET k 3 => +OK
		a? =>
		CLIENT CACHING YES => +OK
		MULTI => +OK
		GET k => +QUEUED
		GET l => +QUEUED
		EXEC => *2 $1 3 $1 2
		GET m => _
		b: MSET k 4 l 4 m 4 => +OK
		a? => >2 $10 invalidate *1 $1 k >2 $10 invalidate *1 $1 l
		CLIENT TRACKING ON OPTOUT => -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
		CLIENT TRACKING OFF => +OK
		CLIENT TRACKING ON OPTOUT => +OK
		CLIENT CACHING YES => -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
		GET k => $1 4
		CLIENT CACHING NO => +OK
		GET l => $1 4
		b: MSET k 5 l 5 => +OK
		a? => >2 $10 invalidate *1 $1 k
		CLIENT TRACKING ON NOLOOP => +OK
		MGET k l => *2 $1 5 $1 5
		SET k 6 => +OK
		b: MSET k 7 l 7 => +OK
		a? => >2 $10 invalidate *1 $1 l
		CLIENT LIST ID 1 => =...
		RESET => +RESET
		CLIENT TRACKINGINFO => *6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0
		CLIENT GETREDIR => :-1
	`)
}

// An EXEC that is refused ends CLIENT CACHING, as one that runs does.
func TestTrackingOfRefusedTransactions(t *testing.T) {
	for _, refused := range []string{
		"GET => -ERR wrong...\nEXEC => -EXECABORT...",
		"EXEC now => -EXECABORT...",
		"b: ACL SETUSER u -exec => +OK\nEXEC => -EXECABORT...",
	} {
		newBench(t, &Server{}).script(`
			b: ACL SETUSER u on nopass ~* +@all => +OK
			HELLO 3 AUTH u x => %7...
			CLIENT TRACKING ON OPTIN => +OK
			CLIENT CACHING YES => +OK
			MULTI => +OK
			` + refused + `
			GET k => _
			b: SET k 1 => +OK
			a? =>
		`)
	}
}

func TestTrackingErrors(t *testing.T) {
	newBench(t, &Server{}).script(`
		CLIENT TRACKING => -ERR wrong number of arguments for 'client|tracking' command
		CLIENT TRACKING maybe => -ERR syntax error
		CLIENT TRACKING ON REDIRECT => -ERR syntax error
		CLIENT TRACKING ON REDIRECT x => -ERR value is not an integer or out of range
		CLIENT TRACKING ON REDIRECT 100 => -ERR The client ID you want redirect to does not exist
		CLIENT TRACKING ON REDIRECT 1 REDIRECT 1 => -ERR A client can only redirect to a single other client
		CLIENT TRACKING ON PREFIX a => -ERR PREFIX option requires BCAST mode to be enabled
		CLIENT TRACKING ON BCAST OPTIN => -ERR OPTIN and OPTOUT are not compatible with BCAST
		CLIENT TRACKING ON OPTIN OPTOUT => -ERR You can't specify both OPTIN mode and OPTOUT mode
		CLIENT TRACKING ON BCAST PREFIX foobar PREFIX foo => -ERR Prefix 'foobar' overlaps with another provided prefix 'foo'. Prefixes for a single client must not overlap.
		CLIENT TRACKING ON BCAST PREFIX x PREFIX foobar PREFIX foo => -ERR Prefix 'foobar' overlaps with another provided prefix 'foo'. Prefixes for a single client must not overlap.
		CLIENT TRACKING ON BCAST PREFIX foo PREFIX bar => +OK
		CLIENT TRACKING ON BCAST PREFIX fo => -ERR Prefix 'fo' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap.
		CLIENT TRACKING ON => -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
		CLIENT TRACKING ON BCAST PREFIX c => +OK
		CLIENT TRACKINGINFO => *6 $5 flags *2 $2 on $5 bcast $8 redirect :0 $8 prefixes *3 $3 bar $1 c $3 foo
		CLIENT TRACKING OFF => +OK
		CLIENT TRACKING OFF => +OK
	`)
}

func TestTrackingBroadcast(t *testing.T) {
	newBench(t, &Server{}).script(`
		HELLO 3 => %7...
		CLIENT TRACKING ON BCAST PREFIX a: PREFIX b => +OK
		c: HELLO 3 => %7...
		c: CLIENT TRACKING ON BCAST NOLOOP => +OK
		MSET a:2 x a:1 x a x b x z x => +OK >2 $10 invalidate *2 $3 a:1 $3 a:2 >2 $10 invalidate *1 $1 b
		c? => >2 $10 invalidate *5 $1 a $3 a:1 $3 a:2 $1 b $1 z
		c: MULTI => +OK
		c: SET a:1 y => +QUEUED
		c: SET "" y => +QUEUED
		c: EXEC => *2 +OK +OK
		a? => >2 $10 invalidate *1 $3 a:1
		c: CLIENT TRACKING ON BCAST PREFIX x => -ERR Prefix 'x' overlaps with an existing prefix ''...
		b: SET x y => +OK
		a? =>
		c? => >2 $10 invalidate *1 $1 x
		c: CLIENT TRACKING OFF => +OK
		a: CLIENT TRACKING OFF => +OK
		MSET a:1 x b 1 => +OK
	`)
}

// TestTrackingBroadcastNoloop has two clients that change keys within one turn: a client is not
// told of those that it changed last.
func TestTrackingBroadcastNoloop(t *testing.T) {
	b := newBench(t, &Server{})
	for _, name := range []string{"a", "b"} {
		b.do(name, "HELLO", "3")
		b.do(name, "CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP")
	}
	for _, x := range [][2]string{{"a", "k"}, {"b", "k"}, {"b", "l"}, {"a", "m"}} {
		b.send(b.connect(x[0]), resp.AppendRequest(nil, "SET", x[1], "v"))
	}
	b.endTurn()
	b.script(`
		a? => +OK +OK >2 $10 invalidate *2 $1 k $1 l
		b? => +OK +OK >2 $10 invalidate *1 $1 m
	`)
}

// TestTrackingAndReplies shows that no message stands in the middle of a reply.
func TestTrackingAndReplies(t *testing.T) {
	newBench(t, &Server{}).script(`
		HELLO 3 => %7...
		CLIENT ID => :1
		CLIENT TRACKING ON => +OK
		b: CLIENT TRACKING ON REDIRECT 1 => +OK
		b: GET l => $-1
		GET k => _
		MULTI => +OK
		SET k 1 => +QUEUED
		SET l 1 => +QUEUED
		GET k => +QUEUED
		EXEC => *3 +OK +OK $1 1 >2 $10 invalidate *1 $1 k >2 $10 invalidate *1 $1 l
		b: SET k 2 => +OK
		a? => >2 $10 invalidate *1 $1 k
		GET k => $1 2
		CLIENT REPLY OFF =>
		b: SET k 3 => +OK
		a? => >2 $10 invalidate *1 $1 k
		SET k 4 =>
		GET k =>
		SET k 5 => >2 $10 invalidate *1 $1 k
		CLIENT REPLY ON => +OK
		LRANGE list 0 -1 => *0
		BLMOVE from list LEFT LEFT 0 =>
		b: RPUSH from x => :1
		a? => $1 x >2 $10 invalidate *1 $4 list
		XREAD BLOCK 0 STREAMS s $ =>
		b: XADD s 1-1 f v => $3 1-1
		a? => >2 $10 invalidate *1 $1 s %1 $1 s *1 *2 $3 1-1 *2 $1 f $1 v
	`)
}

// TestTrackingEvicted shows that a client is told of keys that were evicted before the reply of
// the command that they make room for.
func TestTrackingEvicted(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		HELLO 3 => %7...
		CLIENT TRACKING ON NOLOOP => +OK
		SET k v EX 1000 => +OK
		GET k => $1 v
		CONFIG SET maxmemory-policy volatile-random => +OK
		SETBIT big 16000000 0 => :0
	`)
	b.do("b", "CONFIG", "SET", "maxmemory", strconv.FormatInt(b.s.usedMemory()-1000, 10))
	b.script(`
		GETBIT big 0 => >2 $10 invalidate *1 $1 k :0
	`)
}

// TestTrackingEvictsNoMore shows that the messages about evicted keys, which take memory until they
// are sent, do not make further keys go.
func TestTrackingEvictsNoMore(t *testing.T) {
	b := newBench(t, &Server{})
	b.do("a", "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	b.do("c", "HELLO", "3")
	b.do("c", "CLIENT", "TRACKING", "ON")
	for i := range 200 {
		key := strconv.Itoa(i) + strings.Repeat("x", 1000)
		b.do("a", "SET", key, "v")
		b.do("c", "GET", key)
	}
	b.do("a", "CONFIG", "SET", "maxmemory", strconv.FormatInt(b.s.usedMemory()+b.s.clientMemory.held-10_000, 10))
	b.connect("c").waiting = 1 << 20
	b.do("a", "PING")
	if n := b.s.stats.evicted; n < 5 || n > 30 {
		t.Errorf("%d keys were evicted, want about 8", n)
	}
}

func TestTrackingTable(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		HELLO 3 => %7...
		CLIENT TRACKING ON NOLOOP => +OK
		c: HELLO 3 => %7...
		c: CLIENT TRACKING ON BCAST PREFIX a PREFIX b => +OK
		CONFIG SET tracking-table-max-keys 10 => +OK
	`)
	for i := range 10 {
		b.do("a", "GET", strconv.Itoa(i))
	}
	b.do("d", "CLIENT", "TRACKING", "ON")
	b.do("d", "MGET", "0", "1", "2", "2")
	want := "tracking_total_keys:10\r\ntracking_total_items:13\r\ntracking_total_prefixes:2\r\n"
	if info := rawInfo(b); !strings.Contains(info, want) || !strings.Contains(info, "tracking_clients:3\r\n") {
		t.Errorf("INFO is\n%s\nwant\n%s", info, want)
	}
	if out := b.do("a", "GET", "10"); !strings.HasPrefix(out, "_ >2 $10 invalidate *1 $") {
		t.Errorf("the reply to GET 10 is %q, want a message behind it", out)
	}
	b.script(`CONFIG SET tracking-table-max-keys 0 => +OK`)
	for i := range 100 {
		b.do("a", "GET", strconv.Itoa(i))
	}
	if n := b.s.tracking.table.len(); n != 100 {
		t.Errorf("%d keys, want 100", n)
	}
	b.do("d", "CONFIG", "SET", "tracking-table-max-keys", "7")
	if n := strings.Count(b.connect("a").take(), "invalidate"); n != 93 {
		t.Errorf("%d messages, want 93", n)
	}
	long := strings.Repeat("k", maxTracked+1)
	if out := b.do("a", "GET", long); out != "_ >2 $10 invalidate *1 $"+strconv.Itoa(len(long))+" "+long {
		t.Errorf("the reply to GET of a long key has %d bytes", len(out))
	}
	for _, name := range []string{"a", "c", "d"} {
		b.do(name, "QUIT")
	}
	want = "tracking_total_keys:0\r\ntracking_total_items:0\r\ntracking_total_prefixes:0\r\n"
	if info := rawInfo(b); !strings.Contains(info, want) {
		t.Errorf("INFO is\n%s\nwant\n%s", info, want)
	}
}

func rawInfo(b *bench) string {
	f := b.connect("info")
	b.send(f, resp.AppendRequest(nil, "INFO"))
	out := string(f.out)
	f.out = nil
	return out
}

// TestTrackingForgets has clients that come, read a key that never changes, and go.
func TestTrackingForgets(t *testing.T) {
	b := newBench(t, &Server{})
	b.do("a", "CLIENT", "TRACKING", "ON")
	b.do("a", "GET", "k")
	for range 1000 {
		f := b.connect("b")
		b.do("b", "CLIENT", "TRACKING", "ON")
		b.do("b", "GET", "k")
		b.do("b", "QUIT")
		f.end()
		delete(b.clients, "b")
	}
	if n := b.s.tracking.table.items; n > minPruned {
		t.Errorf("%d clients are noted, want %d at most", n, minPruned)
	}
	if n := len(b.s.tracking.byToken); n != 1 {
		t.Errorf("%d clients have tokens, want 1", n)
	}
	b.script(`
		r: CLIENT ID => :1002
		r: SUBSCRIBE x => *3...
		CLIENT TRACKING ON REDIRECT 1002 => +OK
		b: SET k v => +OK
		r? => *3 $7 message $20 __redis__:invalidate *1 $1 k
	`)
}

// TestTrackingOfCalls has an added command, whose reads concern the client that called it.
func TestTrackingOfCalls(t *testing.T) {
	run := func(c *Call, args [][]byte) {
		c.Do(string(args[2]), "x", "1")
		c.Int(1)
	}
	s := &Server{Commands: []Command{{Name: "with", Arity: 3, FirstKey: 1, LastKey: 1, Run: run}}}
	b := newBench(t, s)
	if err := s.addCommands(); err != nil {
		t.Fatal(err)
	}
	b.script(`
		HELLO 3 => %7...
		CLIENT TRACKING ON NOLOOP => +OK
		WITH k GETRANGE => :1
		WITH k SET => :1
		b: SET k 1 => +OK
		a? =>
		WITH k EXPIRETIME => :1
		b: SET k 1 => +OK
		a? =>
		WITH k STRLEN => :1
		WITH k EXISTS => :1
		b: SET k 1 => +OK
		a? => >2 $10 invalidate *1 $1 k
		GET x => $1 1
		WITH k SET => :1
		c: HELLO 3 => %7...
		c: CLIENT TRACKING ON BCAST NOLOOP => +OK
		c: WITH k SET => :1 >2 $10 invalidate *1 $1 x
	`)
}

func TestNoTouch(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET maxmemory-policy allkeys-lru => +OK
		SET k v => +OK
		SET l v => +OK
		CLIENT NO-TOUCH maybe => -ERR syntax error
		CLIENT NO-TOUCH ON => +OK
		CLIENT LIST ID 1 => $...
		+10200ms
		GET k => $1 v
		OBJECT IDLETIME k => :10
		TOUCH l => :1
		OBJECT IDLETIME l => :0
		b: GET k => $1 v
		OBJECT IDLETIME k => :0
		+10s
		MULTI => +OK
		CLIENT NO-TOUCH OFF => +QUEUED
		GET k => +QUEUED
		EXEC => *2 +OK $1 v
		OBJECT IDLETIME k => :0
		CLIENT NO-TOUCH ON => +OK
		RESET => +RESET
		+10s
		GET k => $1 v
		OBJECT IDLETIME k => :0
	`)
}
