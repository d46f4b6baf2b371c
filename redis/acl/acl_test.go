package acl_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/acl"
)

// The categories and commands of these tests.
var categories = []string{"read", "write", "string", "pubsub", "admin", "fast", "slow"}

const (
	read = 1 << iota
	write
	str
	pubsub
	admin
	fast
	slow
)

var commands = []struct {
	name string
	cats uint32
}{
	{"get", read | str | fast}, {"set", write | str | slow}, {"mget", read | str | fast}, {"del", write | slow},
	{"publish", pubsub | fast}, {"subscribe", pubsub | slow}, {"psubscribe", pubsub | slow}, {"select", fast}, {"auth", fast},
	{"config", slow}, {"config|get", admin | slow}, {"config|set", admin | slow}, {"config|help", slow},
	{"object", slow}, {"object|freq", read | fast}, {"object|help", slow},
	{"ping", fast}, {"debug", admin | slow}, {"keys", read | slow},
}

var ids = make(map[string]int)

// prefix matches a pattern that may end with a star.
func prefix(pattern string, name []byte) bool {
	if before, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(string(name), before)
	}
	return pattern == string(name)
}

func newUsers() *acl.Users {
	t := acl.NewTable(categories, prefix)
	for _, c := range commands {
		ids[c.name] = t.Add(c.name, c.cats)
	}
	return acl.NewUsers(t)
}

// request makes a request of words: a command, or its subcommand, and arguments; r:, w: and
// rw: stand before keys, c: and p: before channels and patterns of them.
func request(words string) *acl.Request {
	parts := strings.Fields(words)
	r := &acl.Request{Command: ids[parts[0]], Free: parts[0] == "auth"}
	for i, w := range parts {
		kind, rest, ok := strings.Cut(w, ":")
		if !ok {
			rest = w
		}
		r.Args = append(r.Args, []byte(rest))
		switch {
		case !ok:
		case kind == "c" || kind == "p":
			r.Channels = append(r.Channels, acl.Ref{At: i, Pattern: kind == "p"})
		default:
			access := map[string]acl.Access{"r": acl.Read, "w": acl.Write, "rw": acl.Read | acl.Write, "any": 0}[kind]
			r.Keys = append(r.Keys, acl.Ref{At: i, Access: access})
		}
	}
	if len(r.Args) > 1 {
		r.First = r.Args[1]
	}
	return r
}

// set changes a user and returns it.
func set(t *testing.T, us *acl.Users, name string, rules ...string) *acl.User {
	t.Helper()
	if _, err := us.Set(name, rules); err != nil {
		t.Fatal(err)
	}
	return us.Find([]byte(name))
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ rules, request, want string }{
		{"", "get r:k", "command"},
		{"+get", "get r:k", "key"},
		{"+get ~k", "get r:k", ""},
		{"+get ~k*", "get r:kk", ""},
		{"+get ~k", "get r:x", "key 1"},
		{"+get %R~k", "get r:k", ""},
		{"+set %R~k", "set w:k v", "key 1"},
		{"+set %R~k %W~k", "set rw:k v", ""},
		{"+set %R~k* %W~k", "set rw:k v", "key 1"}, // no pattern has both
		{"+del %W~k", "del any:k", ""},
		{"+mget ~a ~c", "mget r:a r:b r:c", "key 2"},
		{"+@read ~*", "get r:k", ""},
		{"+@read ~*", "set w:k v", "command"},
		{"+@all -@write ~*", "del w:k", "command"},
		{"+@all -@write +del ~*", "del w:k", ""},
		{"+config", "config|get x", ""},
		{"+config -config|set", "config|set x", "command"},
		{"+config|get", "config|get x", ""},
		{"+config|get", "config|set x", "command"},
		{"+@slow", "object|freq r:k", "key 1"}, // a container brings its subcommands
		{"+@fast", "object|freq any:k", "key 1"},
		{"+@fast", "object|help", "command"},
		{"+select|0", "select 0", ""},
		{"+select|0", "select 1", "command"},
		{"+select|0 -select", "select 0", "command"},
		{"+select|0 -@fast", "select 0", "command"},
		{"+debug|Object", "debug oBJECT", ""},
		{"", "auth u p", ""},
		{"+@pubsub", "publish c:a m", "channel 1"},
		{"+@pubsub &a*", "publish c:ab m", ""},
		{"+@pubsub &a*", "psubscribe p:ab", "channel 1"}, // a pattern must be the same
		{"+@pubsub &a* &b", "psubscribe p:a* p:b p:c", "channel 3"},
		{"+@pubsub &*", "psubscribe p:*", ""},
		{"(+get ~a) (+set ~b)", "get r:a", ""},
		{"(+get ~a) (+set ~b)", "get r:b", "key 1"},
		{"(+get ~a) (+set ~b)", "keys", "command"},
		{"+mget ~key (+mget ~key ~other)", "mget r:other r:some", "key 2"},
		{"(+get ~a) clearselectors", "get r:a", "command"},
		{"+@all ~* &* reset", "get r:a", "command"},
		{"allcommands allkeys allchannels", "psubscribe p:*", ""},
		{"+@all ~* &* nocommands", "get r:a", "command"},
		{"+@all ~* resetkeys", "get r:a", "key 1"},
	} {
		us := newUsers()
		why, at := set(t, us, "u", strings.Fields(c.rules)...).Check(request(c.request))
		got := why.String()
		if why == acl.DeniedKey || why == acl.DeniedChannel {
			got = fmt.Sprint(got, " ", at)
		}
		if got != c.want && c.want+" 1" != got {
			t.Errorf("%s: %s: %q, want %q", c.rules, c.request, got, c.want)
		}
	}
}

