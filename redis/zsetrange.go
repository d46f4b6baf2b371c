package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/zset"
	"github.com/rondo-go/rondo/resp"
)

func zsetRangeCommands() []*command {
	const group = "sorted-set"
	const complexity = "O(log N + M), N the size of the set, M the members returned"
	const removing = "O(log N + M), N the size of the set, M the members removed"
	ranged := func(name, since, summary, instead string, run func(*client, [][]byte)) *command {
		cmd := &command{name: name, arity: -4, flags: flagReadonly, cats: catSortedSet,
			keys: oneKey(keyRO | keyAccess), run: run, doc: doc{summary, since, group, complexity, "", ""}}
		if instead != "" {
			cmd.doc.deprecated, cmd.doc.instead = "6.2.0", instead
		}
		return cmd
	}
	removed := func(name, since, summary string, run func(*client, [][]byte)) *command {
		return &command{name: name, arity: 4, flags: flagWrite, cats: catSortedSet,
			keys: oneKey(keyRW | keyDelete), run: run, doc: doc{summary, since, group, removing, "", ""}}
	}
	return []*command{
		ranged("zrange", "1.2.0", "Returns members in a range of ranks, scores or bytes.", "", zrangeCommand),
		ranged("zrangebylex", "2.8.9", "Returns members in a range of their bytes, where all scores are equal.",
			"`ZRANGE` with the `BYLEX` argument", zrangebylexCommand),
		ranged("zrangebyscore", "1.0.5", "Returns members with scores in a range.",
			"`ZRANGE` with the `BYSCORE` argument", zrangebyscoreCommand),
		{name: "zrangestore", arity: -5, flags: flagWrite | flagDenyOOM, cats: catSortedSet,
			keys: []keySpec{{flags: keyOW | keyUpdate, first: 1, step: 1}, {flags: keyRO | keyAccess, first: 2, step: 1}},
			run:  zrangestoreCommand,
			doc:  doc{"Stores members in a range as a sorted set.", "6.2.0", group, "O(log N + M), N the size of the set, M the members stored", "", ""}},
		removed("zremrangebylex", "2.8.9", "Removes members in a range of their bytes, where all scores are equal.", zremrangebylexCommand),
		removed("zremrangebyrank", "2.0.0", "Removes members in a range of ranks.", zremrangebyrankCommand),
		removed("zremrangebyscore", "1.2.0", "Removes members with scores in a range.", zremrangebyscoreCommand),
		ranged("zrevrange", "1.2.0", "Returns members in a range of ranks, from the highest score.",
			"`ZRANGE` with the `REV` argument", zrevrangeCommand),
		ranged("zrevrangebylex", "2.8.9", "Returns members in a range of their bytes, backwards, where all scores are equal.",
			"`ZRANGE` with the `REV` and `BYLEX` arguments", zrevrangebylexCommand),
		ranged("zrevrangebyscore", "2.2.0", "Returns members with scores in a range, from the highest score.",
			"`ZRANGE` with the `REV` and `BYSCORE` arguments", zrevrangebyscoreCommand),
	}
}

// rangeKind is what the limits of a range are.
type rangeKind uint8

const (
	byAny rangeKind = iota // an option may tell, else ranks
	byRank
	byScore
	byLex
)

// zrange is a range of a sorted set: of ranks, or of a part of those between two Bounds.
type zrange struct {
	kind    rangeKind
	reverse bool
	scores  bool // WITHSCORES

	start, end int64 // ranks, byRank
	from, to   zset.Bound
	all        [2]bool // byLex: from, to is the end of the set
	none       [2]bool // byLex: from, to is its other end

	offset, limit int64 // LIMIT; -1: no limit
}

// fixed says which options a command has no words for: its name decides.
type fixedRange struct{ kind, direction, store bool }

