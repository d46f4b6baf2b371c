package redis

import (
	"strconv"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/zset"
)

func zsetCommands() []*command {
	const group = "sorted-set"
	return []*command{
		{name: "zadd", arity: -4, flags: flagWrite | flagDenyOOM | flagFast, cats: catSortedSet,
			keys: oneKey(keyRW | keyUpdate), run: zaddCommand,
			doc: doc{"Adds members to a sorted set, or changes their scores.", "1.2.0", group, "O(log N) for each member, N the size of the set", "", ""}},
		{name: "zcard", arity: 2, flags: flagReadonly | flagFast, cats: catSortedSet,
			keys: oneKey(keyRO), run: zcardCommand,
			doc: doc{"Counts the members of a sorted set.", "1.2.0", group, "O(1)", "", ""}},
		{name: "zcount", arity: 4, flags: flagReadonly | flagFast, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), run: zcountCommand,
			doc: doc{"Counts the members with scores in a range.", "2.0.0", group, "O(log N), N the size of the set", "", ""}},
		{name: "zincrby", arity: 4, flags: flagWrite | flagDenyOOM | flagFast, cats: catSortedSet,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: zincrbyCommand,
			doc: doc{"Adds a number to a member's score.", "1.2.0", group, "O(log N), N the size of the set", "", ""}},
		{name: "zlexcount", arity: 4, flags: flagReadonly | flagFast, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), run: zlexcountCommand,
			doc: doc{"Counts the members in a range of their bytes, where all scores are equal.", "2.8.9", group, "O(log N), N the size of the set", "", ""}},
		{name: "zmscore", arity: -3, flags: flagReadonly | flagFast, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), run: zmscoreCommand,
			doc: doc{"Returns the scores of members.", "6.2.0", group, "O(N), N the number of members asked for", "", ""}},
		{name: "zrandmember", arity: -2, flags: flagReadonly, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), tips: []string{"nondeterministic_output"}, run: zrandmemberCommand,
			doc: doc{"Returns random members.", "6.2.0", group, "O(N), N the number of members returned", "", ""}},
		{name: "zrank", arity: 3, flags: flagReadonly | flagFast, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), run: zrankCommand,
			doc: doc{"Returns a member's rank, from the lowest score.", "2.0.0", group, "O(log N), N the size of the set", "", ""}},
		{name: "zrem", arity: -3, flags: flagWrite | flagFast, cats: catSortedSet,
			keys: oneKey(keyRW | keyDelete), run: zremCommand,
			doc: doc{"Removes members, and the set with its last one.", "1.2.0", group, "O(M log N), N the size of the set, M the members removed", "", ""}},
		{name: "zrevrank", arity: 3, flags: flagReadonly | flagFast, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), run: zrevrankCommand,
			doc: doc{"Returns a member's rank, from the highest score.", "2.0.0", group, "O(log N), N the size of the set", "", ""}},
		{name: "zscan", arity: -3, flags: flagReadonly, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), tips: []string{"nondeterministic_output"}, run: zscanCommand,
			doc: doc{"Iterates over members and scores in several calls.", "2.8.0", group, "O(N) a call, N being COUNT; O(M) in all, M the size of the set", "", ""}},
		{name: "zscore", arity: 3, flags: flagReadonly | flagFast, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), run: zscoreCommand,
			doc: doc{"Returns a member's score.", "1.2.0", group, "O(1)", "", ""}},
	}
}

const (
	errNaN        = "ERR resulting score is not a number (NaN)"
	errScoreRange = "ERR min or max is not a float"
	errLexRange   = "ERR min or max not valid string range item"
)

// isZset reports whether a command may use an Item, which may be zero, as a sorted set. If
// not it replies with an error.
func (c *client) isZset(it store.Item) bool {
	if it.Exists() && it.Type() != store.ZSet {
		c.fail(errWrongType)
		return false
	}
	return true
}

