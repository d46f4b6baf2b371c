package redis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rondo-go/rondo/redis/acl"
	"github.com/rondo-go/rondo/resp"
)

// A command is a row of the command table: the properties that COMMAND reports,
// and the function that runs it. Each family's file has its rows beside its
// functions.
type command struct {
	// name is in lower case. A subcommand's name begins with its container's:
	// "client|id".
	name string
	id   int // in commandTable.rules
	// arity is the number of arguments including the name. If it is negative,
	// -arity is the minimum. A subcommand counts its container's name too.
	arity int
	flags cmdFlags
	keys  []keySpec
	cats  category // those that do not follow from flags
	tips  []string // hints for clients and proxies
	doc   doc
	run   func(c *client, args [][]byte) // args[0] is the name; args are valid during the call
	subs  []*command                     // subcommands of a container

	byName map[string]*command // subs, by their own names
	count
}

// count is the number of runs of a command, and their duration.
type count struct {
	calls    int64
	failed   int64 // of calls: the reply was an error
	rejected int64 // not called: wrong number of arguments, no permission ...
	timed    int64 // of calls: measured in time
	time     time.Duration

	histogram *hdrhistogram.Histogram // of the durations; nil: none
}

// timing reports whether to measure the next call. Reading the clock twice
// costs as much as many commands do, so only the first calls and a sample of
// later ones are measured.
func (n *count) timing() bool { return n.calls < 64 || n.calls%64 == 0 }

// microseconds estimates the total duration of all calls, and their mean.
func (n *count) microseconds() (all int64, one float64) {
	if n.timed == 0 {
		return 0, 0
	}
	one = float64(n.time) / float64(n.timed) / float64(time.Microsecond)
	return int64(one * float64(n.calls)), one
}

// doc is a command's entry in COMMAND DOCS.
type doc struct {
	summary    string
	since      string // version of Redis
	group      string
	complexity string
	deprecated string // the version that deprecated the command, if one did
	instead    string // what replaces it
}

// cmdFlags are a command's properties, in the order COMMAND INFO lists them.
type cmdFlags uint32

const (
	flagWrite cmdFlags = 1 << iota
	flagReadonly
	flagDenyOOM // refused when memory is full
	flagAdmin
	flagPubsub
	flagNoscript
	flagBlocking
	flagLoading
	flagStale
	flagSkipMonitor // the command itself feeds MONITOR
	flagSkipSlowlog
	flagFast
	flagNoAuth // allowed before AUTH
	flagNoKeys // may have no keys
	flagNoMulti
	flagMovableKeys // other keys than those of COMMAND's first, last and step
	flagAllowBusy

	// Not listed.
	flagInMulti      // runs within a transaction instead of being queued
	flagInSubscribed // allowed while subscribed with RESP2
	flagProtected    // may be refused to clients from other hosts
	flagBrief        // takes no longer than to copy its arguments and its reply
	flagScript       // runs a script, whose own flags may replace the command's
)

var flagNames = []string{
	"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking", "loading",
	"stale", "skip_monitor", "skip_slowlog", "fast", "no_auth", "no_mandatory_keys", "no_multi", "movablekeys", "allow_busy",
}

// category is a set of ACL categories.
type category uint32

const (
	catKeyspace category = 1 << iota
	catRead
	catWrite
	catSet
	catSortedSet
	catList
	catHash
	catString
	catBitmap
	catHyperLogLog
	catGeo
	catStream
	catPubsub
	catAdmin
	catFast
	catSlow
	catBlocking
	catDangerous
	catConnection
	catTransaction
	catScripting
)

var categoryNames = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string",
	"bitmap", "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow",
	"blocking", "dangerous", "connection", "transaction", "scripting",
}

func (cmd *command) categories() category {
	cats := cmd.cats
	for _, x := range []struct {
		flag cmdFlags
		cat  category
	}{
		{flagWrite, catWrite}, {flagReadonly, catRead}, {flagPubsub, catPubsub},
		{flagAdmin, catAdmin | catDangerous}, {flagFast, catFast}, {flagBlocking, catBlocking},
	} {
		if cmd.flags&x.flag != 0 && (x.cat != catRead && x.cat != catWrite || cats&catScripting == 0) {
			cats |= x.cat // what a script does is not known
		}
	}
	if cmd.cats&catScripting != 0 {
		cats &^= catRead // as of Redis's EVAL_RO
	}
	if cmd.flags&flagFast == 0 {
		cats |= catSlow
	}
	return cats
}

