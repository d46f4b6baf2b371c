package difftest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// crowdSize is the number of clients that take turns, besides the one that looks on.
const crowdSize = 8

// TestCrowd lets several clients send random requests about the same few keys: they block,
// watch, run transactions, and take keys away from each other. Each request of a client, and
// each reply to a client that was blocked, must be the same on both servers.
func TestCrowd(t *testing.T) {
	seed := randomSeedOr()
	kinds := map[string]func(r *rand.Rand, payloads []string) []string{"": crowdRequest, "streams/": crowdStreamRequest}
	for kind, another := range kinds {
		for _, proto := range []string{"2", "3"} {
			t.Run(kind+"RESP"+proto, func(t *testing.T) {
				servers, watchers := pairServers(t)
				x := &crowd{r: rand.New(rand.NewPCG(seed, uint64(len(proto)))), servers: servers, watchers: watchers, proto: proto, another: another}
				defer x.close()
				if err := x.run(*randomOps / 5); err != nil {
					t.Fatalf("-seed %d: %v\nafter\n%s", seed, err, strings.Join(x.sent[max(0, len(x.sent)-60):], "\n"))
				}
			})
		}
	}
}

// A crowd is the same clients on both servers.
type crowd struct {
	r        *rand.Rand
	servers  []*server
	watchers []*client
	proto    string
	another  func(r *rand.Rand, payloads []string) []string // makes requests
	payloads []string                                       // of a list, a sorted set and a stream
	members  [crowdSize]member
	sent     []string
}

// A member is a client of both servers.
type member struct {
	clients []*client
	blocked bool
	inMulti bool
}

func (x *crowd) close() {
	for i := range x.members {
		x.members[i].close()
	}
}

func (m *member) close() {
	for _, c := range m.clients {
		c.Close()
	}
	*m = member{}
}

func (x *crowd) run(ops int) error {
	for _, request := range [][]string{{"RPUSH", "a", "x"}, {"ZADD", "b", "1", "x"}, {"XADD", "c", "1-1", "f", "x"}} {
		if _, err := x.watchers[0].ask(request...); err != nil {
			return err
		}
		v, err := x.watchers[0].ask("DUMP", request[1])
		if err != nil {
			return err
		}
		x.payloads = append(x.payloads, string(v.Str))
	}
	if _, err := x.watchers[0].ask("FLUSHALL"); err != nil {
		return err
	}
	for n := 0; n < ops; n++ {
		i := x.r.IntN(crowdSize)
		m := &x.members[i]
		if m.clients == nil {
			if err := x.join(i); err != nil {
				return err
			}
		}
		if m.blocked {
			if err := x.disturb(i); err != nil {
				return err
			}
			continue
		}
		if err := x.turn(i); err != nil {
			return err
		}
	}
	return nil
}

func (x *crowd) join(i int) error {
	m := &x.members[i]
	for _, s := range x.servers {
		c, err := s.dial("")
		if err != nil {
			return err
		}
		m.clients = append(m.clients, c)
		for _, request := range [][]string{{"HELLO", x.proto}, {"CLIENT", "SETNAME", "m" + strconv.Itoa(i)}} {
			if _, err := c.ask(request...); err != nil {
				return err
			}
		}
	}
	return nil
}

// disturb does something about a blocked client.
func (x *crowd) disturb(i int) error {
	m := &x.members[i]
	switch x.r.IntN(12) {
	case 0:
		x.note(i, "leaves")
		m.close()
		// The servers notice it before the next request.
		return x.await(func(blocked []map[string]bool) bool {
			return !blocked[0]["m"+strconv.Itoa(i)] && !blocked[1]["m"+strconv.Itoa(i)]
		})
	case 1:
		how := pick(x.r, "TIMEOUT", "ERROR")
		x.note(i, "is unblocked: "+how)
		for j, w := range x.watchers {
			id, err := x.idOf(j, i)
			if err != nil {
				return err
			}
			if _, err := w.ask("CLIENT", "UNBLOCK", id, how); err != nil {
				return err
			}
		}
		return x.settle(-1)
	}
	return nil
}

func (x *crowd) idOf(server, i int) (string, error) {
	v, err := x.watchers[server].ask("CLIENT", "LIST")
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(v.Str), "\n") {
		if strings.Contains(line, " name=m"+strconv.Itoa(i)+" ") {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			return id, nil
		}
	}
	return "", fmt.Errorf("server %d does not list client %d", server, i)
}

