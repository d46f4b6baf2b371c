package redis

import (
	"bytes"
	"fmt"
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

func objectCommands() []*command {
	const group = "generic"
	second := []keySpec{{flags: keyRO, first: 2, step: 1}}
	vague := []string{"nondeterministic_output"}
	return []*command{
		{name: "copy", arity: -3, flags: flagWrite | flagDenyOOM, cats: catKeyspace,
			keys: []keySpec{{flags: keyRO | keyAccess, first: 1, step: 1}, {flags: keyOW | keyUpdate, first: 2, step: 1}},
			run:  copyCommand,
			doc:  doc{"Copies the value of a key to another key.", "6.2.0", group, "O(N), N the number of elements; O(1) for strings", "", ""}},
		{name: "memory", arity: -2,
			doc: doc{"A container for commands about memory.", "4.0.0", "server", "depends on the subcommand", "", ""},
			subs: append(memorySubcommands(), []*command{
				{name: "memory|help", arity: 2, flags: flagLoading | flagStale, run: memoryHelpCommand,
					doc: doc{"Returns help about the subcommands.", "4.0.0", "server", "O(1)", "", ""}},
				{name: "memory|usage", arity: -3, flags: flagReadonly, keys: second, run: memoryUsageCommand,
					doc: doc{"Estimates the memory that a key takes.", "4.0.0", "server", "O(N), N the number of samples", "", ""}},
			}...)},
		{name: "object", arity: -2,
			doc: doc{"A container for commands about the inside of values.", "2.2.3", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "object|encoding", arity: 3, flags: flagReadonly, cats: catKeyspace, keys: second, tips: vague, run: objectEncodingCommand,
					doc: doc{"Returns how a value is stored.", "2.2.3", group, "O(1)", "", ""}},
				{name: "object|freq", arity: 3, flags: flagReadonly, cats: catKeyspace, keys: second, tips: vague, run: objectFreqCommand,
					doc: doc{"Returns the logarithmic counter of a key's accesses.", "4.0.0", group, "O(1)", "", ""}},
				{name: "object|help", arity: 2, flags: flagLoading | flagStale, cats: catKeyspace, run: objectHelpCommand,
					doc: doc{"Returns help about the subcommands.", "6.2.0", group, "O(1)", "", ""}},
				{name: "object|idletime", arity: 3, flags: flagReadonly, cats: catKeyspace, keys: second, tips: vague, run: objectIdletimeCommand,
					doc: doc{"Returns how many seconds ago a key was last used.", "2.2.3", group, "O(1)", "", ""}},
				{name: "object|refcount", arity: 3, flags: flagReadonly, cats: catKeyspace, keys: second, tips: vague, run: objectRefcountCommand,
					doc: doc{"Returns the number of references to a value.", "2.2.3", group, "O(1)", "", ""}},
			}},
	}
}

// encodings return what OBJECT ENCODING replies for values of each type.
var encodings = map[store.Type]func(store.Item) string{
	store.String: stringEncoding,
	store.ZSet:   zsetEncoding,
	store.Hash:   hashEncoding,
	store.Set:    setEncoding,
	store.List:   listEncoding,
	store.Stream: streamEncoding,
}

// maxEmbstr is the length of the longest string that Redis stores beside its
// header.
const maxEmbstr = 44

func stringEncoding(it store.Item) string {
	switch {
	case it.Form() == store.Integer:
		return "int"
	case it.Alt() || it.Len() > maxEmbstr:
		return "raw"
	}
	return "embstr"
}

// inspected returns the Item of a key for a command that is no access to it. It
// replies with null if there is none.
func (c *client) inspected(key []byte) (it store.Item, ok bool) {
	if it = c.db.peek(key); !it.Exists() {
		c.Null()
		return it, false
	}
	return it, true
}

func objectEncodingCommand(c *client, args [][]byte) {
	if it, ok := c.inspected(args[2]); ok {
		c.BulkString(encodings[it.Type()](it))
	}
}

func objectRefcountCommand(c *client, args [][]byte) {
	if it, ok := c.inspected(args[2]); ok {
		c.Int(c.server.refcount(it))
	}
}

// refcount knows that Redis shares the objects of small integers, unless maxmemory-policy
// needs to know when each key was used.
func (s *Server) refcount(it store.Item) int64 {
	const shared = 10000
	if s.config.maxMemory > 0 && s.config.eviction.policy.Tracking() != store.TrackNothing {
		return 1
	}
	if it.Type() == store.String && it.Form() == store.Integer {
		if n, _ := it.Int(); n >= 0 && n < shared {
			return math.MaxInt32
		}
	}
	return 1
}