// readZset returns the sorted set of a key, to read: an empty one if there is no key. ok is
// false if the reply is an error.
func (c *client) readZset(key []byte) (s zset.Set, ok bool) {
	it := c.db.read(key)
	if !c.isZset(it) {
		return s, false
	}
	return zset.Open(c.db.keys, it), true
}

// editZset returns the sorted set of a key, to change. It exists if the key does. ok is
// false if the reply is an error.
func (c *client) editZset(key []byte) (s *zset.Set, exists, ok bool) {
	it := c.db.find(key)
	if !c.isZset(it) {
		return nil, false, false
	}
	return c.server.sortedSets().Edit(c.db.keys, key, it), it.Exists(), true
}

// sortedSets returns the maker of sorted sets, with the present thresholds.
func (s *Server) sortedSets() *zset.Sets {
	s.zsets.Entries, s.zsets.Value = int(s.config.zsetEntries), int(s.config.zsetValue)
	return &s.zsets
}

// zsetEncoding returns what OBJECT ENCODING calls a sorted set's form.
func zsetEncoding(it store.Item) string {
	if it.Form() == store.Node {
		return "skiplist"
	}
	return "listpack"
}

// zaddOptions are the options of ZADD.
type zaddOptions struct{ nx, xx, gt, lt, ch, incr bool }

// parse reads options and returns how many there are.
func (o *zaddOptions) parse(args [][]byte) (n int) {
	for _, arg := range args {
		switch {
		case isWord(arg, "NX"):
			o.nx = true
		case isWord(arg, "XX"):
			o.xx = true
		case isWord(arg, "GT"):
			o.gt = true
		case isWord(arg, "LT"):
			o.lt = true
		case isWord(arg, "CH"):
			o.ch = true
		case isWord(arg, "INCR"):
			o.incr = true
		default:
			return n
		}
		n++
	}
	return n
}

// conflict returns why the options do not go together with a number of members, or "".
func (o *zaddOptions) conflict(members int) string {
	switch {
	case o.nx && o.xx:
		return "ERR XX and NX options at the same time are not compatible"
	case o.gt && o.nx || o.lt && o.nx || o.gt && o.lt:
		return "ERR GT, LT, and/or NX options at the same time are not compatible"
	case o.incr && members > 1:
		return "ERR INCR option supports a single increment-element pair"
	}
	return ""
}

func zaddCommand(c *client, args [][]byte) {
	var o zaddOptions
	c.zadd(args[1], args[2+o.parse(args[2:]):], &o)
}

// zincrbyCommand takes an option in the place of the increment for one, as Redis does.
func zincrbyCommand(c *client, args [][]byte) {
	o := zaddOptions{incr: true}
	c.zadd(args[1], args[2+o.parse(args[2:]):], &o)
}

// zadd implements ZADD and ZINCRBY; pairs are scores and members.
func (c *client) zadd(key []byte, pairs [][]byte, o *zaddOptions) {
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		c.fail(errSyntax)
		return
	}
	if conflict := o.conflict(len(pairs) / 2); conflict != "" {
		c.fail(conflict)
		return
	}
	var room [8]float64
	scores := room[:0]
	for i := 0; i < len(pairs); i += 2 {
		score, ok := c.doubleArg(pairs[i], errNotFloat)
		if !ok {
			return
		}
		scores = append(scores, score)
	}
	s, exists, ok := c.editZset(key)
	if !ok {
		return
	}
	a := zsetAdder{set: s, zaddOptions: o}
	if exists || !o.xx {
		for i := 0; i < len(scores) && !a.nan; i++ {
			a.add(pairs[2*i+1], scores[i])
		}
	}
	s.Commit()
	if a.added+a.updated > 0 {
		c.changed(key)
		if o.incr {
			c.notify(eventZset, "zincr", key)
		} else {
			c.notify(eventZset, "zadd", key)
		}
		if !exists {
			c.db.ready(key)
		}
	}
	switch {
	case a.nan:
		c.fail(errNaN)
	case o.incr && a.done:
		c.Double(a.score)
	case o.incr:
		c.Null()
	case o.ch:
		c.Int(a.added + a.updated)
	default:
		c.Int(a.added)
	}
}

