package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// cacheMode is how a client of TestTrackedCaches tracks keys.
type cacheMode struct {
	options string
	proto   string
	to      string // protocol of the connection that gets the messages; "": the client's own
}

var cacheModes = []cacheMode{
	{"", "3", ""}, {"NOLOOP", "3", ""}, {"OPTIN", "3", ""}, {"OPTOUT", "3", ""}, {"OPTIN NOLOOP", "3", ""},
	{"BCAST", "3", ""}, {"BCAST NOLOOP", "3", ""}, {"BCAST PREFIX k1 PREFIX k2", "3", ""},
	{"", "2", "2"}, {"", "3", "2"}, {"", "2", "3"}, {"OPTOUT NOLOOP", "2", "2"},
	{"BCAST PREFIX k", "2", "2"}, {"BCAST NOLOOP PREFIX k0 PREFIX k3", "2", "3"},
}

// cache is a client that keeps the values it has read, until it is told otherwise.
type cache struct {
	b        *bench
	name, to string
	mode     cacheMode
	values   map[string]string // by key, the replies of DUMP
	reading  []string          // keys whose values the reply has
	own      []string          // keys that the request may change
	caching  bool              // CLIENT CACHING was sent
}

func newCache(b *bench, name string, mode cacheMode) *cache {
	c := &cache{b: b, name: name, to: name, mode: mode, values: map[string]string{}}
	options := mode.options
	b.do(name, "HELLO", mode.proto)
	if mode.to != "" {
		c.to = name + "-to"
		b.do(c.to, "HELLO", mode.to)
		id := b.connect(c.to).client.id
		b.do(c.to, "SUBSCRIBE", "__redis__:invalidate")
		options += " REDIRECT " + strconv.FormatInt(id, 10)
	}
	if out := b.do(name, append([]string{"CLIENT", "TRACKING", "ON"}, strings.Fields(options)...)...); out != "+OK" {
		b.t.Fatalf("CLIENT TRACKING ON %s: %s", options, out)
	}
	return c
}

func (c *cache) has(option string) bool {
	return slices.Contains(strings.Fields(c.mode.options), option)
}

// mayKeep reports whether the server will tell of changes of a key that the client reads now.
func (c *cache) mayKeep(key string) bool {
	switch {
	case c.has("OPTIN"):
		return c.caching
	case c.has("OPTOUT"):
		return !c.caching
	case c.has("PREFIX"):
		words := strings.Fields(c.mode.options)
		for i, word := range words {
			if word == "PREFIX" && strings.HasPrefix(key, words[i+1]) {
				return true
			}
		}
		return false
	}
	return true
}

// send sends a request without looking at the reply.
func (c *cache) send(request ...string) {
	c.b.send(c.b.connect(c.name), resp.AppendRequest(nil, request...))
}

// read reads keys, and keeps their values when the reply comes.
func (c *cache) read(r *rand.Rand, keys ...string) {
	if (c.has("OPTIN") || c.has("OPTOUT")) && r.IntN(2) == 0 {
		c.caching = true
		word := "NO"
		if c.has("OPTIN") {
			word = "YES"
		}
		c.send("CLIENT", "CACHING", word)
		c.receive()
	}
	if len(keys) > 1 {
		c.send("MULTI")
		c.receive()
	}
	for _, key := range keys {
		c.send("DUMP", key)
		if len(keys) > 1 {
			c.receive()
		}
	}
	c.reading = keys
	if len(keys) > 1 {
		if r.IntN(2) == 0 { // one of the keys changes in the same transaction
			key := keys[r.IntN(len(keys))]
			c.send("SET", key, strconv.Itoa(r.IntN(1000)))
			c.own = append(c.own, key)
			c.receive()
		}
		c.send("EXEC")
	}
}

