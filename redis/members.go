package redis

import (
	"github.com/rondo-go/rondo/redis/intset"
	"github.com/rondo-go/rondo/redis/store"
)

// setTypeCommands are the commands on sets; the command SET is one on strings.
func setTypeCommands() []*command {
	const group = "set"
	const write = flagWrite | flagDenyOOM
	const fast = flagReadonly | flagFast
	read := oneKey(keyRO | keyAccess)
	unordered := []string{"nondeterministic_output_order"}
	vague := []string{"nondeterministic_output"}
	stored := []keySpec{{flags: keyOW | keyUpdate, first: 1, step: 1}, {flags: keyRO | keyAccess, first: 2, last: -1, step: 1}}
	return []*command{
		{name: "sadd", arity: -3, flags: write | flagFast, cats: catSet, keys: oneKey(keyRW | keyInsert), run: saddCommand,
			doc: doc{"Adds members to a set.", "1.0.0", group, "O(N), N the number of members to add", "", ""}},
		{name: "scard", arity: 2, flags: fast, cats: catSet, keys: oneKey(keyRO), run: scardCommand,
			doc: doc{"Returns the number of members of a set.", "1.0.0", group, "O(1)", "", ""}},
		{name: "sdiff", arity: -2, flags: flagReadonly, cats: catSet, keys: allKeys(keyRO|keyAccess, 1), tips: unordered, run: sdiffCommand,
			doc: doc{"Returns the members of a set that other sets do not have.", "1.0.0", group, "O(N), N the number of members of all sets", "", ""}},
		{name: "sdiffstore", arity: -3, flags: write, cats: catSet, keys: stored, run: sdiffstoreCommand,
			doc: doc{"Stores the members of a set that other sets do not have.", "1.0.0", group, "O(N), N the number of members of all sets", "", ""}},
		{name: "sinter", arity: -2, flags: flagReadonly, cats: catSet, keys: allKeys(keyRO|keyAccess, 1), tips: unordered, run: sinterCommand,
			doc: doc{"Returns the members that all sets have.", "1.0.0", group, "O(N*M), N the members of the smallest set, M the number of sets", "", ""}},
		{name: "sintercard", arity: -3, flags: flagReadonly | flagMovableKeys, cats: catSet,
			keys: []keySpec{countedKeys(keyRO|keyAccess, 1)}, run: sintercardCommand,
			doc: doc{"Counts the members that all sets have.", "7.0.0", group, "O(N*M), N the members of the smallest set, M the number of sets", "", ""}},
		{name: "sinterstore", arity: -3, flags: write, cats: catSet, keys: []keySpec{{flags: keyRW | keyUpdate, first: 1, step: 1}, stored[1]}, run: sinterstoreCommand,
			doc: doc{"Stores the members that all sets have.", "1.0.0", group, "O(N*M), N the members of the smallest set, M the number of sets", "", ""}},
		{name: "sismember", arity: 3, flags: fast, cats: catSet, keys: oneKey(keyRO), run: sismemberCommand,
			doc: doc{"Tells whether a set has a member.", "1.0.0", group, "O(1)", "", ""}},
		{name: "smembers", arity: 2, flags: flagReadonly, cats: catSet, keys: read, tips: unordered, run: smembersCommand,
			doc: doc{"Returns all members of a set.", "1.0.0", group, "O(N), N the size of the set", "", ""}},
		{name: "smismember", arity: -3, flags: fast, cats: catSet, keys: read, run: smismemberCommand,
			doc: doc{"Tells which of several members a set has.", "6.2.0", group, "O(N), N the number of members to look for", "", ""}},
		{name: "smove", arity: 4, flags: flagWrite | flagFast, cats: catSet,
			keys: []keySpec{{flags: keyRW | keyAccess | keyDelete, first: 1, step: 1}, {flags: keyRW | keyInsert, first: 2, step: 1}}, run: smoveCommand,
			doc: doc{"Moves a member from one set to another.", "1.0.0", group, "O(1)", "", ""}},
		{name: "spop", arity: -2, flags: flagWrite | flagFast, cats: catSet, keys: oneKey(keyRW | keyAccess | keyDelete), tips: vague, run: spopCommand,
			doc: doc{"Removes random members of a set and returns them.", "1.0.0", group, "O(N), N the number of members to remove", "", ""}},
		{name: "srandmember", arity: -2, flags: flagReadonly, cats: catSet, keys: read, tips: vague, run: srandmemberCommand,
			doc: doc{"Returns random members of a set.", "1.0.0", group, "O(N), N the number of members to return", "", ""}},
		{name: "srem", arity: -3, flags: flagWrite | flagFast, cats: catSet, keys: oneKey(keyRW | keyDelete), run: sremCommand,
			doc: doc{"Removes members of a set.", "1.0.0", group, "O(N), N the number of members to remove", "", ""}},
		{name: "sscan", arity: -3, flags: flagReadonly, cats: catSet, keys: read, tips: vague, run: sscanCommand,
			doc: doc{"Iterates over the members of a set in several calls.", "2.8.0", group, "O(N) a call, N being COUNT; O(M) in all, M the number of members", "", ""}},
		{name: "sunion", arity: -2, flags: flagReadonly, cats: catSet, keys: allKeys(keyRO|keyAccess, 1), tips: unordered, run: sunionCommand,
			doc: doc{"Returns the members that any of several sets has.", "1.0.0", group, "O(N), N the number of members of all sets", "", ""}},
		{name: "sunionstore", arity: -3, flags: write, cats: catSet, keys: stored, run: sunionstoreCommand,
			doc: doc{"Stores the members that any of several sets has.", "1.0.0", group, "O(N), N the number of members of all sets", "", ""}},
	}
}