// zsetAdder adds members to a set, under the conditions of ZADD's options.
type zsetAdder struct {
	*zaddOptions
	set            *zset.Set
	added, updated int64
	done           bool    // the options have allowed the last one
	score          float64 // of the last one
	nan            bool    // stop: the new score is not a number
}

func (a *zsetAdder) add(member []byte, score float64) {
	a.done = false
	old, exists := a.set.Score(member)
	if !exists {
		if a.xx {
			return
		}
		a.set.Set(member, score)
		a.added++
		a.done, a.score = true, score
		return
	}
	if a.nx {
		return
	}
	if a.incr {
		score += old
	}
	switch {
	case score != score:
		a.nan = true
		return
	case a.gt && score <= old, a.lt && score >= old:
		return
	case score != old:
		a.set.Set(member, score)
		a.updated++
	}
	a.done, a.score = true, score
}

func zremCommand(c *client, args [][]byte) {
	s, exists, ok := c.editZset(args[1])
	if !ok || !exists {
		if ok {
			c.Int(0)
		}
		return
	}
	n := 0
	for _, member := range args[2:] {
		if s.Remove(member) {
			n++
		}
	}
	s.Commit()
	if n > 0 {
		c.changed(args[1])
		c.notifyTaken(eventZset, "zrem", args[1])
	}
	c.Int(int64(n))
}

func zcardCommand(c *client, args [][]byte) {
	if s, ok := c.readZset(args[1]); ok {
		c.Int(int64(s.Len()))
	}
}

func zscoreCommand(c *client, args [][]byte) {
	if s, ok := c.readZset(args[1]); ok {
		c.score(&s, args[2])
	}
}

func zmscoreCommand(c *client, args [][]byte) {
	s, ok := c.readZset(args[1])
	if !ok {
		return
	}
	c.Array(len(args) - 2)
	for _, member := range args[2:] {
		c.score(&s, member)
	}
}

// score adds a member's score, or a null.
func (c *client) score(s *zset.Set, member []byte) {
	if score, ok := s.Score(member); ok {
		c.Double(score)
	} else {
		c.Null()
	}
}

func zrankCommand(c *client, args [][]byte) { c.rank(args, false) }

func zrevrankCommand(c *client, args [][]byte) { c.rank(args, true) }

func (c *client) rank(args [][]byte, reverse bool) {
	s, ok := c.readZset(args[1])
	if !ok {
		return
	}
	score, ok := s.Score(args[2])
	if !ok {
		c.Null()
		return
	}
	rank := s.Rank(zset.At(score, args[2]))
	if reverse {
		rank = s.Len() - 1 - rank
	}
	c.Int(int64(rank))
}

func zscanCommand(c *client, args [][]byte) {
	cursor, ok := scanCursor(args[2])
	if !ok {
		c.fail("ERR invalid cursor")
		return
	}
	s, ok := c.readZset(args[1])
	if !ok {
		return
	}
	if s.Len() == 0 {
		c.Array(2)
		c.BulkString("0")
		c.Array(0)
		return
	}
	opts := scanOptions{count: 10, pattern: []byte("*"), nested: true}
	if !opts.parse(c, args[3:]) {
		return
	}
	var text []byte
	var ends []int
	cursor = s.Scan(cursor, opts.count, func(member, score []byte) {
		if globAll(opts.pattern, member) {
			text = append(text, member...)
			ends = append(ends, len(text))
			text = append(text, score...)
			ends = append(ends, len(text))
		}
	})
	c.Array(2)
	c.BulkString(strconv.FormatUint(cursor, 10))
	c.Array(len(ends))
	from := 0
	for _, end := range ends {
		c.Bulk(text[from:end])
		from = end
		c.spill()
	}
}