// keySpec says which arguments are keys, and what the command does with them.
type keySpec struct {
	flags keyFlags
	notes string
	// vary returns the flags for a request, if flags has keyVariable.
	vary  func(args [][]byte) keyFlags
	first int // index of the first key
	last  int // of the last key, counted from first; -1: the last argument
	step  int

	// counted says that the argument at first is the number of keys, which follow it.
	counted bool
	// keyword, if there is one, stands somewhere from first on, and the key behind it.
	keyword string
	// half says that all arguments behind the keyword are keys in their first half.
	half bool
	// unknown says that no rule tells clients where the keys are. search finds them.
	unknown bool
	search  func(args [][]byte) (first, last int)
}

type keyFlags uint16

const (
	keyRO keyFlags = 1 << iota
	keyRW
	keyOW
	keyRM
	keyAccess
	keyUpdate
	keyInsert
	keyDelete
	keyNot // a shard channel, which cluster clients route as they do a key
	keyVariable
)

var keyFlagNames = []string{
	"RO", "RW", "OW", "RM", "access", "update", "insert", "delete", "not_key", "variable_flags",
}

// oneKey is for commands whose only key is the first argument.
func oneKey(f keyFlags) []keySpec { return []keySpec{{flags: f, first: 1, step: 1}} }

// allKeys is for commands of which every step-th argument, from the first, is a
// key.
func allKeys(f keyFlags, step int) []keySpec {
	return []keySpec{{flags: f, first: 1, last: -1, step: step}}
}

// countedKeys is for commands that have keys behind an argument with their
// number.
func countedKeys(f keyFlags, at int) keySpec {
	return keySpec{flags: f, first: at, step: 1, counted: true}
}

// find returns the indexes of the first and the last key in a request. ok is
// false if the request cannot have such keys; a keyword that is missing gives no
// keys.
func (k *keySpec) find(args [][]byte) (first, last int, ok bool) {
	n := len(args)
	switch {
	case k.search != nil:
		first, last = k.search(args)
		return first, last, true
	case k.counted:
		if k.first >= n {
			return 0, 0, false
		}
		count, isInt := resp.ParseInt(args[k.first])
		if !isInt || count < 1 || count >= int64(n-k.first) {
			return 0, 0, false
		}
		return k.first + 1, k.first + int(count), true
	case k.keyword != "":
		for i := k.first; i < n-1; i++ {
			if isWord(args[i], k.keyword) {
				if k.half {
					return i + 1, i + (n-1-i)/2, true
				}
				return i + 1, i + 1, true
			}
		}
		return 0, -1, true
	case k.last < 0:
		last = n + k.last
	default:
		last = min(k.first+k.last, n-1) // the last keys may be optional
	}
	return k.first, last, k.first <= last
}

// flagsOf returns what a request does to the keys.
func (k *keySpec) flagsOf(args [][]byte) keyFlags {
	if k.vary == nil {
		return k.flags
	}
	return k.vary(args)
}

// keyRange sums the keys up in the three numbers that COMMAND has reported
// since Redis 2.8: first, last and step.
func (cmd *command) keyRange() (first, last, step int) {
	for i := range cmd.keys {
		k := &cmd.keys[i]
		if k.counted || k.keyword != "" || k.unknown {
			continue
		}
		if step == 0 {
			first, step = k.first, k.step
		}
		if last = k.last; last >= 0 {
			last += k.first
		}
	}
	return first, last, step
}

// arityOK reports whether a request may have n arguments.
func (cmd *command) arityOK(n int) bool {
	return cmd.arity == n || cmd.arity < 0 && n >= -cmd.arity
}