// receive takes what the connection got. Replies come before the messages of the same request.
func (c *cache) receive() {
	out := c.b.connect(c.name).out
	c.b.connect(c.name).out = nil
	for _, v := range parseAll(c.b.t, out) {
		switch {
		case v.Kind == resp.Push:
			c.told(v)
		case v.Kind == resp.Simple && (string(v.Str) == "QUEUED" || string(v.Str) == "OK"):
		default:
			c.replied(v)
		}
	}
	if c.to != c.name {
		out := c.b.connect(c.to).out
		c.b.connect(c.to).out = nil
		for _, v := range parseAll(c.b.t, out) {
			c.told(v)
		}
	}
	if len(c.reading) == 0 && c.b.connect(c.name).client.wait == nil {
		if c.has("NOLOOP") {
			for _, key := range c.own {
				delete(c.values, key)
			}
		}
		c.own = nil
	}
}

func parseAll(t testing.TB, out []byte) (all []resp.Value) {
	for len(out) > 0 {
		v, n, _, err := resp.ReadValue(out)
		if err != nil || n == 0 {
			t.Fatalf("%q: %v", out, err)
		}
		all, out = append(all, v), out[n:]
	}
	return all
}

func (c *cache) replied(v resp.Value) {
	if len(c.reading) == 0 {
		return
	}
	replies := []resp.Value{v}
	if len(c.reading) > 1 {
		if replies = v.Elems; len(replies) < len(c.reading) {
			c.b.t.Fatalf("%s: EXEC: %q", c.name, resp.AppendValue(nil, v))
		}
	}
	for i, key := range c.reading {
		if c.mayKeep(key) {
			c.values[key] = string(replies[i].Str)
		}
	}
	c.reading, c.caching = nil, false
}

// told takes a message about keys.
func (c *cache) told(v resp.Value) {
	if v.Kind != resp.Push && (len(v.Elems) != 3 || string(v.Elems[0].Str) != "message") {
		c.b.t.Fatalf("%s got %q, which is no message", c.name, resp.AppendValue(nil, v))
	}
	keys := v.Elems[len(v.Elems)-1]
	if keys.Elems == nil {
		clear(c.values)
	}
	for _, key := range keys.Elems {
		delete(c.values, string(key.Str))
	}
}

// randomChange returns a request that may change keys, which it names.
func randomChange(r *rand.Rand) (request, keys []string) {
	key, other := trackedKey(r), trackedKey(r)
	number := strconv.Itoa(r.IntN(100))
	requests := [][]string{
		{"SET", key, number}, {"SET", key, number, "PX", number}, {"APPEND", key, number}, {"INCR", key}, {"DEL", key},
		{"RENAME", key, other}, {"RENAMENX", key, other}, {"COPY", key, other, "REPLACE"}, {"COPY", key, other, "DB", "1", "REPLACE"},
		{"MOVE", key, "1"}, {"PEXPIRE", key, number}, {"PERSIST", key}, {"GETEX", key, "PX", number}, {"GETDEL", key},
		{"MSET", key, number, other, number}, {"SETBIT", key, number, "1"}, {"HSET", key, number, number}, {"HDEL", key, number},
		{"SADD", key, number}, {"SPOP", key}, {"SMOVE", key, other, number}, {"SUNIONSTORE", key, other, key}, {"ZADD", key, number, number},
		{"ZPOPMIN", key}, {"ZRANGESTORE", key, other, "0", "-1"}, {"RPUSH", key, number}, {"LPOP", key}, {"LMOVE", key, other, "LEFT", "LEFT"},
		{"LTRIM", key, "1", "-1"}, {"XADD", key, "*", "f", number}, {"XTRIM", key, "MAXLEN", "1"}, {"PFADD", key, number}, {"PFMERGE", key, other},
		{"SORT", key, "ALPHA", "STORE", other}, {"BITOP", "NOT", key, other}, {"GEOADD", key, "1", "1", number}, {"UNLINK", key, other},
	}
	return requests[r.IntN(len(requests))], []string{key, other}
}

func trackedKey(r *rand.Rand) string { return "k" + strconv.Itoa(r.IntN(8)) }

// cachesWorld is the caches, and a client that shows what the keys are.
type cachesWorld struct {
	b      *bench
	caches []*cache
	log    []string
}

