package redis

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
	"github.com/rondo-go/rondo/rondotest"
)

// Clients that block, watch, subscribe, monitor, pause, kill each other, run out of limits,
// do not read, and vanish: at the end the server has forgotten all of them.
func TestNetworkChaosLeavesNothing(t *testing.T) {
	seeds(t, 16, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{Commands: chaosCommands, Debug: DebugYes}
		serve(t, net, loops, s)
		s.Engine.Logger = slog.New(otherPanics{t, net.Seed()})
		s.Logger = s.Engine.Logger
		x := &chaos{t: t, net: net, s: s, r: rand.New(rand.NewPCG(net.Seed(), uint64(loops)))}
		for range 400 {
			x.step()
		}
		x.end()
	})
}

// chaosCommands are commands of the program that misbehave.
var chaosCommands = []Command{
	{Name: "breaks", Arity: 1, Run: func(*Call, [][]byte) { panic("broken") }},
	{Name: "breakslate", Arity: -2, Flags: "write", Run: func(c *Call, args [][]byte) {
		c.Do("RPUSH", string(args[1]), "x")
		c.Do("PUBLISH", "c", "x")
		c.Array(2)
		panic("broken")
	}},
	{Name: "run", Arity: -2, Flags: "write", Run: func(c *Call, args [][]byte) {
		var words []string
		for _, a := range args[1:] {
			words = append(words, string(a))
		}
		c.BulkString(show(c.Do(words...)))
	}},
}

// otherPanics is a log that reports panics, but for those of chaosCommands.
type otherPanics struct {
	t    *testing.T
	seed uint64
}

func (otherPanics) Enabled(context.Context, slog.Level) bool { return true }

func (p otherPanics) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "panic" && a.Value.String() != "broken" {
			p.t.Errorf("seed %d: %s: %v", p.seed, r.Message, a.Value)
		}
		return true
	})
	return nil
}

func (p otherPanics) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p otherPanics) WithGroup(string) slog.Handler      { return p }

type chaos struct {
	t     *testing.T
	net   *rondotest.Network
	s     *Server
	r     *rand.Rand
	peers []peer
	local *Client
}

func (x *chaos) pick(words ...string) string { return words[x.r.IntN(len(words))] }

func (x *chaos) step() {
	switch n := x.r.IntN(20); {
	case n == 0 || len(x.peers) == 0:
		x.peers = append(x.peers, dial(x.t, x.net))
		return
	case n == 1:
		x.net.Advance(time.Duration(x.r.IntN(400)) * time.Millisecond)
		return
	case n == 2:
		i := x.r.IntN(len(x.peers))
		p := x.peers[i]
		x.peers = append(x.peers[:i], x.peers[i+1:]...)
		switch x.r.IntN(3) {
		case 0:
			p.Reset()
		case 1:
			p.CloseWrite()
			x.net.Run()
			p.Close()
		default:
			p.Close()
		}
		return
	case n == 3:
		x.within()
		return
	case n < 8: // some read nothing for a long time
		p := x.peers[x.r.IntN(len(x.peers))]
		if n := p.Buffered(); n > 0 {
			p.Read(make([]byte, n))
		}
		return
	}
	p := x.peers[x.r.IntN(len(x.peers))]
	var in []byte
	for range 1 + x.r.IntN(4) {
		in = resp.AppendRequest(in, splitWords(x.request())...)
	}
	p.SetWriteDeadline(x.net.Now().Add(time.Millisecond)) // it may be closed, or full
	p.Write(in)
}

// within runs a command of the program's own client.
func (x *chaos) within() {
	if x.local == nil {
		x.local = newClient(x.t, x.net, x.s)
	}
	ctx := x.net.Timeout(50 * time.Millisecond)
	line := x.request()
	x.net.Await(func() { x.local.Do(ctx, splitWords(line)...) })
	if x.r.IntN(10) == 0 {
		x.net.Await(x.local.Close)
		x.local = nil
	}
}