// debugObject replies with what is known about a value's memory: the place of its entry, as
// a number that stays while the entry does, and its size there.
func (c *client) debugObject(key []byte) {
	it := c.db.peek(key)
	if !it.Exists() {
		c.fail(errNoSuchKey)
		return
	}
	const clockBits = 24 // of Redis's clock in seconds
	now, idle := c.db.space.now/1000, int64(0)
	if c.db.space.store.Tracking() == store.TrackLRU {
		idle = it.Idle() / 1000
	}
	c.Simple(fmt.Sprintf("Value at:%#x refcount:%d encoding:%s serializedlength:%d lru:%d lru_seconds_idle:%d",
		it.Entry(), c.server.refcount(it), encodings[it.Type()](it), it.Size(), (now-idle)&(1<<clockBits-1), idle))
}

const trackedLater = "Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."

// objectIdletimeCommand makes the store note the use of keys from the first call
// on.
func objectIdletimeCommand(c *client, args [][]byte) {
	it, ok := c.inspected(args[2])
	if !ok {
		return
	}
	s := c.server.space.store
	if s.Tracking() == store.TrackLFU {
		c.fail("ERR An LFU maxmemory policy is selected, idle time not tracked. " + trackedLater)
		return
	}
	if s.Tracking() == store.TrackNothing {
		s.Track(store.TrackLRU)
	}
	c.Int(it.Idle() / 1000)
}

func objectFreqCommand(c *client, args [][]byte) {
	it, ok := c.inspected(args[2])
	if !ok {
		return
	}
	if c.server.space.store.Tracking() != store.TrackLFU {
		c.fail("ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + trackedLater)
		return
	}
	c.Int(int64(it.Frequency()))
}

func objectHelpCommand(c *client, _ [][]byte) {
	c.help("OBJECT",
		"ENCODING <key>",
		"    How the value of a key is stored.",
		"FREQ <key>",
		"    The logarithmic counter of a key's accesses, if the policy is an LFU one.",
		"IDLETIME <key>",
		"    How many seconds ago a key was last used.",
		"REFCOUNT <key>",
		"    The number of references to a value, as Redis has them.")
}

func memoryUsageCommand(c *client, args [][]byte) {
	for opts := args[3:]; len(opts) > 0; opts = opts[2:] {
		if len(opts) < 2 || !isWord(opts[0], "SAMPLES") {
			c.fail(errSyntax)
			return
		}
		n, ok := c.int64Arg(opts[1])
		if !ok {
			return
		}
		if n < 0 {
			c.fail(errSyntax)
			return
		}
	}
	if it, ok := c.inspected(args[2]); ok {
		c.Int(int64(it.Size()))
	}
}

func memoryHelpCommand(c *client, _ [][]byte) {
	c.help("MEMORY",
		"DOCTOR",
		"    A report about memory.",
		"MALLOC-STATS",
		"    The figures of Go's runtime and of the store.",
		"PURGE",
		"    Give free memory back to the system, in the background.",
		"STATS",
		"    What memory is used for.",
		"USAGE <key> [SAMPLES <count>]",
		"    The memory that a key takes in bytes. The server chooses the samples.")
}

func copyCommand(c *client, args [][]byte) {
	from, to, target, replace := args[1], args[2], c.db, false
	for opts := args[3:]; len(opts) > 0; opts = opts[1:] {
		switch {
		case isWord(opts[0], "REPLACE"):
			replace = true
		case isWord(opts[0], "DB") && len(opts) > 1:
			i, ok := c.intArg(opts[1])
			if !ok {
				return
			}
			if i < 0 || i >= len(c.server.space.dbs) {
				c.fail(errDBIndex)
				return
			}
			target = &c.server.space.dbs[i]
			opts = opts[1:]
		default:
			c.fail(errSyntax)
			return
		}
	}
	if target == c.db && bytes.Equal(from, to) {
		c.fail("ERR source and destination objects are the same")
		return
	}
	if !c.db.read(from).Exists() {
		c.Int(0)
		return
	}
	if old := target.find(to); old.Exists() {
		if !replace {
			c.Int(0)
			return
		}
		target.keys.Delete(old)
	}
	c.db.keys.Copy(c.db.find(from), target.keys, to)
	c.server.space.dirty++
	target.touched(to, false)
	target.notify(eventGeneric, "copy_to", to)
	target.ready(to)
	c.Int(1)
}
