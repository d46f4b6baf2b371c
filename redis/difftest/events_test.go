package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/redis/rdb"
	"github.com/rondo-go/rondo/resp"
)

// ask sends a request and returns the reply.
func (c *client) ask(request ...string) (v resp.Value, err error) {
	c.SetDeadline(time.Now().Add(patience))
	if _, err = c.Write(resp.AppendRequest(nil, request...)); err != nil {
		return v, err
	}
	reply, err := c.one()
	if err != nil {
		return v, err
	}
	v, _, _, err = resp.ReadValue(reply)
	return v, err
}

// pairServers starts redis-server and package redis, and returns a client of each.
func pairServers(t *testing.T) (servers []*server, clients []*client) {
	path, reason := findReference()
	if path == "" {
		t.Skip(reason)
	}
	servers = []*server{startReference(t, path, ""), startRondo(t, "", 1, "")}
	for _, s := range servers {
		clients = append(clients, dial(t, s))
	}
	return servers, clients
}

func dial(t *testing.T, s *server) *client {
	t.Helper()
	c, err := s.dial("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func randomSeedOr() uint64 {
	if *randomSeed != 0 {
		return *randomSeed
	}
	return rand.Uint64()
}

// TestEvents sends the same random requests to redis-server and to package redis, and
// compares the keyspace events that they publish.
func TestEvents(t *testing.T) {
	seed := randomSeedOr()
	for name, family := range randomFamilies {
		t.Run(name, func(t *testing.T) {
			servers, clients := pairServers(t)
			listeners := listen(t, servers, clients)
			r := rand.New(rand.NewPCG(seed, 1))
			for done := 0; done < *randomOps/4; {
				batch := family.requests(r)
				done += len(batch)
				if err := sameEvents(clients, listeners, batch); err != nil {
					t.Fatalf("-seed %d: %.1000q: %v", seed, batch, err)
				}
			}
		})
	}
}

// TestEventsOfCommands compares the events of each command that publishes some.
func TestEventsOfCommands(t *testing.T) {
	servers, clients := pairServers(t)
	listeners := listen(t, servers, clients)
	e := rdb.Encoder{}
	e.Type(rdb.TypeString)
	e.String([]byte("x"))
	e.Seal()
	for _, line := range strings.Split(strings.TrimSpace(eventRequests), "\n") {
		request := strings.Fields(line)
		for i, word := range request {
			switch word {
			case "PAYLOAD":
				request[i] = string(e.B)
			case `""`:
				request[i] = ""
			}
		}
		if err := sameEvents(clients, listeners, [][]string{request}); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

const eventRequests = `
SET k v
SET k v EX 100
SET k v KEEPTTL
SETEX k 10 v
GETEX k PERSIST
GETEX k EX 10
GETEX k
GETEX k EXAT 1
GETEX none EX 10
SETNX n 1
SETNX n 1
GETSET n 2
SET n 3 GET
SET n 3 XX GET
SET o 1 NX GET
MSET a 1 b 2
MSETNX a 1 c 3
MSETNX c 3 d 4
APPEND a x
APPEND e x
SETRANGE a 3 x
SETRANGE f 0 ""
SETRANGE g 1 x
INCR n
INCRBY n 5
DECR new
GETDEL n
GETDEL none
INCRBYFLOAT n 1.5
INCRBYFLOAT nf 1.5
SETBIT bits 7 1
SETBIT bits 7 1
SETBIT bits 100 0
GETBIT none 1
BITCOUNT none
BITFIELD bits SET u8 0 255
BITFIELD bits GET u8 0
BITFIELD bits2 INCRBY u8 0 1
BITOP OR target bits bits2
BITOP AND target none
BITOP AND target none
PFADD hll a b c
PFADD hll a
PFADD hll2
PFCOUNT hll
PFCOUNT none
PFMERGE hll hll2
PFMERGE hll3 hll
LCS none hll
DEL a none b
UNLINK c
EXPIRE d 100
EXPIRE d -1
EXPIRE none 10
PERSIST e
PEXPIREAT e 4102444800123
PERSIST e
RENAME e h
RENAME h h
RENAMENX h k
COPY h i
COPY h i
COPY h i REPLACE
COPY none i
COPY h i DB 3
MOVE h 2
MOVE none 2
TYPE none
EXISTS none h
TTL none
OBJECT ENCODING none
TOUCH none
RPUSH l a b c d e
LPUSH l z
LPUSHX none a
RPUSHX l f
LINSERT l BEFORE a b
LINSERT l BEFORE none b
LSET l 0 x
LREM l 0 b
LREM l 0 none
LTRIM l 0 1
LTRIM l 0 -1
LPOP l
LPOP l 0
RPOP l 5
RPOP none
RPUSH l a b c
LMOVE l m LEFT RIGHT
RPOPLPUSH l l
RPOPLPUSH l m
LMOVE l m LEFT LEFT
LMPOP 2 none m LEFT COUNT 2
LTRIM m 5 9
LPOS none a
SORT none
RPUSH l 3 1 2
SORT l STORE sorted
SORT none STORE sorted
SORT none STORE sorted
SADD s a b c
SADD s a
SREM s a none
SREM s none
SMOVE s t b
SMOVE s t none
SMOVE s s c
SMOVE s t c
SADD u x
SPOP u
SADD u x y z
SPOP u 0
SPOP u 10
SADD u c
SINTERSTORE v t u
SINTERSTORE v t none
SINTERSTORE v t none
SUNIONSTORE v t u
SDIFFSTORE v t u
SISMEMBER none a
SMEMBERS none
HSET hash f 1 g 2
HSETNX hash f 1
HSETNX hash h 1
HMSET hash f 2
HINCRBY hash f 1
HINCRBYFLOAT hash f 1.5
HDEL hash none
HDEL hash f
HDEL hash g h
HGET none f
ZADD z 1 a 2 b 3 c 4 d
ZADD z 1 a
ZADD z XX 2 a
ZADD z XX 2 new
ZADD z INCR 1 a
ZINCRBY z 1 a
ZREM z none
ZREM z a
ZREMRANGEBYRANK z 0 0
ZREMRANGEBYSCORE z 3 3
ZREMRANGEBYSCORE z 30 30
ZREMRANGEBYLEX z - +
ZADD z 1 a 2 b 3 c 4 d
ZPOPMIN z
ZPOPMAX z 1
ZPOPMIN z 0
ZMPOP 1 z MIN COUNT 10
ZADD z 1 a 2 b
ZUNIONSTORE y 1 z
ZINTERSTORE y 2 z none
ZDIFFSTORE y 1 z
ZRANGESTORE y z 0 0
ZRANGESTORE y z 5 6
ZRANGE none 0 -1
GEOADD g2 1 1 p
GEOADD g2 1 1 p
GEOSEARCHSTORE g3 g2 FROMLONLAT 1 1 BYRADIUS 1 km
GEORADIUS g2 1 1 1 km STORE g3
GEORADIUS g2 50 50 1 km STORE g3
GEOSEARCHSTORE g3 g2 FROMLONLAT 50 50 BYRADIUS 1 km
DUMP none
RESTORE r 0 PAYLOAD
RESTORE r 0 PAYLOAD REPLACE
RESTORE r 1 PAYLOAD REPLACE ABSTTL
SWAPDB 0 1
SWAPDB 0 1
FLUSHDB
`

// listen turns on all events, and returns clients that get them.
func listen(t *testing.T, servers []*server, clients []*client) (listeners []*client) {
	for i, s := range servers {
		listeners = append(listeners, dial(t, s))
		if _, err := clients[i].ask("CONFIG", "SET", "notify-keyspace-events", "KEAmn"); err != nil {
			t.Fatal(err)
		}
		if _, err := listeners[i].ask("PSUBSCRIBE", "*"); err != nil {
			t.Fatal(err)
		}
	}
	return listeners
}

// sameEvents sends requests to both servers, and compares what they publish.
func sameEvents(clients, listeners []*client, batch [][]string) error {
	var published [2][]string
	for i, c := range clients {
		for _, request := range append(slices.Clone(batch), []string{"PUBLISH", "end", ""}) {
			if _, err := c.ask(request...); err != nil {
				return err
			}
		}
		var err error
		if published[i], err = listeners[i].untilEnd(); err != nil {
			return err
		}
	}
	sorts := func(request []string) bool { // FCALL may call a function of an earlier batch
		return strings.HasPrefix(request[0], "FCALL") || slices.ContainsFunc(request, func(word string) bool { return strings.Contains(word, "SORT") })
	}
	if slices.ContainsFunc(batch, sorts) { // a set's elements are looked up in any order, also by a script
		slices.Sort(published[0])
		slices.Sort(published[1])
	}
	if !slices.Equal(published[0], published[1]) {
		return fmt.Errorf("got events\n%s\nwant\n%s", strings.Join(published[1], "\n"), strings.Join(published[0], "\n"))
	}
	return nil
}

// untilEnd returns the messages up to the one on the channel end.
func (c *client) untilEnd() (all []string, err error) {
	c.SetDeadline(time.Now().Add(patience))
	for {
		reply, err := c.one()
		if err != nil {
			return all, err
		}
		v, _, _, err := resp.ReadValue(reply)
		if err != nil || len(v.Elems) != 4 {
			return all, fmt.Errorf("%q is no message: %v", reply, err)
		}
		channel := string(v.Elems[2].Str)
		if channel == "end" {
			return all, nil
		}
		all = append(all, fmt.Sprintf("%.100q %.100q", channel, v.Elems[3].Str))
	}
}
