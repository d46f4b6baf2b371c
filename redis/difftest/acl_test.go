package difftest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

func init() { normalForms["denials"] = denials }

// denials masks the age and the client of each entry of ACL LOG.
func denials(v resp.Value, _ []string) (resp.Value, error) {
	for i := range v.Elems {
		e := v.Elems[i].Elems
		if len(e) != 14 {
			return v, fmt.Errorf("entry %d has %d parts", i, len(e))
		}
		e[11] = resp.Value{Kind: resp.Simple, Str: []byte{byte(e[11].Kind)}}
		e[13] = resp.Value{Kind: resp.Simple, Str: []byte{byte(e[13].Kind)}}
	}
	return v, nil
}

// both asks both servers.
type both struct {
	t            *testing.T
	theirs, ours func(...string) resp.Value
}

func newBoth(t *testing.T) *both {
	path, reason := findReference()
	if path == "" {
		t.Skip(reason)
	}
	return &both{t, ask(t, startReference(t, path, "")), ask(t, startRondo(t, "", 1, ""))}
}

// same compares the replies, in a normal form.
func (b *both) same(normal string, request ...string) (reply resp.Value) {
	b.t.Helper()
	var text [2][]byte
	for i, ask := range []func(...string) resp.Value{b.theirs, b.ours} {
		reply = ask(request...)
		var err error
		if text[i], err = normalize(normal, resp.AppendValue(nil, reply)); err != nil {
			b.t.Fatalf("%q: %v", request, err)
		}
	}
	if !bytes.Equal(text[0], text[1]) {
		b.t.Errorf("%q: redis-server says\n%q, rondo\n%q", request, text[0], text[1])
	}
	return reply
}

// words are the elements of a reply, sorted.
func words(v resp.Value) (list []string) {
	for _, e := range v.Elems {
		list = append(list, string(e.Str))
	}
	slices.Sort(list)
	return list
}

// newer are commands that come from later versions of Redis.
var newer = []string{"client|no-touch", "client|setinfo"}

// TestCategories compares the categories of all commands. Rules may name those that the
// server does not have, with the same categories.
func TestCategories(t *testing.T) {
	b := newBoth(t)
	names := words(b.ours("COMMAND", "LIST"))
	for _, cat := range words(b.same("sorted", "ACL", "CAT")) {
		var want []string
		for _, name := range words(b.theirs("ACL", "CAT", cat)) {
			if slices.Contains(names, name) {
				want = append(want, name)
			}
		}
		got := slices.DeleteFunc(words(b.ours("ACL", "CAT", cat)), func(name string) bool { return slices.Contains(newer, name) })
		if !slices.Equal(got, want) {
			t.Errorf("@%s has\n%v, want\n%v", cat, got, want)
		}
		if got := words(b.ours("COMMAND", "LIST", "FILTERBY", "ACLCAT", cat)); !slices.Equal(got, words(b.ours("ACL", "CAT", cat))) {
			t.Errorf("COMMAND LIST has other commands in @%s", cat)
		}
		for _, rule := range []string{"+@" + cat, "+@all -@" + cat} {
			b.rules("reset " + rule)
		}
		// Without each of Redis's commands nothing of a category is left.
		empty := []string{"ACL", "SETUSER", "u", "reset", "+@" + cat}
		for _, name := range words(b.theirs("ACL", "CAT", cat)) {
			empty = append(empty, "-"+name)
		}
		for _, name := range newer {
			empty = append(empty, "-"+name)
		}
		if v := b.ours(empty...); v.Kind == resp.Error {
			t.Errorf("@%s: %s", cat, v.Str)
		}
		if got := b.ours("ACL", "GETUSER", "u").Elems[5]; string(got.Str) != "-@all" {
			t.Errorf("@%s has more than in Redis: %s", cat, got.Str)
		}
	}
	for _, name := range words(b.theirs("COMMAND", "LIST")) {
		b.rules("reset +" + name)
		b.rules("reset +@all -" + name)
	}
}

