package redis

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

// Random commands on values around the thresholds of encodings, with maxmemory so small
// that keys are evicted all the time, in transactions too, while entries are moved
// together: values stay consistent, the memory limit holds, and nothing is left of the
// memory when all keys are gone.
func TestCommandsUnderPressure(t *testing.T) {
	const rounds = 4000
	for _, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			p := &pressure{bench: newBench(t, &Server{Debug: DebugYes}), r: rand.New(rand.NewPCG(7, uint64(len(policy))))}
			p.expect("+OK", "CONFIG", "SET", "maxmemory-policy", policy)
			p.s.space.store.SetDefrag(1)
			room := int64(3 << 20)
			p.s.config.maxMemory = p.s.baseMemory + room
			for i := range rounds {
				p.step()
				if i%100 == 0 {
					p.s.space.store.Tick(tidyWork)
				}
				if i%500 == 0 {
					p.check()
				}
				if over := p.s.space.memory() - room; over > 4<<20 {
					t.Fatalf("step %d: %d bytes too many", i, over)
				}
			}
			p.check()
			if n := p.s.stats.evicted; n == 0 && strings.HasPrefix(policy, "allkeys") {
				t.Error("nothing was evicted")
			}
			p.s.config.maxMemory = 0
			p.expect("+OK", "FLUSHALL")
			for p.s.space.store.Tick(1 << 20) {
			}
			if m := p.s.space.store.Memory(); m.Used > 1<<20 {
				t.Errorf("%+v after FLUSHALL", m)
			}
		})
	}
}

type pressure struct {
	*bench
	r *rand.Rand
}

func (p *pressure) expect(want string, args ...string) {
	p.t.Helper()
	if got := p.do("a", args...); got != want {
		p.t.Fatalf("%q: %.200s, want %s", args, got, want)
	}
}

// value has a length around a threshold.
func (p *pressure) value() string {
	sizes := []int{0, 1, 2, 12, 20, 44, 45, 62, 63, 64, 65, 127, 128, 253, 254, 255, 500, 4094, 4095, 4096, 8100, 8180, 8192, 8200, 16383, 16384, 33000, 70000}
	n := sizes[min(p.r.IntN(len(sizes)), p.r.IntN(len(sizes)))]
	switch p.r.IntN(4) {
	case 0:
		return strconv.FormatInt(p.r.Int64()>>p.r.IntN(64)*int64(1-2*p.r.IntN(2)), 10)
	case 1:
		return strconv.Itoa(p.r.IntN(600))
	}
	return strings.Repeat(string(rune('a'+p.r.IntN(26))), n)
}

func (p *pressure) key(kind string) string { return kind + strconv.Itoa(p.r.IntN(40)) }

func (p *pressure) values(most int) (all []string) {
	for range 1 + p.r.IntN(most) {
		all = append(all, p.value())
	}
	return all
}

// pairs are fields or scores with values.
func (p *pressure) pairs(most int, first func() string) (all []string) {
	for range 1 + p.r.IntN(most) {
		all = append(all, first(), p.value())
	}
	return all
}

func (p *pressure) score() string { return strconv.Itoa(p.r.IntN(100) - 50) }

// step runs a random command, perhaps in a transaction.
func (p *pressure) step() {
	if p.r.IntN(20) > 0 {
		p.run(p.command())
		return
	}
	p.do("a", "MULTI")
	for range p.r.IntN(8) {
		p.run(p.command())
	}
	p.do("a", "EXEC")
}

func (p *pressure) run(args []string) {
	switch args[0] {
	case "+":
		p.advance(time.Duration(p.r.IntN(3000)) * time.Millisecond)
		return
	case "@":
		p.do("a", "CONFIG", "SET", args[1], args[2])
		return
	}
	f := p.connect("a")
	before := len(p.s.space.ready)
	p.send(f, resp.AppendRequest(nil, args...))
	f.out = nil
	if len(p.s.space.ready) > before || f.closed || f.aborted != nil {
		p.t.Fatalf("%.200q: the client was closed, or a key stays ready: %v", args, f.aborted)
	}
}