func TestWrongRules(t *testing.T) {
	for _, c := range []struct{ rules, want string }{
		{"+nix", "Unknown command or category name in ACL"},
		{"+@nix", "Unknown command or category name in ACL"},
		{"-config|nix", "Unknown command or category name in ACL"},
		{"+config|nix", "Unknown command or category name in ACL"},
		{"-select|0", "Unknown command or category name in ACL"},
		{"+get|a|b", "Unknown command or category name in ACL"},
		{"+config|get|a", "Allowing first-arg of a subcommand is not supported"},
		{"+select|", "Syntax error"},
		{"+select|\v", "Syntax error"},
		{"nix", "Syntax error"},
		{")", "Syntax error"},
		{"%~k", "Syntax error"},
		{"%", "Syntax error"},
		{"%RR~k", "Syntax error"},
		{"%X~k", "Syntax error"},
		{"~* ~k", "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"},
		{"&* &k", "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"},
		{"<nix", "The password you are trying to remove from the user does not exist"},
		{"#12", "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"},
		{"#" + strings.Repeat("A", 64), "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"},
		{"#" + strings.Repeat("g", 64), "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"},
		{"(nix)", "Syntax error"},
	} {
		us := newUsers()
		rules := strings.Fields(c.rules)
		_, err := us.Set("u", append([]string{"on"}, rules...))
		want := "Error in ACL SETUSER modifier '" + rules[len(rules)-1] + "': " + c.want
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", c.rules, err, want)
		}
		if us.Find([]byte("u")) != nil {
			t.Errorf("%s: the user was made by half", c.rules)
		}
	}
	us := newUsers()
	if _, err := us.Set("u", []string{"on", "(+get"}); err == nil || err.Error() != "Unmatched parenthesis in acl selector starting at '(+get'." {
		t.Error(err)
	}
	if _, err := us.Set("a b", nil); err == nil || err.Error() != "Usernames can't contain spaces or null characters" {
		t.Error(err)
	}
}