// rules changes a user of both servers, and compares what they say about it.
func (b *both) rules(text string) {
	b.t.Helper()
	b.same("", append([]string{"ACL", "SETUSER", "u"}, strings.Fields(text)...)...)
	theirs, ours := describe(b.theirs("ACL", "GETUSER", "u"), known), describe(b.ours("ACL", "GETUSER", "u"), known)
	if theirs != ours {
		b.t.Errorf("%s:\nredis-server says\n%s, rondo\n%s", text, theirs, ours)
	}
}

// describe returns the reply of ACL GETUSER as text. A function chooses the rules for commands.
// They are sorted, since Redis has their order from a hash table.
func describe(v resp.Value, choose func(rules []string) []string) string {
	var text strings.Builder
	for i, e := range v.Elems {
		switch {
		case e.Elems != nil:
			text.WriteString("[" + describe(e, choose) + "] ")
		case i > 0 && string(v.Elems[i-1].Str) == "commands":
			rules := choose(strings.Fields(string(e.Str)))
			slices.Sort(rules)
			text.WriteString(strings.Join(rules, " ") + " ")
		default:
			text.WriteString(string(e.Str) + " ")
		}
	}
	return text.String()
}

// known returns the rules without those for commands that redis-server does not have.
func known(rules []string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return slices.Contains(newer, rule[1:]) })
}

// asTheirs returns how redis-server describes the commands that rules allow.
func (b *both) asTheirs(rules []string) []string {
	b.t.Helper()
	if reply := b.theirs(append([]string{"ACL", "SETUSER", "w", "reset"}, known(rules)...)...); reply.Kind == resp.Error {
		b.t.Fatalf("redis-server does not take rondo's description %q: %s", rules, reply.Str)
	}
	return strings.Fields(string(b.theirs("ACL", "GETUSER", "w").Elems[5].Str))
}

// tipped reports whether the newer commands may be why two descriptions differ: both servers choose
// the categories that fit a set of commands best, and rondo's have more members.
func tipped(theirs, ours string) bool {
	return slices.ContainsFunc([]string{"@connection", "@slow"}, func(category string) bool {
		return strings.Count(theirs, category) != strings.Count(ours, category)
	})
}

// aclRequests are requests with keys and channels at all places where they may be. A, B and C
// stand for names.
var aclRequests = strings.Split(`get A|set A v|set A v get|set A v ex 5 get|set A get|mset A 1 B 2|mset A 1 B|mget A B C|del A B|exists A B|copy A B|rename A B
append A v|incr A|getdel A|getex A|lcs A B|strlen A|setrange A 0 v|bitop and A B C|bitfield A get u4 0|bitfield A set u4 0 1|bitfield_ro A get u4 0|bitcount A
lpush A x|rpoplpush A B|lmove A B left left|blmove A B left left 1|lmpop 2 A B left|lmpop 3 A B left|blmpop 1 2 A B left|blpop A B 0|lrange A 0 1|linsert A before a b|lpos A x
sadd A x|smove A B x|sinterstore A B C|sinter A B|sintercard 2 A B|sintercard 0 A|sismember A x|smembers A|spop A
zadd A 1 x|zunionstore A 2 B C|zunionstore A 3 B C|zunionstore A x B C|zunion 2 A B|zrangestore A B 0 1|zmpop 2 A B min|bzmpop 1 2 A B min|bzpopmin A B 0|zdiffstore A 1 B|zrank A x|zcard A
hset A f v|hget A f|hexists A f|hrandfield A|hdel A f
xadd A * f v|xread streams A B 0 0|xread count 1 streams A 0|xread streams A|xread streams A B 0|xreadgroup group g c streams A B > >|xgroup create A g 0|xinfo stream A|xclaim A g c 0 1|xautoclaim A g c 0 0|xlen A|xdel A 1
sort A|sort A store B|sort A by x get y store B|sort A limit 0 1 store B store C|sort A store|sort_ro A|geoadd A 1 1 m|georadius A 0 0 1 m store B|georadius A 0 0 1 m storedist B|georadius A 0 0 1 m store B storedist C
georadiusbymember A m 1 m store B|georadius_ro A 0 0 1 m|geosearchstore A B frommember m byradius 1 m|geopos A x|pfadd A x|pfmerge A B C|pfcount A B
object encoding A|object freq A|object help|memory usage A|debug object A|dump A|restore A 0 x|touch A B|unlink A|type A|move A 1|swapdb 0 1|watch A B|expire A 1|ttl A|persist A
publish A m|spublish A m|subscribe A B|psubscribe A B|ssubscribe A B|unsubscribe A|punsubscribe A|sunsubscribe A|pubsub channels|pubsub numsub A
ping|select 0|select 1|auth x|auth x y|hello 3|quit|reset|multi|exec|info|keys *|scan 0|randomkey|flushall|config get x|config set x y|config help|client id|client kill x|client list|acl whoami|acl setuser x|command count|slowlog get|latency reset|dbsize`, "\n")