func (p *pressure) command() []string {
	cat := func(a []string, b ...string) []string { return append(a, b...) }
	i := func(n int) string { return strconv.Itoa(p.r.IntN(n) - n/3) }
	l, h, s, z, k := p.key("l"), p.key("h"), p.key("s"), p.key("z"), p.key("k")
	any := []string{l, h, s, z, k}[p.r.IntN(5)]
	all := [][]string{
		cat([]string{"RPUSH", l}, p.values(40)...), cat([]string{"LPUSH", l}, p.values(40)...),
		{"LSET", l, i(60), p.value()}, {"LINSERT", l, "BEFORE", strconv.Itoa(p.r.IntN(600)), p.value()},
		{"LREM", l, i(4), p.value()}, {"LTRIM", l, i(60), i(90)}, {"LMPOP", "1", l, "LEFT", "COUNT", i(20)},
		{"LMOVE", l, p.key("l"), "LEFT", "RIGHT"}, {"RPOP", l}, {"LRANGE", l, i(60), i(60)}, {"LPOS", l, p.value()},
		cat([]string{"HSET", h}, p.pairs(40, p.value)...), {"HSET", h, p.value(), p.value()},
		{"HDEL", h, p.value()}, {"HINCRBY", h, i(600), "7"}, {"HRANDFIELD", h, i(200)}, {"HSCAN", h, "0"},
		cat([]string{"SADD", s}, p.values(200)...), cat([]string{"SREM", s}, p.values(20)...), {"SPOP", s, i(100)},
		{"SUNIONSTORE", s, p.key("s"), p.key("s")}, {"SDIFFSTORE", s, p.key("s"), p.key("s")}, {"SMOVE", s, p.key("s"), i(600)},
		{"SINTERSTORE", s, p.key("s"), p.key("s")}, {"SRANDMEMBER", s, i(100)},
		cat([]string{"ZADD", z}, p.pairs(60, p.score)...), {"ZADD", z, p.score(), p.value()},
		{"ZREM", z, p.value()}, {"ZPOPMIN", z, i(40)}, {"ZREMRANGEBYRANK", z, i(100), i(100)}, {"ZINCRBY", z, p.score(), i(600)},
		{"ZUNIONSTORE", z, "2", p.key("z"), p.key("s")}, {"ZRANGESTORE", z, p.key("z"), i(60), i(200)}, {"ZRANGE", z, i(100), i(100), "REV"},
		{"SET", k, p.value()}, {"SET", k, p.value(), "PX", strconv.Itoa(1 + p.r.IntN(5000))}, {"APPEND", k, p.value()},
		{"SETRANGE", k, strconv.Itoa(p.r.IntN(9000)), p.value()}, {"INCRBY", k, i(99)}, {"GETDEL", k},
		{"SORT", l, "ALPHA", "STORE", p.key("l")}, {"SORT", s, "ALPHA", "BY", "k*", "GET", "k*", "GET", "h*->" + i(99)}, {"DUMP", any},
		{"DEBUG", "RELOAD"}, {"DEL", any}, {"UNLINK", any}, {"PEXPIRE", any, strconv.Itoa(1 + p.r.IntN(9000))}, {"PERSIST", any},
		{"COPY", any, any[:1] + "copy", "REPLACE"}, {"RENAME", any, any[:1] + strconv.Itoa(p.r.IntN(40))}, {"MOVE", any, "1"},
		{"SWAPDB", "0", "1"}, {"OBJECT", "ENCODING", any}, {"MEMORY", "USAGE", any}, {"RANDOMKEY"}, {"SCAN", "0", "COUNT", "100"},
		{"+"}, {"@", "list-max-listpack-size", []string{"-1", "-2", "-5", "1", "3", "128"}[p.r.IntN(6)]},
		{"@", "hash-max-listpack-entries", i(200)}, {"@", "hash-max-listpack-value", strconv.Itoa(p.r.IntN(200))},
		{"@", "set-max-intset-entries", strconv.Itoa(p.r.IntN(600))}, {"@", "zset-max-listpack-entries", strconv.Itoa(p.r.IntN(200))},
		{"@", "zset-max-listpack-value", strconv.Itoa(p.r.IntN(200))},
	}
	return all[p.r.IntN(len(all))]
}