func TestLogin(t *testing.T) {
	us := newUsers()
	set(t, us, "u", "on", ">a", ">b", "#"+"2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6") // c
	set(t, us, "off", ">a")
	set(t, us, "open", "on", "nopass")
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"u", "a", true}, {"u", "b", true}, {"u", "c", true}, {"u", "d", false}, {"u", "", false},
		{"off", "a", false}, {"open", "x", true}, {"nobody", "a", false}, {"default", "x", true},
	} {
		if got := us.Login([]byte(c.name), []byte(c.password)); (got != nil) != c.want {
			t.Errorf("%s %q: %v, want %v", c.name, c.password, got != nil, c.want)
		}
	}
	set(t, us, "u", "<a", "!2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6")
	for p, want := range map[string]bool{"a": false, "b": true, "c": false} {
		if got := us.Login([]byte("u"), []byte(p)); (got != nil) != want {
			t.Errorf("%q: %v, want %v", p, got != nil, want)
		}
	}
	us.SetPassword("secret")
	if us.Default.Open() || us.Login([]byte("default"), []byte("x")) != nil || us.Login([]byte("default"), []byte("secret")) != us.Default {
		t.Error("SetPassword has not replaced the password")
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ rules, want string }{
		{"", "user u off resetchannels -@all"},
		{"on >a ~k* &c +get", "user u on #ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb ~k* resetchannels &c -@all +get"},
		{"allcommands allkeys allchannels nopass", "user u off nopass ~* &* +@all"},
		{"reset", "user u off sanitize-payload resetchannels -@all"},
		{"%R~a %W~a %RW~b %r~c", "user u off ~a ~b %R~c resetchannels -@all"},
		{"+@all -config|set", "user u off resetchannels +@all -config|set"},
		{"+@all -config +config|set", "user u off resetchannels +@all -config +config|set"},
		{"+select|0 +select|1", "user u off resetchannels -@all +select|0 +select|1"},
		{"(+get ~a) ( +set %W~b )", "user u off resetchannels -@all (~a resetchannels -@all +get) (%W~b resetchannels -@all +set)"},
		{`("~a\"b'c)" '~)' ~x\y)`, `user u off resetchannels -@all ("~a\"b'c)" "~)" ~x\y resetchannels -@all)`},
		{"+@all -@string", "user u off resetchannels +@all -@string"},
		{"+@pubsub +@read", "user u off resetchannels -@all +@read +@pubsub"},
		{"%R~* %W~* ~a", "user u off %RW~* ~a resetchannels -@all"},
	} {
		us := newUsers()
		if got := set(t, us, "u", strings.Fields(c.rules)...).Line(); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.rules, got, c.want)
		}
	}
}

// words makes random rules. Most have a meaning.
func words(r *rand.Rand) []string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	any := func() string { return commands[r.IntN(len(commands))].name }
	var one func(inside bool) string
	one = func(inside bool) string {
		switch n := r.IntN(24); {
		case n < 6:
			return pick("+", "-") + any()
		case n < 10:
			return pick("+@", "-@") + pick(append(categories, "all")...)
		case n < 14:
			return pick("~", "%R~", "%W~", "%RW~") + pick("a", "b", "a*", "*", "ab*", "")
		case n < 16:
			return "&" + pick("a", "b", "a*", "*")
		case n < 17:
			return "+" + any() + "|" + pick("x", "y", "get")
		case n < 18 || inside:
			return pick("resetkeys", "resetchannels", "allkeys", "allchannels", "allcommands", "nocommands")
		case n < 20:
			return pick("on", "off", "nopass", "resetpass", "reset", "clearselectors", "sanitize-payload", "skip-sanitize-payload")
		case n < 22:
			return pick(">", "<") + pick("a", "b", "c")
		}
		var inner []string
		for range r.IntN(5) {
			inner = append(inner, one(true))
		}
		return "(" + strings.Join(inner, " ") + ")"
	}
	var list []string
	for range r.IntN(10) {
		list = append(list, one(false))
	}
	return list
}

// random changes a user by random rules that have a meaning.
func random(us *acl.Users, name string, r *rand.Rand) *acl.User {
	us.Set(name, nil)
	for _, w := range words(r) {
		us.Set(name, []string{w}) // a wrong one changes nothing
	}
	return us.Find([]byte(name))
}

var requests = []string{
	"get r:a", "get r:ab", "get r:c", "set w:a v", "set rw:b v", "mget r:a r:b", "del any:a", "publish c:a m", "subscribe c:ab c:b",
	"psubscribe p:a*", "psubscribe p:a", "select x", "select y", "config|get z", "config|set z", "config|help", "object|freq any:a", "object|help",
	"ping", "debug x", "keys", "auth a b",
}