// TestPermissions compares the answers for random users and requests.
func TestPermissions(t *testing.T) {
	b := newBoth(t)
	seed := randomSeedOr()
	t.Logf("-seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var requests []string
	for _, line := range aclRequests {
		requests = append(requests, strings.Split(line, "|")...)
	}
	all := words(b.theirs("COMMAND", "LIST"))
	cats := append(words(b.theirs("ACL", "CAT")), "all")
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	letters := []string{"a", "b", "ab", "abc", "x", "", "*", "a*"}
	patterns := []string{"a", "b", "a*", "*b", "ab?", "[ab]", "*", "x*", ""}
	var rule func(inside bool) string
	rule = func(inside bool) string {
		switch n := r.IntN(30); {
		case n < 5:
			return pick([]string{"+", "-"}) + pick(all)
		case n < 12:
			return pick([]string{"+@", "+@", "-@"}) + pick(cats)
		case n < 18:
			return pick([]string{"~", "%R~", "%W~", "%RW~", "%r~", "%wR~"}) + pick(patterns)
		case n < 21:
			return "&" + pick(patterns)
		case n < 22:
			return pick([]string{"+select|0", "+debug|object", "+get|a", "+config|get", "-config|set", "+hello|3", "+select|", "+nix", "+@nix", "%~a", "%X~a", "+get|a|b", "+config|get|x", "nix"})
		case n < 24:
			return pick([]string{"resetkeys", "resetchannels", "allkeys", "allchannels", "AllCommands", "nocommands"})
		case n < 26 && !inside:
			return pick([]string{"on", "off", "nopass", "resetpass", "reset", "clearselectors", "sanitize-payload", "skip-sanitize-payload", ">a", "<a", ">b", "#12", "", "(", ")", "(+get"})
		case inside:
			return "+@read"
		}
		list := make([]string, r.IntN(5))
		for i := range list {
			list[i] = rule(true)
		}
		return "(" + strings.Join(list, " ") + ")"
	}
	steps := max(*randomOps/40, 10)
	if testing.Short() {
		steps = 20
	}
	for range steps {
		if t.Failed() {
			return
		}
		if r.IntN(8) == 0 {
			b.same("", "ACL", "DELUSER", "u")
		}
		change := []string{"ACL", "SETUSER", "u"}
		for range r.IntN(8) {
			change = append(change, rule(false))
		}
		b.same("", change...)
		theirs, ours := b.theirs("ACL", "GETUSER", "u"), b.ours("ACL", "GETUSER", "u")
		if want, got := describe(theirs, known), describe(ours, known); got != want && (!tipped(want, got) || describe(ours, b.asTheirs) != want) {
			t.Errorf("%q:\nredis-server says\n%s, rondo\n%s", change, want, got)
		}
		for range 30 {
			request := []string{"ACL", "DRYRUN", "u"}
			for _, w := range strings.Fields(pick(requests)) {
				if len(w) == 1 && 'A' <= w[0] && w[0] <= 'C' {
					w = pick(letters)
				}
				request = append(request, w)
			}
			b.same("", request...)
		}
	}
}
