package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/zset"
)

func zsetPopCommands() []*command {
	const group = "sorted-set"
	taken := keyRW | keyAccess | keyDelete
	waits := []keySpec{{flags: taken, first: 1, last: -2, step: 1}}
	return []*command{
		{name: "bzmpop", arity: -5, flags: flagWrite | flagBlocking | flagMovableKeys, cats: catSortedSet,
			keys: []keySpec{countedKeys(taken, 2)}, run: bzmpopCommand,
			doc: doc{"Removes and returns the first or last members of the first set that is not empty, or waits for one.", "7.0.0", group,
				"O(K + M log N), K the number of keys, N the size of the set, M the members removed", "", ""}},
		{name: "bzpopmax", arity: -3, flags: flagWrite | flagNoscript | flagBlocking | flagFast, cats: catSortedSet, keys: waits, run: bzpopmaxCommand,
			doc: doc{"Removes and returns the member with the highest score, or waits for one.", "5.0.0", group, "O(log N), N the size of the set", "", ""}},
		{name: "bzpopmin", arity: -3, flags: flagWrite | flagNoscript | flagBlocking | flagFast, cats: catSortedSet, keys: waits, run: bzpopminCommand,
			doc: doc{"Removes and returns the member with the lowest score, or waits for one.", "5.0.0", group, "O(log N), N the size of the set", "", ""}},
		{name: "zmpop", arity: -4, flags: flagWrite | flagMovableKeys, cats: catSortedSet,
			keys: []keySpec{countedKeys(taken, 1)}, run: zmpopCommand,
			doc: doc{"Removes and returns the first or last members of the first set that is not empty.", "7.0.0", group,
				"O(K + M log N), K the number of keys, N the size of the set, M the members removed", "", ""}},
		{name: "zpopmax", arity: -2, flags: flagWrite | flagFast, cats: catSortedSet,
			keys: oneKey(taken), run: zpopmaxCommand,
			doc: doc{"Removes and returns the members with the highest scores.", "5.0.0", group, "O(M log N), N the size of the set, M the members removed", "", ""}},
		{name: "zpopmin", arity: -2, flags: flagWrite | flagFast, cats: catSortedSet,
			keys: oneKey(taken), run: zpopminCommand,
			doc: doc{"Removes and returns the members with the lowest scores.", "5.0.0", group, "O(M log N), N the size of the set, M the members removed", "", ""}},
	}
}

func zpopminCommand(c *client, args [][]byte) { c.zpop(args, false) }

func zpopmaxCommand(c *client, args [][]byte) { c.zpop(args, true) }

// zpop implements ZPOPMIN and ZPOPMAX.
func (c *client) zpop(args [][]byte, highest bool) {
	if len(args) > 3 {
		c.fail(errSyntax)
		return
	}
	count, counted := int64(1), len(args) == 3
	if counted {
		var ok bool
		if count, ok = c.positiveArg(args[2], 0, "ERR value is out of range, must be positive"); !ok {
			return
		}
	}
	s, _, ok := c.editZset(args[1])
	if !ok {
		return
	}
	n := int(min(count, int64(s.Len())))
	nested := counted && c.Proto == 3
	if nested {
		c.Array(n)
	} else {
		c.Array(2 * n)
	}
	c.zpopMembers(args[1], s, n, highest, nested)
}

// zpopMembers removes the first n members, or the last ones, and adds them to the reply.
func (c *client) zpopMembers(key []byte, s *zset.Set, n int, highest, nested bool) {
	rank, first := 0, 0
	if highest {
		rank, first = s.Len()-n, s.Len()-1
	}
	if n > 0 {
		left := n
		s.Each(first, highest, func(member []byte, score float64) bool {
			if nested {
				c.Array(2)
			}
			c.Bulk(member)
			c.Double(score)
			c.spill()
			left--
			return left > 0
		})
		s.RemoveRanks(rank, n)
		c.changed(key)
	}
	s.Commit()
	if n > 0 {
		c.notifyTaken(eventZset, endEvent(highest, "zpopmax", "zpopmin"), key)
	}
}

// zmpopOptions are the arguments of ZMPOP from the number of keys on.
type zmpopOptions struct {
	keys    [][]byte
	highest bool
	count   int64
}

func (o *zmpopOptions) parse(c *client, args [][]byte) bool {
	n, ok := c.positiveArg(args[0], 1, "ERR numkeys should be greater than 0")
	if !ok {
		return false
	}
	if n > int64(len(args)-2) {
		c.fail(errSyntax)
		return false
	}
	o.keys, args = args[1:1+n], args[1+n:]
	switch {
	case isWord(args[0], "MIN"):
	case isWord(args[0], "MAX"):
		o.highest = true
	default:
		c.fail(errSyntax)
		return false
	}
	o.count = 1
	switch {
	case len(args) == 1:
		return true
	case len(args) < 3 || !isWord(args[1], "COUNT"):
		c.fail(errSyntax)
		return false
	}
	if o.count, ok = c.positiveArg(args[2], 1, "ERR count should be greater than 0"); !ok {
		return false
	}
	if len(args) > 3 {
		c.fail(errSyntax)
		return false
	}
	return true
}