// A user's line makes the same user again: it is described the same, and may do the same.
func TestLinesAreReadBack(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		us := newUsers()
		us.AllChannels = r.IntN(2) == 0
		u := random(us, "u", r)
		again := newUsers()
		if err := again.Load("f", us.Format()); err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, us.Format())
		}
		v := again.Find([]byte("u"))
		if u.Line() != v.Line() {
			t.Fatalf("seed %d:\n%s became\n%s", seed, u.Line(), v.Line())
		}
		for _, words := range requests {
			a, i := u.Check(request(words))
			b, j := v.Check(request(words))
			if a != b || i != j {
				t.Fatalf("seed %d: %s: %v %d, and %v %d after %s", seed, words, a, i, b, j, u.Line())
			}
		}
		if u.Unlimited() != v.Unlimited() {
			t.Fatalf("seed %d: unlimited is %v, then %v: %s", seed, u.Unlimited(), v.Unlimited(), u.Line())
		}
	}
}

// A further rule that allows something takes nothing away; +@all ~* &* allows everything.
func TestMoreRulesAllowMore(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		us := newUsers()
		u := random(us, "u", r)
		before := make([]acl.Denial, len(requests))
		for i, words := range requests {
			before[i], _ = u.Check(request(words))
		}
		more := []string{"+@read", "+get", "+config", "%R~a*", "&a", "(+@all ~c)", "allkeys", "allchannels", "+@all"}
		rule := more[r.IntN(len(more))]
		us.Set("u", []string{rule})
		for i, words := range requests {
			if after, _ := u.Check(request(words)); before[i] == acl.Allowed && after != acl.Allowed {
				t.Fatalf("seed %d: %s is denied after %s: %s", seed, words, rule, u.Line())
			}
		}
		set(t, us, "u", "+@all", "allkeys", "allchannels")
		if !u.Unlimited() {
			t.Fatalf("seed %d: not unlimited: %s", seed, u.Line())
		}
		set(t, us, "u", "-get", "clearselectors")
		if why, _ := u.Check(request("get r:a")); why != acl.DeniedCommand {
			t.Fatalf("seed %d: get is allowed: %s", seed, u.Line())
		}
	}
}

func TestLoad(t *testing.T) {
	us := newUsers()
	kept := us.Default
	if err := us.Load("f", "\n  user a on nopass (+get  ~k) \r\n\nuser b\tc\n"); err == nil ||
		err.Error() != "'f:4: username 'b\tc' contains invalid characters. WARNING: ACL errors detected, no change to the previously active ACL rules was performed" {
		t.Error(err)
	}
	if us.Find([]byte("a")) != nil || us.Len() != 1 {
		t.Error("a wrong file has changed the users")
	}
	const wrong = "user a +nix ~* ~k ~l\nnix\nuser a\nuser x (+get\nuser"
	const want = "f:1: Error in applying operation '+nix': Unknown command or category name in ACL. " +
		"f:1: Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns. " +
		"f:2 should start with user keyword followed by the username. WARNING: Duplicate user 'a' found on line 3. " +
		"f:4: Unmatched parenthesis in selector definition.f:5 should start with user keyword followed by the username. " +
		"WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	if err := us.Load("f", wrong); err == nil || err.Error() != want {
		t.Errorf("%v, want\n%s", err, want)
	}
	set(t, us, "old")
	set(t, us, "default", "-@all")
	if err := us.Load("f", "user a on nopass (+get  ~k) \r\n\n"); err != nil {
		t.Error(err)
	}
	if got := us.Format(); got != "user a on nopass resetchannels -@all (~k resetchannels -@all +get)\nuser default on nopass ~* &* +@all\n" {
		t.Error(got)
	}
	if us.Default != kept || us.Find([]byte("default")) != kept || !kept.Unlimited() {
		t.Error("the default user is another one")
	}
}

func TestDefine(t *testing.T) {
	us := newUsers()
	for _, c := range []struct{ line, want string }{
		{"a on (+get ~k )", ""},
		{"a on", `user "a": Duplicate user found. A user can only be defined once in config files`},
		{"default on nopass +get", ""},
		{"default", `user "default": Duplicate user found. A user can only be defined once in config files`},
		{"b +nix", `user "b": rule '+nix': Unknown command or category name in ACL`},
		{"b <pw", `user "b": rule '<...': The password you are trying to remove from the user does not exist`},
		{"b (+get", `user "b": Unmatched parenthesis in acl selector starting at '(+get'.`},
	} {
		args := strings.Fields(c.line)
		err := us.Define(args[0], args[1:])
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%s: %v, want %s", c.line, err, c.want)
		}
	}
	if got := us.Format(); got != "user a on resetchannels -@all (~k resetchannels -@all +get)\nuser default on nopass sanitize-payload resetchannels -@all +get\n" {
		t.Error(got)
	}
}