// readSet returns a view of the set at a key. If there is none, it replies with
// what missing adds; if the value is of another type, with an error.
func (c *client) readSet(key []byte, missing func()) (s setView, ok bool) {
	it := c.db.read(key)
	switch {
	case !it.Exists():
		missing()
		return s, false
	case !c.typed(it, store.Set):
		return s, false
	}
	return c.db.viewSet(it), true
}

func (c *client) emptySet() { c.Set(0) }

// truth adds 1 or 0.
func (c *client) truth(v bool) {
	if v {
		c.Int(1)
	} else {
		c.Int(0)
	}
}

func saddCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	if !c.typed(it, store.Set) {
		return
	}
	var e setEdit
	e.begin(c, args[1], it)
	added := 0
	for _, member := range args[2:] {
		if e.add(member) {
			added++
		}
	}
	e.finish(added > 0)
	if added > 0 {
		c.notify(eventSet, "sadd", args[1])
	}
	c.Int(int64(added))
}

func sremCommand(c *client, args [][]byte) {
	it := c.db.find(args[1])
	if !it.Exists() {
		c.Int(0)
		return
	}
	if !c.typed(it, store.Set) {
		return
	}
	var e setEdit
	e.begin(c, args[1], it)
	removed := 0
	for _, member := range args[2:] {
		if e.remove(member) {
			removed++
		}
	}
	e.finish(removed > 0)
	if removed > 0 {
		c.notifyTaken(eventSet, "srem", args[1])
	}
	c.Int(int64(removed))
}

func smoveCommand(c *client, args [][]byte) {
	from, to, member := args[1], args[2], args[3]
	c.db.find(to) // deletes it if it has expired, before there is an Item of from
	it := c.db.find(from)
	if !it.Exists() {
		c.Int(0)
		return
	}
	if !c.typed(it, store.Set) || !c.typed(c.db.keys.Peek(to), store.Set) {
		return
	}
	s := c.db.viewSet(it)
	if !s.has(member) || string(from) == string(to) {
		c.truth(s.has(member))
		return
	}
	var source setEdit
	source.begin(c, from, it)
	source.remove(member)
	source.finish(true)
	c.notifyTaken(eventSet, "srem", from)
	var target setEdit
	target.begin(c, to, c.db.keys.Peek(to))
	added := target.add(member)
	target.finish(added)
	if added {
		c.notify(eventSet, "sadd", to)
	}
	c.Int(1)
}

func sismemberCommand(c *client, args [][]byte) {
	if s, ok := c.readSet(args[1], c.zero); ok {
		c.truth(s.has(args[2]))
	}
}