func zmpopCommand(c *client, args [][]byte) {
	var o zmpopOptions
	if o.parse(c, args[1:]) && !c.popFirstZset(o.keys, o.pop) {
		c.NullArray()
	}
}

func bzmpopCommand(c *client, args [][]byte) {
	var o zmpopOptions
	if o.parse(c, args[2:]) {
		c.popZsetOrBlock(o.keys, args[1], o.pop)
	}
}

// pop replies with the key and members of its set, which is not empty, and removes them.
func (o *zmpopOptions) pop(c *client, key []byte, it store.Item) {
	s := c.server.sortedSets().Edit(c.db.keys, key, it)
	n := int(min(o.count, int64(s.Len())))
	c.Array(2)
	c.Bulk(key)
	c.Array(n)
	c.zpopMembers(key, s, n, o.highest, true)
}

func bzpopminCommand(c *client, args [][]byte) { c.bzpop(args, false) }

func bzpopmaxCommand(c *client, args [][]byte) { c.bzpop(args, true) }

// bzpop implements BZPOPMIN and BZPOPMAX.
func (c *client) bzpop(args [][]byte, highest bool) {
	last := len(args) - 1
	c.popZsetOrBlock(args[1:last], args[last], func(c *client, key []byte, it store.Item) {
		s := c.server.sortedSets().Edit(c.db.keys, key, it)
		c.Array(3)
		c.Bulk(key)
		c.zpopMembers(key, s, 1, highest, false)
	})
}

// popFirstZset calls pop for the first key that has a set. It reports false, without a
// reply, if there is none.
func (c *client) popFirstZset(keys [][]byte, pop popper) bool {
	for _, key := range keys {
		it := c.db.find(key)
		if !c.isZset(it) {
			return true
		}
		if it.Exists() {
			pop(c, key, it)
			return true
		}
	}
	return false
}

// popZsetOrBlock is popFirstZset, but waits if there is no set.
func (c *client) popZsetOrBlock(keys [][]byte, timeout []byte, pop popper) {
	ms, ok := c.timeoutArg(timeout)
	if !ok || c.popFirstZset(keys, pop) {
		return
	}
	if !c.mayBlock() {
		c.NullArray()
		return
	}
	c.block(keys, store.ZSet, ms, func(c *client, key []byte, it store.Item) bool {
		pop(c, key, it)
		return true
	})
}

func zrandmemberCommand(c *client, args [][]byte) {
	if len(args) == 2 {
		s, ok := c.readZset(args[1])
		switch {
		case !ok:
		case s.Len() == 0:
			c.Null()
		default:
			member, _ := c.randomMember(&s)
			c.Bulk(member)
		}
		return
	}
	count, ok := c.randomCount(args[2])
	if !ok {
		return
	}
	scores := len(args) == 4
	switch {
	case len(args) > 4 || scores && !isWord(args[3], "WITHSCORES"):
		c.fail(errSyntax)
		return
	case scores && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		c.fail("ERR value is out of range")
		return
	}
	if s, ok := c.readZset(args[1]); ok {
		c.randomMembers(&s, count, scores)
	}
}

// randomMember returns a random member of a set, which must not be empty.
func (c *client) randomMember(s *zset.Set) (member []byte, score float64) {
	return s.At(c.randomIndex(s.Len()))
}

// randomMembers replies with different random members, or with -count that may repeat.
func (c *client) randomMembers(s *zset.Set, count int64, scores bool) {
	n := s.Len()
	switch {
	case n == 0 || count == 0:
		c.Array(0)
	case count < 0:
		if scores && c.Proto != 3 {
			c.arrayHeader(-2 * count)
		} else {
			c.arrayHeader(-count)
		}
		for ; count < 0 && c.wanted(); count++ {
			member, score := c.randomMember(s)
			c.member(member, score, scores)
		}
	case count >= int64(n):
		c.scored(n, scores)
		for member, score := range s.Back(n - 1) {
			c.member(member, score, scores)
		}
	default:
		c.scored(int(count), scores)
		c.sampleMembers(s, int(count), scores)
	}
}

// sampleMembers adds count different members, fewer than there are.
func (c *client) sampleMembers(s *zset.Set, count int, scores bool) {
	if count > s.Len()/8 {
		pick := c.sampler(s.Len(), count)
		for member, score := range s.From(0) {
			if pick() {
				c.member(member, score, scores)
			}
		}
		return
	}
	seen := make(map[int]bool, count)
	for len(seen) < count {
		rank := c.randomIndex(s.Len())
		if seen[rank] {
			continue
		}
		seen[rank] = true
		member, score := s.At(rank)
		c.member(member, score, scores)
	}
}