// parse reads the options of a range.
func (r *zrange) parse(c *client, args [][]byte, fixed fixedRange) bool {
	r.limit = -1
	kinded := fixed.kind
	directed := fixed.direction
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case !fixed.store && isWord(arg, "WITHSCORES"):
			r.scores = true
		case isWord(arg, "LIMIT") && i+2 < len(args):
			var ok1, ok2 bool
			if r.offset, ok1 = c.int64Arg(args[i+1]); !ok1 {
				return false
			}
			if r.limit, ok2 = c.int64Arg(args[i+2]); !ok2 {
				return false
			}
			i += 2
		case !directed && isWord(arg, "REV"):
			r.reverse, directed = true, true
		case !kinded && isWord(arg, "BYLEX"):
			r.kind, kinded = byLex, true
		case !kinded && isWord(arg, "BYSCORE"):
			r.kind, kinded = byScore, true
		default:
			c.fail(errSyntax)
			return false
		}
	}
	if r.kind == byAny {
		r.kind = byRank
	}
	switch {
	case r.limit != -1 && r.kind == byRank:
		c.fail("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	case r.scores && r.kind == byLex:
		c.fail("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	default:
		return true
	}
	return false
}

// between reads the two ends of a range.
func (r *zrange) between(c *client, low, high []byte) bool {
	if r.reverse && r.kind != byRank {
		low, high = high, low
	}
	switch r.kind {
	case byScore:
		ok1, ok2 := false, false
		r.from, ok1 = scoreBound(low, false)
		r.to, ok2 = scoreBound(high, true)
		if !ok1 || !ok2 {
			c.fail(errScoreRange)
			return false
		}
	case byLex:
		if !r.lexBound(0, low) || !r.lexBound(1, high) {
			c.fail(errLexRange)
			return false
		}
	default:
		var ok bool
		if r.start, ok = c.int64Arg(low); !ok {
			return false
		}
		if r.end, ok = c.int64Arg(high); !ok {
			return false
		}
	}
	return true
}

// scoreBound reads an end of a range of scores. upper says which one.
func scoreBound(arg []byte, upper bool) (b zset.Bound, ok bool) {
	open := len(arg) > 0 && arg[0] == '('
	if open {
		arg = arg[1:]
	}
	if n, ok := resp.ParseInt(arg); ok {
		return zset.AtScore(float64(n), upper != open), true
	}
	score, n, _ := scanDouble(arg)
	if n < len(arg) && arg[n] != 0 || math.IsNaN(score) { // a C string ends at a zero byte
		return b, false
	}
	return zset.AtScore(score, upper != open), true
}

// lexBound reads an end of a range of members: 0, the lower one, or 1.
func (r *zrange) lexBound(end int, arg []byte) bool {
	if len(arg) == 0 {
		return false
	}
	upper := end == 1
	switch arg[0] {
	case '-', '+':
		if len(arg) > 1 && arg[1] != 0 {
			return false
		}
		r.all[end] = upper == (arg[0] == '+')
		r.none[end] = !r.all[end]
		return true
	case '(', '[':
		b := zset.AtMember(arg[1:], upper != (arg[0] == '('))
		if upper {
			r.to = b
		} else {
			r.from = b
		}
		return true
	}
	return false
}

// ranks returns the rank of the range's first member in the set's order, and how many
// members it has, without regard to LIMIT.
func (r *zrange) ranks(s *zset.Set) (first, count int) {
	n := s.Len()
	if r.kind == byRank {
		return r.byRank(n)
	}
	from, to := 0, n
	switch {
	case r.none[0]:
		from = n
	case !r.all[0]:
		from = s.Rank(r.from)
	}
	switch {
	case r.none[1]:
		to = 0
	case !r.all[1]:
		to = s.Rank(r.to)
	}
	return from, max(0, to-from)
}

// byRank is ranks for start and end, in a set of n members.
func (r *zrange) byRank(n int) (first, count int) {
	start, end := r.start, r.end
	if start < 0 {
		start = max(0, start+int64(n))
	}
	if end < 0 {
		end += int64(n)
	}
	end = min(end, int64(n)-1)
	if start > end {
		return 0, 0
	}
	count = int(end - start + 1)
	if r.reverse {
		return n - 1 - int(end), count
	}
	return int(start), count
}

// chosen returns the rank of the first member of the result, in the set's order or, if
// reverse is set, from its end, and the number of members.
func (r *zrange) chosen(s *zset.Set) (rank, count int) {
	first, all := r.ranks(s)
	count, skip := all, 0
	if r.kind != byRank {
		if r.offset < 0 || r.offset >= int64(count) {
			return 0, 0
		}
		skip = int(r.offset)
		count -= skip
		if r.limit >= 0 {
			count = int(min(int64(count), r.limit))
		}
	}
	if r.reverse {
		return first + all - 1 - skip, count
	}
	return first + skip, count
}

// each calls visit for the members of the result.
func (r *zrange) each(s *zset.Set, rank, count int, visit func(member []byte, score float64)) {
	if count == 0 {
		return
	}
	s.Each(rank, r.reverse, func(member []byte, score float64) bool {
		visit(member, score)
		count--
		return count > 0
	})
}

// scored begins an array of n members, with their scores if they are wanted.
func (c *client) scored(n int, scores bool) {
	if scores && c.Proto != 3 {
		n *= 2
	}
	c.Array(n)
}

// member adds an element of such an array.
func (c *client) member(member []byte, score float64, scores bool) {
	if scores && c.Proto == 3 {
		c.Array(2)
	}
	c.Bulk(member)
	if scores {
		c.Double(score)
	}
	c.spill()
}

// zrange implements ZRANGE and its relatives.
func (c *client) zrange(args [][]byte, r zrange, fixed fixedRange) {
	if !r.parse(c, args[4:], fixed) || !r.between(c, args[2], args[3]) {
		return
	}
	s, ok := c.readZset(args[1])
	if !ok {
		return
	}
	rank, count := r.chosen(&s)
	c.scored(count, r.scores)
	r.each(&s, rank, count, func(member []byte, score float64) { c.member(member, score, r.scores) })
}

func zrangeCommand(c *client, args [][]byte) { c.zrange(args, zrange{}, fixedRange{}) }

func zrangebylexCommand(c *client, args [][]byte) {
	c.zrange(args, zrange{kind: byLex}, fixedRange{kind: true, direction: true})
}

func zrangebyscoreCommand(c *client, args [][]byte) {
	c.zrange(args, zrange{kind: byScore}, fixedRange{kind: true, direction: true})
}

func zrevrangeCommand(c *client, args [][]byte) {
	c.zrange(args, zrange{kind: byRank, reverse: true}, fixedRange{kind: true, direction: true})
}

func zrevrangebylexCommand(c *client, args [][]byte) {
	c.zrange(args, zrange{kind: byLex, reverse: true}, fixedRange{kind: true, direction: true})
}

func zrevrangebyscoreCommand(c *client, args [][]byte) {
	c.zrange(args, zrange{kind: byScore, reverse: true}, fixedRange{kind: true, direction: true})
}

func zrangestoreCommand(c *client, args [][]byte) {
	var r zrange
	if !r.parse(c, args[5:], fixedRange{store: true}) || !r.between(c, args[3], args[4]) {
		return
	}
	s, ok := c.readZset(args[2])
	if !ok {
		return
	}
	var all scoredMembers
	rank, count := r.chosen(&s)
	r.each(&s, rank, count, all.add)
	if count == 0 {
		c.storeNothing(args[1])
		return
	}
	if r.kind != byRank {
		count = 0 // Redis does not know yet
	}
	target := c.server.sortedSets().Create(c.db.keys, args[1], count, 0)
	for _, x := range all {
		target.Set([]byte(x.member), x.score)
	}
	target.Commit()
	c.changed(args[1])
	c.notify(eventZset, "zrangestore", args[1])
	c.db.ready(args[1])
	c.Int(int64(len(all)))
}

// rangeLen replies with the number of members in a range.
func (c *client) rangeLen(args [][]byte, kind rangeKind) {
	r := zrange{kind: kind}
	if !r.between(c, args[2], args[3]) {
		return
	}
	if s, ok := c.readZset(args[1]); ok {
		_, count := r.ranks(&s)
		c.Int(int64(count))
	}
}

func zcountCommand(c *client, args [][]byte) { c.rangeLen(args, byScore) }

func zlexcountCommand(c *client, args [][]byte) { c.rangeLen(args, byLex) }

// removeRange removes the members in a range.
func (c *client) removeRange(args [][]byte, kind rangeKind) {
	r := zrange{kind: kind}
	if !r.between(c, args[2], args[3]) {
		return
	}
	s, _, ok := c.editZset(args[1])
	if !ok {
		return
	}
	rank, count := r.ranks(s)
	s.RemoveRanks(rank, count)
	s.Commit()
	if count > 0 {
		c.changed(args[1])
		c.notifyTaken(eventZset, [...]string{byRank: "zremrangebyrank", byScore: "zremrangebyscore", byLex: "zremrangebylex"}[kind], args[1])
	}
	c.Int(int64(count))
}

func zremrangebylexCommand(c *client, args [][]byte) { c.removeRange(args, byLex) }

func zremrangebyrankCommand(c *client, args [][]byte) { c.removeRange(args, byRank) }

func zremrangebyscoreCommand(c *client, args [][]byte) { c.removeRange(args, byScore) }