func (x *crowd) note(i int, what string) {
	x.sent = append(x.sent, fmt.Sprintf("m%d %s", i, what))
	x.sent = slices.Delete(x.sent, 0, max(0, len(x.sent)-200))
}

// turn sends a request of a client.
func (x *crowd) turn(i int) error {
	m := &x.members[i]
	request := x.request(m)
	if request[0] == "SWAPDB" && (m.inMulti || slices.ContainsFunc(x.members[:], func(m member) bool { return m.blocked })) {
		request = []string{"PING"} // redis-server serves the clients that wait for the keys in any order
	}
	x.note(i, fmt.Sprintf("%.300q %v", request, m.blocked))
	for j, c := range m.clients {
		c.SetDeadline(time.Now().Add(patience))
		if _, err := c.Write(resp.AppendRequest(nil, request...)); err != nil {
			return err
		}
		if err := x.taken(j, i); err != nil {
			return err
		}
	}
	return x.settle(i)
}

// taken waits until a server has replied to a client, or blocked it.
func (x *crowd) taken(server, i int) error {
	c := x.members[i].clients[server]
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c.SetDeadline(time.Now().Add(time.Millisecond))
		reply, err := c.one()
		if err == nil {
			c.in = append(slices.Clone(reply), c.in...) // settle reads it
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		blocked, err := x.blocked()
		if err != nil || blocked[server]["m"+strconv.Itoa(i)] {
			return err
		}
	}
	return fmt.Errorf("server %d neither replies nor blocks client %d", server, i)
}

