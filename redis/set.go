package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

// setOptions are the options of SET and GETEX.
type setOptions struct {
	nx, xx, keepTTL, get, persist bool

	expire   []byte // the argument; nil: none
	unit     int64  // unit of expire in milliseconds
	absolute bool   // expire counts from 1970, not from now
}

// parse reads the options of SET if set is true, else those of GETEX. It
// reports whether they are valid.
func (o *setOptions) parse(args [][]byte, set bool) bool {
	time := "" // the given one of EX, PX, EXAT and PXAT
	for i := 0; i < len(args); i++ {
		opt := args[i]
		switch {
		case set && !o.xx && isWord(opt, "NX"):
			o.nx = true
		case set && !o.nx && isWord(opt, "XX"):
			o.xx = true
		case set && isWord(opt, "GET"):
			o.get = true
		case set && time == "" && isWord(opt, "KEEPTTL"):
			o.keepTTL = true
		case !set && time == "" && isWord(opt, "PERSIST"):
			o.persist = true
		default:
			word := o.timeOption(opt)
			if word == "" || time != "" && time != word || o.keepTTL || o.persist || i+1 == len(args) {
				return false
			}
			time = word
			i++
			o.expire = args[i]
		}
	}
	return true
}

// timeOption recognizes EX, PX, EXAT and PXAT. It returns "" for other options.
func (o *setOptions) timeOption(opt []byte) string {
	for _, t := range [...]struct {
		word     string
		unit     int64
		absolute bool
	}{{"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}} {
		if isWord(opt, t.word) {
			o.unit, o.absolute = t.unit, t.absolute
			return t.word
		}
	}
	return ""
}

// isWord reports whether arg equals word, ignoring case. word is in upper case.
func isWord(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i, b := range arg {
		if b != word[i] && b != lower(word[i]) {
			return false
		}
	}
	return true
}

// deadline converts an expiry to a time in milliseconds since 1970. It replies
// with an error if the expiry is not a positive number, or too large.
func (c *client) deadline(o *setOptions, cmd string) (at int64, ok bool) {
	n, ok := c.int64Arg(o.expire)
	if !ok {
		return 0, false
	}
	if n > 0 && n <= math.MaxInt64/o.unit {
		at, ok = n*o.unit, true
		if !o.absolute {
			at, ok = addInt(at, c.db.space.now)
		}
		if ok {
			return at, true
		}
	}
	c.fail("ERR invalid expire time in '" + cmd + "' command")
	return 0, false
}

func setCommand(c *client, args [][]byte) {
	if len(args) == 3 {
		c.store(args[1], args[2])
		c.ok()
		return
	}
	var o setOptions
	if !o.parse(args[3:], true) {
		c.fail(errSyntax)
		return
	}
	var at int64
	if o.expire != nil {
		var ok bool
		if at, ok = c.deadline(&o, "set"); !ok {
			return
		}
	}
	key, v := args[1], args[2]
	if o.get {
		if _, ok := c.get(key); !ok {
			return
		}
	}
	if o.nx || o.xx {
		if c.db.find(key).Exists() == o.nx {
			if !o.get {
				c.Null()
			}
			return
		}
	}
	deadline := store.NoDeadline
	switch {
	case o.expire != nil:
		deadline = at
	case o.keepTTL:
		deadline = store.KeepDeadline
	}
	c.storeUntil(key, v, deadline)
	if !o.get {
		c.ok()
	}
}

func setnxCommand(c *client, args [][]byte) {
	if c.db.find(args[1]).Exists() {
		c.Int(0)
		return
	}
	c.store(args[1], args[2])
	c.Int(1)
}

func setexCommand(c *client, args [][]byte) { c.setex(args, "setex", 1000) }

func psetexCommand(c *client, args [][]byte) { c.setex(args, "psetex", 1) }

func (c *client) setex(args [][]byte, cmd string, unit int64) {
	o := setOptions{expire: args[2], unit: unit}
	if at, ok := c.deadline(&o, cmd); ok {
		c.storeUntil(args[1], args[3], at)
		c.ok()
	}
}

func getexCommand(c *client, args [][]byte) {
	var o setOptions
	if !o.parse(args[2:], false) {
		c.fail(errSyntax)
		return
	}
	it := c.db.read(args[1])
	if !it.Exists() {
		c.Null()
		return
	}
	if !c.isString(it) {
		return
	}
	var at int64
	if o.expire != nil {
		var ok bool
		if at, ok = c.deadline(&o, "getex"); !ok {
			return
		}
	}
	c.stringValue(it)
	event := ""
	switch {
	case o.absolute && at <= c.db.space.now:
		event = "del"
		c.db.keys.Delete(it)
	case o.expire != nil:
		event = "expire"
		c.db.keys.SetDeadline(it, at)
	case o.persist && it.Deadline() != 0:
		event = "persist"
		c.db.keys.Persist(it)
	default:
		return
	}
	c.changed(args[1])
	c.notify(eventGeneric, event, args[1])
}