func (w *cachesWorld) step(r *rand.Rand) {
	b := w.b
	c := w.caches[r.IntN(len(w.caches))]
	if b.connect(c.name).client.wait != nil {
		c = nil
	}
	note := func(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }
	switch x := r.IntN(100); {
	case x < 40 && c != nil:
		keys := []string{trackedKey(r)}
		for r.IntN(4) == 0 {
			keys = append(keys, trackedKey(r))
		}
		note("%s reads %q", c.name, keys)
		c.read(r, keys...)
	case x < 60 && c != nil:
		request, keys := randomChange(r)
		note("%s %q", c.name, request)
		c.own = append(c.own, keys...)
		c.send(request...)
	case x < 90:
		request, _ := randomChange(r)
		note("other %q", request)
		if b.do("db", "SELECT", strconv.Itoa(max(0, r.IntN(4)-2))); r.IntN(3) == 0 {
			b.do("other", "MULTI")
			b.do("other", request...)
			request, _ = randomChange(r)
			note("other too %q", request)
			b.do("other", request...)
			b.do("other", "EXEC")
		} else {
			b.do(oneOf(r, "other", "db"), request...)
		}
	case x < 93:
		note("10 ms")
		b.advance(10 * time.Millisecond)
		b.s.tick()
		b.s.space.expire(1000)
	case x < 95 && c != nil:
		from, to := trackedKey(r), trackedKey(r)
		note("%s BLMOVE %s %s", c.name, from, to)
		c.own = append(c.own, from, to)
		c.send("BLMOVE", from, to, "LEFT", "RIGHT", "0.1")
	case x < 97:
		request := strings.Fields(oneOf(r, "FLUSHALL", "FLUSHDB ASYNC", "SWAPDB 0 1"))
		note("%q", request)
		b.do("other", request...)
	case x < 98:
		request := strings.Fields("CONFIG SET tracking-table-max-keys " + oneOf(r, "0", "3", "5"))
		note("%q", request)
		b.do("other", request...)
	case x < 99:
		limit := oneOf(r, "0", strconv.FormatInt(b.s.usedMemory()-500, 10))
		note("maxmemory %s", limit)
		b.do("other", "CONFIG", "SET", "maxmemory", limit, "maxmemory-policy", "allkeys-random")
		b.do("other", "GET", "x")
		b.do("other", "CONFIG", "SET", "maxmemory", "0")
	}
	b.endTurn()
	for _, c := range w.caches {
		c.receive()
	}
}

func oneOf(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

// check compares the caches with the keys.
func (w *cachesWorld) check() error {
	for _, c := range w.caches {
		for key, value := range c.values {
			w.b.send(w.b.connect("check"), resp.AppendRequest(nil, "DUMP", key))
			v := parseAll(w.b.t, w.b.connect("check").out)[0]
			w.b.connect("check").out = nil
			if string(v.Str) != value {
				return fmt.Errorf("%s (%s) has %s as %q, but it is %q", c.name, c.mode.options, key, value, v.Str)
			}
		}
	}
	return nil
}

// TestTrackedCaches has clients of all modes that read and change keys at random. What they keep
// must be what the server has.
func TestTrackedCaches(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	steps := 20_000
	if testing.Short() {
		steps = 3000
	}
	b := newBench(t, &Server{})
	w := &cachesWorld{b: b}
	for i, mode := range cacheModes {
		w.caches = append(w.caches, newCache(b, "c"+strconv.Itoa(i), mode))
	}
	kept := make([]int, len(w.caches))
	for range steps {
		w.step(r)
		if err := w.check(); err != nil {
			t.Fatalf("seed %d: %v\nafter\n%s", seed, err, strings.Join(w.log[max(0, len(w.log)-20):], "\n"))
		}
		for i, c := range w.caches {
			kept[i] += len(c.values)
		}
		w.log = w.log[max(0, len(w.log)-50):]
	}
	for i, n := range kept {
		if n == 0 {
			t.Errorf("%+v never kept a key", w.caches[i].mode)
		}
	}
}