// settle reads the reply to the client whose turn it was, unless it is blocked now, and
// the replies to those that are blocked no more.
func (x *crowd) settle(turn int) error {
	blocked, err := x.blocked()
	if err != nil {
		return err
	}
	for i := range x.members {
		m, name := &x.members[i], "m"+strconv.Itoa(i)
		if m.clients == nil {
			continue
		}
		if blocked[0][name] != blocked[1][name] {
			return fmt.Errorf("client %d is blocked: %v, want %v", i, blocked[1][name], blocked[0][name])
		}
		was := m.blocked || i == turn
		m.blocked = blocked[0][name]
		if !was || m.blocked {
			continue
		}
		for _, c := range m.clients {
			c.SetDeadline(time.Now().Add(patience))
		}
		if err := sameReply(m.clients, ""); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	var digests []string
	for _, w := range x.watchers {
		v, err := w.ask("DEBUG", "DIGEST")
		if err != nil {
			return err
		}
		digests = append(digests, string(v.Str))
	}
	if digests[0] != digests[1] {
		return fmt.Errorf("the keys differ")
	}
	for _, m := range x.members { // what nobody has asked for
		for j, c := range m.clients {
			if len(c.in) > 0 {
				return fmt.Errorf("server %d: %q is too much", j, c.in)
			}
		}
	}
	return nil
}

func (x *crowd) await(done func([]map[string]bool) bool) error {
	for range 10000 {
		blocked, err := x.blocked()
		if err != nil || done(blocked) {
			return err
		}
	}
	return fmt.Errorf("a client that has left stays blocked")
}

// blocked returns the names of the clients that are blocked, for each server.
func (x *crowd) blocked() (all []map[string]bool, err error) {
	for _, w := range x.watchers {
		v, err := w.ask("CLIENT", "LIST")
		if err != nil {
			return nil, err
		}
		names := map[string]bool{}
		for _, line := range strings.Split(string(v.Str), "\n") {
			_, rest, _ := strings.Cut(line, " name=")
			name, rest, _ := strings.Cut(rest, " ")
			_, rest, _ = strings.Cut(rest, " flags=")
			flags, _, _ := strings.Cut(rest, " ")
			if strings.Contains(flags, "b") {
				names[name] = true
			}
		}
		all = append(all, names)
	}
	return all, nil
}

// request returns the next request of a client.
func (x *crowd) request(m *member) []string {
	r := x.r
	switch n := r.IntN(20); {
	case m.inMulti && n < 5:
		m.inMulti = false
		return []string{pick(r, "EXEC", "EXEC", "EXEC", "DISCARD")}
	case !m.inMulti && n < 2:
		m.inMulti = true
		return []string{"MULTI"}
	case !m.inMulti && n < 4:
		return join("WATCH", randomWords(r, 1, 3, crowdKey))
	}
	return x.another(r, x.payloads)
}

func crowdKey(r *rand.Rand) string { return pick(r, "a", "b", "c", "d") }

// stored is a key that nobody waits for: redis-server does not serve the clients that wait for a key
// that a command overwrites with its result.
const stored = "s"

func side(r *rand.Rand) string { return pick(r, "LEFT", "RIGHT") }

// crowdRequest returns a request that blocks, or that another client may wait for.
func crowdRequest(r *rand.Rand, payloads []string) []string {
	key, other := crowdKey(r), crowdKey(r)
	keys := randomWords(r, 1, 4, crowdKey)
	element := pick(r, "x", "y", "z", "1", "2")
	switch r.IntN(40) {
	case 0, 1, 2, 3:
		return join(pick(r, "BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX"), keys, "0")
	case 4, 5:
		return join("BLMOVE", key, other, side(r), side(r), "0")
	case 6:
		return join("BRPOPLPUSH", key, other, "0")
	case 7, 8:
		return join("BLMPOP", "0", strconv.Itoa(len(keys)), keys, side(r), sometimes(r, 2, "COUNT", pick(r, "1", "2", "9")))
	case 9, 10:
		return join("BZMPOP", "0", strconv.Itoa(len(keys)), keys, pick(r, "MIN", "MAX"), sometimes(r, 2, "COUNT", pick(r, "1", "2", "9")))
	case 11, 12, 13:
		return join(pick(r, "LPUSH", "RPUSH", "LPUSHX"), key, randomWords(r, 1, 3, func(r *rand.Rand) string { return pick(r, "x", "y", "z") }))
	case 14, 15, 16:
		return join("ZADD", key, pick(r, "1", "2"), element, sometimes(r, 3, pick(r, "3", "1"), "w"))
	case 17:
		return join("RENAME", pick(r, key, stored), other)
	case 18:
		return join("COPY", pick(r, key, stored), other, sometimes(r, 2, "REPLACE"), sometimes(r, 4, "DB", pick(r, "0", "1")))
	case 19:
		return join("MOVE", key, pick(r, "0", "1"))
	case 20:
		return join("SWAPDB", "0", "1")
	case 21:
		return join("SELECT", pick(r, "0", "0", "1"))
	case 22:
		return join("DEL", keys)
	case 23:
		return join("SET", key, element, sometimes(r, 3, pick(r, "NX", "XX")))
	case 24:
		return join("PEXPIREAT", key, pick(r, "1", "4000000000000"))
	case 25:
		return join("SORT", key, "ALPHA", "STORE", stored)
	case 26:
		return join(pick(r, "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"), stored, strconv.Itoa(len(keys)), keys)
	case 27:
		return join("ZRANGESTORE", stored, other, "0", "-1")
	case 28:
		return join("SADD", key, element)
	case 29:
		return join("LMOVE", key, other, side(r), side(r))
	case 30:
		return join(pick(r, "LPOP", "RPOP", "ZPOPMIN", "ZPOPMAX"), key, sometimes(r, 2, pick(r, "1", "3")))
	case 31:
		return pickRequest(r, join("FLUSHDB"), join("FLUSHALL"), join("GEOADD", key, "1", "1", element), join("GEOADD", key, "2", "2", "p"))
	case 32:
		return pickRequest(r, join("LINSERT", key, "BEFORE", "x", element), join("LSET", key, "0", element), join("LREM", key, "0", element), join("LTRIM", key, "1", "2"))
	case 33:
		return join("ZINCRBY", key, pick(r, "1", "-1"), element)
	case 34:
		return pickRequest(r, join("UNWATCH"), join("TOUCH", key), join("PERSIST", key), join("EXISTS", key))
	case 35:
		return pickRequest(r, join("LRANGE", key, "0", "-1"), join("ZRANGE", key, "0", "-1", "WITHSCORES"), join("TYPE", key), join("DBSIZE"))
	case 36:
		return join(pick(r, "SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"), key, other)
	case 37:
		return join("SREM", key, element)
	case 38:
		return join("RENAMENX", pick(r, key, stored), other)
	}
	return join("RESTORE", key, "0", payloads[r.IntN(len(payloads))], sometimes(r, 2, "REPLACE"))
}