// check compares what the commands tell of each value.
func (p *pressure) check() {
	p.t.Helper()
	limit := p.s.config.maxMemory
	p.s.config.maxMemory = 0 // so that nothing is evicted now
	defer func() { p.s.config.maxMemory = limit }()
	for _, db := range []string{"0", "1"} {
		p.expect("+OK", "SELECT", db)
		var names []string
		p.s.space.dbs[db[0]-'0'].keys.Each(func(it store.Item) { names = append(names, string(it.Key())) })
		for _, name := range names {
			p.checkKey(name)
		}
	}
	p.expect("+OK", "SELECT", "0")
}

func (p *pressure) checkKey(name string) {
	var length string
	var elements []string
	switch strings.TrimPrefix(p.do("a", "TYPE", name), "+") {
	case "none": // expired
		return
	case "string":
		value := p.bulks("GET", name)
		length, elements = p.do("a", "STRLEN", name), make([]string, len(value[0]))
	case "list":
		length, elements = p.do("a", "LLEN", name), p.bulks("LRANGE", name, "0", "-1")
		if back := p.bulks("LINDEX", name, "-1"); len(elements) == 0 || back[0] != elements[len(elements)-1] {
			p.t.Fatalf("%s: the last element is %.50q", name, back)
		}
	case "hash":
		length, elements = p.do("a", "HLEN", name), p.bulks("HKEYS", name)
		if n := len(p.bulks("HGETALL", name)); n != 2*len(elements) {
			p.t.Fatalf("%s: %d fields, HGETALL has %d", name, len(elements), n)
		}
		p.checkMembers(name, elements, "HEXISTS")
	case "set":
		length, elements = p.do("a", "SCARD", name), p.bulks("SMEMBERS", name)
		p.checkMembers(name, elements, "SISMEMBER")
	case "zset":
		length, elements = p.do("a", "ZCARD", name), p.bulks("ZRANGE", name, "0", "-1")
		for i, m := range elements {
			if i%17 == 0 {
				p.expect(fmt.Sprint(":", i), "ZRANK", name, m)
			}
		}
		if n := len(p.bulks("ZRANGEBYSCORE", name, "-inf", "+inf")); n != len(elements) {
			p.t.Fatalf("%s: %d members by rank, %d by score", name, len(elements), n)
		}
	}
	if length != fmt.Sprint(":", len(elements)) {
		p.t.Fatalf("%s: length %s, %d elements", name, length, len(elements))
	}
}

// checkMembers checks that elements differ, and that the server finds some.
func (p *pressure) checkMembers(name string, elements []string, command string) {
	seen := make(map[string]bool, len(elements))
	for i, m := range elements {
		if seen[m] {
			p.t.Fatalf("%s has %.50q twice", name, m)
		}
		seen[m] = true
		if i%17 == 0 {
			p.expect(":1", command, name, m)
		}
	}
}

// bulks runs a command, and returns the strings of its reply.
func (p *pressure) bulks(args ...string) (all []string) {
	f := p.connect("a")
	f.out = nil
	p.send(f, resp.AppendRequest(nil, args...))
	out := string(f.out)
	f.out = nil
	for out != "" {
		line, rest, _ := strings.Cut(out, "\r\n")
		out = rest
		if line[0] == '$' && line != "$-1" {
			n, _ := strconv.Atoi(line[1:])
			all, out = append(all, out[:n]), out[n+2:]
		}
	}
	return all
}