func smismemberCommand(c *client, args [][]byte) {
	var s setView
	it := c.db.read(args[1])
	if !c.typed(it, store.Set) {
		return
	}
	if it.Exists() {
		s = c.db.viewSet(it)
	}
	c.Array(len(args) - 2)
	for _, member := range args[2:] {
		c.truth(s.has(member))
	}
}

func scardCommand(c *client, args [][]byte) {
	if s, ok := c.readSet(args[1], c.zero); ok {
		c.Int(int64(s.len()))
	}
}

func smembersCommand(c *client, args [][]byte) {
	if s, ok := c.readSet(args[1], c.emptySet); ok {
		c.members(&s)
	}
}

// members adds all members of a set.
func (c *client) members(s *setView) {
	c.Set(s.len())
	for m := range s.each {
		c.value(m)
	}
}

func spopCommand(c *client, args [][]byte) {
	count, missing := int64(1), c.Null
	switch {
	case len(args) > 3:
		c.fail(errSyntax)
		return
	case len(args) == 3:
		var ok bool
		if count, ok = c.positiveArg(args[2], 0, "ERR value is out of range, must be positive"); !ok {
			return
		}
		missing = c.emptySet
	}
	it := c.db.find(args[1])
	if !it.Exists() {
		missing()
		return
	}
	if !c.typed(it, store.Set) {
		return
	}
	s := c.db.viewSet(it)
	n := int(min(count, int64(s.len())))
	if len(args) == 3 {
		c.Set(n)
	}
	if n == s.len() {
		for m := range s.each {
			c.value(m)
		}
		c.db.keys.Delete(it)
		c.changed(args[1])
		c.notifyTaken(eventSet, "spop", args[1])
		return
	}
	var e setEdit
	e.begin(c, args[1], it)
	e.pop(n)
	e.finish(n > 0)
	if n > 0 {
		c.notify(eventSet, "spop", args[1])
	}
}

// pop removes n random members, and adds them to the reply.
func (e *setEdit) pop(n int) {
	if e.nested {
		for ; n > 0; n-- {
			m := e.random(e.c)
			e.c.value(m)
			e.remove(m)
		}
		return
	}
	pick := e.c.sampler(e.len(), n)
	rest := intset.Init(nil)
	for i := range e.len() {
		if pick() {
			e.c.value(e.text(i))
		} else {
			rest, _ = intset.Add(rest, intset.At(e.ints, i))
		}
	}
	e.ints = rest
}

func srandmemberCommand(c *client, args [][]byte) {
	if len(args) > 3 {
		c.fail(errSyntax)
		return
	}
	if len(args) == 2 {
		if s, ok := c.readSet(args[1], c.Null); ok {
			c.value(s.random(c))
		}
		return
	}
	count, ok := c.randomCount(args[2])
	if !ok {
		return
	}
	s, ok := c.readSet(args[1], c.emptyArray)
	if !ok {
		return
	}
	if count < 0 {
		c.arrayHeader(-count)
		for ; count < 0 && c.wanted(); count++ {
			c.value(s.random(c))
		}
		return
	}
	n := int(min(count, int64(s.len())))
	c.Array(n)
	if s.nested {
		for m := range c.someOf(s.dict, n) {
			c.value(s.dict.Name(m))
		}
		return
	}
	pick := c.sampler(s.len(), n)
	for m := range s.each {
		if pick() {
			c.value(m)
		}
	}
}

func sscanCommand(c *client, args [][]byte) {
	cursor, ok := scanCursor(args[2])
	if !ok {
		c.fail("ERR invalid cursor")
		return
	}
	s, ok := c.readSet(args[1], c.emptyScan)
	if !ok {
		return
	}
	opts := scanOptions{count: 10, pattern: []byte("*"), nested: true}
	if !opts.parse(c, args[3:]) {
		return
	}
	c.scanned(func(found func([]byte)) (next uint64) {
		member := func(m []byte) {
			if globAll(opts.pattern, m) {
				found(m)
			}
		}
		if s.nested {
			return s.dict.Scan(cursor, opts.count, func(m store.Handle) { member(s.dict.Name(m)) })
		}
		for m := range s.each {
			member(m)
		}
		return 0
	})
}