func TestSubscriptions(t *testing.T) {
	us := newUsers()
	u := set(t, us, "u", "&a", "&b*", "(&c)")
	for _, c := range []struct {
		rules string
		want  bool
	}{
		{"&d", false}, {"resetchannels &a &b* &d", false}, {"resetchannels &a", true}, {"clearselectors", true}, {"&x", false}, {"allchannels", false}, {"resetchannels &a &x", true}, {"reset", true},
	} {
		if narrowed, err := us.Set("u", strings.Fields(c.rules)); err != nil || narrowed != c.want {
			t.Errorf("%s: %v %v, want %v: %s", c.rules, narrowed, err, c.want, u.Line())
		}
	}
	set(t, us, "u", "&a", "&b*", "(&c)")
	for name, want := range map[string]bool{"a": true, "bb": true, "c": true, "d": false} {
		if u.Hears([]byte(name), false) != want {
			t.Errorf("channel %s: %v", name, !want)
		}
	}
	for name, want := range map[string]bool{"a": true, "bb": false, "b*": true} {
		if u.Hears([]byte(name), true) != want {
			t.Errorf("pattern %s: %v", name, !want)
		}
	}
}

func TestReadsAll(t *testing.T) {
	us := newUsers()
	for rules, want := range map[string]bool{
		"+get ~a": false, "+get ~a ~*": true, "+get ~a %R~*": true, "+get ~a %W~*": false, "(+get ~a) (+set ~*)": false, "(+get ~a %R~*)": true, "+set ~*": false,
	} {
		set(t, us, "u", "reset")
		u := set(t, us, "u", strings.Fields(rules)...)
		if u.ReadsAll(request("get r:a")) != want {
			t.Errorf("%s: %v", rules, !want)
		}
	}
}

func TestLog(t *testing.T) {
	l := acl.Log{Max: 3}
	add := func(object string, at int64) {
		l.Add(acl.Entry{Why: acl.DeniedKey, Context: "toplevel", Object: object, User: "u", At: at, Client: fmt.Sprint("at ", at)})
	}
	show := func() string {
		var b strings.Builder
		for _, e := range l.Newest(10) {
			fmt.Fprint(&b, e.Object, e.Count, " ")
		}
		return strings.TrimSpace(b.String())
	}
	add("a", 1)
	add("b", 2)
	add("a", 60001)
	if got := show(); got != "a2 b1" || l.Newest(1)[0].Client != "at 60001" {
		t.Error(got)
	}
	add("b", 60003) // too late to be the same
	add("c", 60004)
	if got := show(); got != "c1 b1 a2" {
		t.Error(got)
	}
	add(strings.Repeat("x", 1<<20), 60005)
	if got := len(l.Newest(1)[0].Object); got != acl.MaxObject {
		t.Error(got)
	}
	l.Reset()
	if got := show(); got != "" {
		t.Error(got)
	}
}

