package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

func expiryCommands() []*command {
	const group = "generic"
	return []*command{
		{name: "expire", arity: -3, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: oneKey(keyRW | keyUpdate), run: expireCommand,
			doc: doc{"Makes a key expire after a number of seconds.", "1.0.0", group, "O(1)", "", ""}},
		{name: "expireat", arity: -3, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: oneKey(keyRW | keyUpdate), run: expireatCommand,
			doc: doc{"Makes a key expire at a time in seconds since 1970.", "1.2.0", group, "O(1)", "", ""}},
		{name: "expiretime", arity: 2, flags: flagReadonly | flagFast, cats: catKeyspace,
			keys: oneKey(keyRO | keyAccess), run: expiretimeCommand,
			doc: doc{"Returns the time in seconds since 1970 at which a key expires.", "7.0.0", group, "O(1)", "", ""}},
		{name: "persist", arity: 2, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: oneKey(keyRW | keyUpdate), run: persistCommand,
			doc: doc{"Removes the expiry of a key.", "2.2.0", group, "O(1)", "", ""}},
		{name: "pexpire", arity: -3, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: oneKey(keyRW | keyUpdate), run: pexpireCommand,
			doc: doc{"Makes a key expire after a number of milliseconds.", "2.6.0", group, "O(1)", "", ""}},
		{name: "pexpireat", arity: -3, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: oneKey(keyRW | keyUpdate), run: pexpireatCommand,
			doc: doc{"Makes a key expire at a time in milliseconds since 1970.", "2.6.0", group, "O(1)", "", ""}},
		{name: "pexpiretime", arity: 2, flags: flagReadonly | flagFast, cats: catKeyspace,
			keys: oneKey(keyRO | keyAccess), run: pexpiretimeCommand,
			doc: doc{"Returns the time in milliseconds since 1970 at which a key expires.", "7.0.0", group, "O(1)", "", ""}},
		{name: "pttl", arity: 2, flags: flagReadonly | flagFast, cats: catKeyspace,
			keys: oneKey(keyRO | keyAccess), tips: []string{"nondeterministic_output"}, run: pttlCommand,
			doc: doc{"Returns the milliseconds until a key expires.", "2.6.0", group, "O(1)", "", ""}},
		{name: "ttl", arity: 2, flags: flagReadonly | flagFast, cats: catKeyspace,
			keys: oneKey(keyRO | keyAccess), tips: []string{"nondeterministic_output"}, run: ttlCommand,
			doc: doc{"Returns the seconds until a key expires.", "1.0.0", group, "O(1)", "", ""}},
	}
}

// expireOptions are the conditions of EXPIRE and the similar commands.
type expireOptions struct{ nx, xx, gt, lt bool }

func (o *expireOptions) parse(c *client, args [][]byte) bool {
	for _, opt := range args {
		switch {
		case isWord(opt, "NX"):
			o.nx = true
		case isWord(opt, "XX"):
			o.xx = true
		case isWord(opt, "GT"):
			o.gt = true
		case isWord(opt, "LT"):
			o.lt = true
		default:
			c.fail("ERR Unsupported option " + string(cString(opt, len(opt))))
			return false
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		c.fail("ERR NX and XX, GT or LT options at the same time are not compatible")
		return false
	case o.gt && o.lt:
		c.fail("ERR GT and LT options at the same time are not compatible")
		return false
	}
	return true
}

// allow reports whether a key may get the deadline at. A key without a deadline
// counts as one with the latest possible deadline.
func (o *expireOptions) allow(it store.Item, at int64) bool {
	old := it.Deadline()
	if old == 0 {
		return !o.xx && !o.gt
	}
	return !(o.nx || o.gt && at <= old || o.lt && at >= old)
}

// expire implements EXPIRE and the similar commands. unit is the argument's
// unit in milliseconds, base the time it counts from.
func (c *client) expire(args [][]byte, cmd string, unit, base int64) {
	var o expireOptions
	if !o.parse(c, args[3:]) {
		return
	}
	n, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-base {
		c.fail("ERR invalid expire time in '" + cmd + "' command")
		return
	}
	at := n*unit + base
	it := c.db.find(args[1])
	if !it.Exists() || !o.allow(it, at) {
		c.Int(0)
		return
	}
	event := "expire"
	if at <= c.db.space.now {
		event = "del"
		c.db.keys.Delete(it)
	} else {
		c.db.keys.SetDeadline(it, at)
	}
	c.changed(args[1])
	c.notify(eventGeneric, event, args[1])
	c.Int(1)
}

func expireCommand(c *client, args [][]byte) { c.expire(args, "expire", 1000, c.db.space.now) }

func pexpireCommand(c *client, args [][]byte) { c.expire(args, "pexpire", 1, c.db.space.now) }

func expireatCommand(c *client, args [][]byte) { c.expire(args, "expireat", 1000, 0) }

func pexpireatCommand(c *client, args [][]byte) { c.expire(args, "pexpireat", 1, 0) }

// timeLeft replies with reckon's result for the key's deadline, converted from
// milliseconds to unit.
func (c *client) timeLeft(key []byte, unit int64, reckon func(at, now int64) int64) {
	it := c.db.read(key)
	if !it.Exists() {
		c.Int(-2)
		return
	}
	at := it.Deadline()
	if at == 0 {
		c.Int(-1)
		return
	}
	ms := max(0, reckon(at, c.db.space.now))
	n, rest := ms/unit, ms%unit
	if unit > 1 && rest >= unit/2 {
		n++
	}
	c.Int(n)
}

func fromNow(at, now int64) int64 { return at - now }

func since1970(at, _ int64) int64 { return at }

func ttlCommand(c *client, args [][]byte) { c.timeLeft(args[1], 1000, fromNow) }

func pttlCommand(c *client, args [][]byte) { c.timeLeft(args[1], 1, fromNow) }

func expiretimeCommand(c *client, args [][]byte) { c.timeLeft(args[1], 1000, since1970) }

func pexpiretimeCommand(c *client, args [][]byte) { c.timeLeft(args[1], 1, since1970) }

func persistCommand(c *client, args [][]byte) {
	if it := c.db.find(args[1]); it.Exists() && it.Deadline() != 0 {
		c.db.keys.Persist(it)
		c.changed(args[1])
		c.notify(eventGeneric, "persist", args[1])
		c.Int(1)
		return
	}
	c.Int(0)
}