// commandTable holds all commands of a server.
type commandTable struct {
	byName map[string]*command
	list   []*command // in the order of the families
	last   *command   // the last found that has no subcommands: pipelines repeat it
	rules  *acl.Table // the commands that rules of users may name
	// renamed says that names may differ from the commands' own ones.
	renamed bool
}

func newCommandTable(families ...[]*command) *commandTable {
	t := &commandTable{byName: make(map[string]*command), rules: acl.NewTable(categoryNames, matchesKey)}
	for _, family := range families {
		for _, cmd := range family {
			t.add(cmd)
		}
	}
	t.addMissing()
	return t
}

func (t *commandTable) add(cmd *command) {
	if cmd.flags&flagFast != 0 && !lengthy[cmd.name] || brief[cmd.name] {
		cmd.flags |= flagBrief
	}
	t.byName[cmd.name] = cmd
	t.list = append(t.list, cmd)
	cmd.id = t.rules.Add(cmd.name, uint32(cmd.categories()))
	if cmd.subs == nil {
		return
	}
	cmd.byName = make(map[string]*command)
	for _, sub := range cmd.subs {
		cmd.byName[sub.name[len(cmd.name)+1:]] = sub
		sub.id = t.rules.Add(sub.name, uint32(sub.categories()))
	}
}

// rename gives a command another name, or none if that is empty. It returns Redis's reason why
// it cannot. COMMAND and INFO go on to show the command's own name.
func (t *commandTable) rename(from, to string) (failure string) {
	cmd := lookup(t.byName, []byte(from))
	target := strings.ToLower(to)
	switch {
	case cmd == nil:
		return "No such command in rename-command"
	case len(to) > maxRenamed:
		return fmt.Sprintf("Target command name has more than %d bytes", maxRenamed)
	}
	t.renamed = true
	delete(t.byName, strings.ToLower(from))
	if to == "" {
		t.list = slices.DeleteFunc(t.list, func(c *command) bool { return c == cmd })
		return ""
	}
	if t.byName[target] != nil {
		return "Target command name already exists"
	}
	t.byName[target] = cmd
	return ""
}

// own returns a command by its own name, whatever a file calls it.
func (t *commandTable) own(name string) *command {
	i := slices.IndexFunc(t.list, func(c *command) bool { return c.name == name })
	return t.list[i]
}

// maxName is longer than the name of any command, and maxRenamed than those that a file
// gives them: often the digits of a hash, to be secret.
const (
	maxName    = 32
	maxRenamed = 64
)

// lookup finds a name in any mix of cases. It does not allocate.
func lookup(names map[string]*command, name []byte) *command {
	var folded [maxRenamed]byte
	if len(name) > len(folded) {
		return nil
	}
	for i, b := range name {
		folded[i] = lower(b)
	}
	return names[string(folded[:len(name)])]
}

// find returns the command of a request. If the command is a container, and the
// request has a second argument, find returns the subcommand of that name, or
// nil.
func (t *commandTable) find(args [][]byte) *command {
	if t.last != nil && t.last.isNamed(args[0]) {
		return t.last
	}
	cmd := lookup(t.byName, args[0])
	switch {
	case cmd == nil:
	case cmd.byName == nil:
		if !t.renamed {
			t.last = cmd
		}
	case len(args) > 1:
		return lookup(cmd.byName, args[1])
	}
	return cmd
}

// isNamed compares the command's name with one in any mix of cases.
func (cmd *command) isNamed(name []byte) bool {
	if len(name) != len(cmd.name) {
		return false
	}
	for i, b := range name {
		if lower(b) != cmd.name[i] {
			return false
		}
	}
	return true
}

// named finds a command by its full name, such as "get" or "client|id".
func (t *commandTable) named(name []byte) *command {
	for i, b := range name {
		if b == '|' {
			cmd := lookup(t.byName, name[:i])
			if cmd == nil {
				return nil
			}
			return lookup(cmd.byName, name[i+1:])
		}
	}
	return lookup(t.byName, name)
}

// all calls f for every command and subcommand.
func (t *commandTable) all(f func(*command)) {
	for _, cmd := range t.list {
		f(cmd)
		for _, sub := range cmd.subs {
			f(sub)
		}
	}
}