// Rules of any kind neither panic nor make a user that cannot be saved.
func FuzzRules(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(strings.Join(words(rand.New(rand.NewPCG(seed, 3))), "\n"))
	}
	f.Add("(\"a b\" '+get')\n%~\n%\n(\n)\n+|\n+a|\n-|\n&\n~\n#\n()")
	f.Fuzz(func(t *testing.T, text string) {
		us := newUsers()
		us.Set("u", nil)
		for _, rule := range strings.Split(text, "\n") {
			us.Set("u", []string{rule})
		}
		us.Set("v", strings.Split(text, "\n"))
		u := us.Find([]byte("u"))
		for _, words := range requests {
			u.Check(request(words))
		}
		line := us.Format()
		again := newUsers()
		if err := again.Load("f", line); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if got := again.Format(); got != line {
			t.Fatalf("%s became\n%s", line, got)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add("user a on nopass ~* +@all\nuser b on (+set %W~w*) (+get %R~r*)")
	f.Add("user a ( on\n\nuser a )")
	f.Fuzz(func(t *testing.T, text string) {
		us := newUsers()
		if err := us.Load("f", text); err != nil {
			if us.Len() != 1 {
				t.Fatal("a wrong file has changed the users")
			}
			return
		}
		line, again := us.Format(), newUsers()
		if err := again.Load("f", line); err != nil || again.Format() != line {
			t.Fatalf("%v\n%s became\n%s", err, line, again.Format())
		}
	})
}

// usual is the rules of a user that is not the simplest.
var usual = strings.Fields("on >password ~app:* %R~shared:* &events:* -@all +@read +@write -keys +config|get (+del ~tmp:*)")

func TestManyUsers(t *testing.T) {
	const n = 10000
	us := newUsers()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		set(t, us, fmt.Sprintf("user:%06d", i), usual...)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (after.HeapAlloc - before.HeapAlloc) / n; each > 2048 {
		t.Errorf("a user takes %d bytes", each)
	} else {
		t.Logf("a user takes %d bytes", each)
	}
	text := us.Format()
	again := newUsers()
	if err := again.Load("f", text); err != nil || again.Format() != text {
		t.Errorf("%d users are not read back: %v", n, err)
	}
	if names := again.Sorted(); len(names) != n+1 || !slices.IsSortedFunc(names, func(a, b *acl.User) int { return strings.Compare(a.Name(), b.Name()) }) {
		t.Errorf("%d users", len(names))
	}
}

func BenchmarkCheck(b *testing.B) {
	us := newUsers()
	us.Set("u", usual)
	u, r := us.Find([]byte("u")), request("get r:shared:1")
	b.ReportAllocs()
	for b.Loop() {
		if why, _ := u.Check(r); why != acl.Allowed {
			b.Fatal(why)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	us := newUsers()
	us.Set("u", usual)
	u := us.Find([]byte("u"))
	for b.Loop() {
		u.Line()
	}
}

func BenchmarkSet(b *testing.B) {
	us := newUsers()
	for b.Loop() {
		us.Set("u", usual)
		us.Delete([]byte("u"))
	}
}

// Very many rules of one kind act as few do, and take no time by the square of their number: this
// test would not end.
func TestManyRules(t *testing.T) {
	const many = 1 << 17
	var rules []string
	for i := range many {
		k := fmt.Sprint(i % (many - 10))
		rules = append(rules, "%R~k"+k, "&c"+k, ">p"+k, "+get|a"+k, "+GET|A"+k)
	}
	us := newUsers()
	u := set(t, us, "u", append(rules, "on", "%W~k7", "-get", "+get|x", "+get|X")...)
	const want = many - 10
	if n := len(u.Passwords()); n != want {
		t.Errorf("%d passwords, want %d", n, want)
	}
	s := u.Selectors()[0]
	if n, m := len(strings.Fields(s.Keys())), len(strings.Fields(s.Channels())); n != want || m != want {
		t.Errorf("%d patterns of keys and %d of channels, want %d", n, m, want)
	}
	if got := strings.Fields(s.Keys()); got[6] != "%R~k6" || got[7] != "~k7" {
		t.Errorf("the patterns are %q", got[:9])
	}
	if got := s.Commands(); got != "-@all +get|x" {
		t.Errorf("the commands are %.200q", got)
	}
	rules = rules[:0]
	for i := range want {
		if i%1000 != 0 {
			rules = append(rules, fmt.Sprint("<p", i))
		}
	}
	set(t, us, "u", append(rules, ">p3", ">p1000", "resetkeys", "~new", "~new", "resetchannels", "&c", "&c")...)
	last := set(t, us, "v", ">p3").Passwords()[0]
	if all := u.Passwords(); len(all) != (want+999)/1000+1 || all[len(all)-1] != last {
		t.Errorf("%d passwords, and the last is not the one that was added", len(all))
	}
	if keys, channels := s.Keys(), u.Selectors()[0].Keys()+u.Selectors()[0].Channels(); keys == "" || channels != "~new&c" {
		t.Errorf("the patterns are %q", channels)
	}
	if rules, _, ok := acl.MergeSelectors(append(append([]string{"on", "(~a"}, strings.Fields(strings.Repeat("~b ", many))...), "~c)")); !ok || len(rules) != 2 {
		t.Errorf("%d rules", len(rules))
	}
}