func (x *chaos) request() string {
	k := x.pick("a", "b", "c")
	id := strconv.Itoa(1 + x.r.IntN(40))
	return x.pick(
		"SET "+k+" v PX "+strconv.Itoa(1+x.r.IntN(300)), "GET "+k, "RPUSH "+k+" x", "LPUSH "+k+" y z", "DEL "+k, "ZADD "+k+" 1 x",
		"BLPOP "+k+" b "+x.pick("0", "0.1"), "BLMOVE "+k+" c LEFT LEFT 0", "BZPOPMIN "+k+" 0", "BRPOP a b c 0.05", "WAIT 1 "+x.pick("0", "50"),
		"MULTI", "EXEC", "DISCARD", "WATCH "+k, "UNWATCH", "SUBSCRIBE c d", "PSUBSCRIBE *", "SSUBSCRIBE s", "UNSUBSCRIBE", "PUNSUBSCRIBE",
		"SUNSUBSCRIBE", "PUBLISH c "+strings.Repeat("m", x.r.IntN(3000)), "SPUBLISH s m", "MONITOR", "RESET", "QUIT", "HELLO 3", "HELLO 2",
		"CLIENT KILL ID "+id, "CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE normal SKIPME no", "CLIENT PAUSE "+strconv.Itoa(x.r.IntN(200))+" "+x.pick("ALL", "WRITE"),
		"CLIENT UNPAUSE", "CLIENT UNBLOCK "+id+" "+x.pick("TIMEOUT", "ERROR"), "CLIENT REPLY "+x.pick("ON", "OFF", "SKIP"), "CLIENT NO-EVICT ON", "CLIENT LIST",
		"CONFIG SET maxmemory-clients "+x.pick("0", "20000", "100000"), "CONFIG SET maxmemory "+x.pick("0", "0", "1"), "CONFIG SET timeout "+x.pick("0", "1"),
		"CONFIG SET maxmemory-policy "+x.pick("noeviction", "allkeys-lru", "volatile-ttl"),
		`CONFIG SET client-output-buffer-limit "normal `+x.pick("0 0 0", "30000 0 0", "0 20000 1", "2000000 20000 1")+`"`,
		`CONFIG SET client-output-buffer-limit "pubsub `+x.pick("0 0 0", "30000 0 0", "0 20000 1", "32mb 8mb 60")+`"`,
		"CONFIG SET notify-keyspace-events "+x.pick("KEA", `""`), "CONFIG SET slowlog-log-slower-than "+x.pick("0", "-1", "10000"),
		"CONFIG SET requirepass "+x.pick(`""`, `""`, "pw"), "AUTH pw", "SELECT "+x.pick("0", "1"), "SWAPDB 0 1", "FLUSHALL", "RENAME "+k+" b", "MOVE "+k+" 1",
		"SET big "+strings.Repeat("b", 20000), "GET big", "GET big", "GET big", "LRANGE "+k+" 0 -1", "KEYS *", "BREAKS", "BREAKSLATE "+k, "RUN RPUSH "+k+" x",
		"RUN BLPOP "+k+" 0", "RUN CONFIG SET maxmemory-clients 20000", "RUN RUN BREAKSLATE "+k, "DEBUG SET-ACTIVE-EXPIRE "+x.pick("0", "1"), "INFO",
		"CLIENT TRACKING ON", "CLIENT TRACKING ON "+x.pick("NOLOOP", "OPTOUT", "OPTIN", "BCAST", "BCAST PREFIX a PREFIX b", "BCAST NOLOOP PREFIX c"),
		"CLIENT TRACKING ON "+x.pick("", "NOLOOP", "BCAST")+" REDIRECT "+id, "CLIENT TRACKING OFF", "CLIENT CACHING "+x.pick("YES", "NO"), "CLIENT TRACKINGINFO",
		"CONFIG SET tracking-table-max-keys "+x.pick("0", "1", "1000"), "CLIENT NO-TOUCH "+x.pick("ON", "OFF"), "TOUCH "+k, "RUN GET "+k, "EXISTS a b c",
		"SORT "+k+" STORE b", "COPY "+k+" b", "PFADD h "+k, "PFCOUNT h", "EXPIRE "+k+" 0",
	)
}

func (x *chaos) end() {
	if x.local != nil {
		x.net.Await(x.local.Close)
	}
	for _, p := range x.peers {
		p.Close()
	}
	x.net.Advance(2 * time.Minute)
	s := x.s
	x.net.Await(func() {
		s.loop.Post(func() {
			s.config.maxMemory = 0
			s.users.SetPassword("")
		})
	})
	x.net.Run()
	left := fmt.Sprint(len(s.clients.list), len(s.clients.byID), len(s.clients.leaving), s.clients.connections, len(s.clients.refused), len(s.clients.condemned),
		len(s.broker.channels.list), len(s.broker.patterns.list), len(s.broker.shards.list), len(s.monitors.list), s.blocking.count, s.blocking.timed,
		s.pause.waiting.Len(), len(s.upkeep.overSoft), s.clientMemory.held, len(s.outgoing), len(s.space.ready), s.unready.Load(), len(s.stalls.list))
	if left != fmt.Sprint(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) {
		x.t.Errorf("seed %d: left are %s", x.net.Seed(), left)
	}
	if t := &s.tracking; t.clients != 0 || len(t.byToken) != 0 || t.table.len() != 0 || t.table.items != 0 || t.inner != 0 || t.evicting ||
		t.prefixes.tree != (prefixTree{}) || len(t.prefixes.dirty) != 0 || s.space.tracking != nil {
		x.t.Errorf("seed %d: tracking is %+v", x.net.Seed(), t)
	}
	for i := range s.space.dbs {
		if db := &s.space.dbs[i]; len(db.watchers)+len(db.waiting) > 0 {
			x.t.Errorf("seed %d: database %d has %d watched keys, and %d that clients wait for", x.net.Seed(), i, len(db.watchers), len(db.waiting))
		}
	}
	c := dial(x.t, x.net)
	c.do("FLUSHALL", "+OK")
	c.do("BLPOP a 1", "*-1")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x.net.Await(func() {
		if err := s.Shutdown(ctx); err != nil {
			x.t.Errorf("seed %d: %v", x.net.Seed(), err)
		}
	})
}
