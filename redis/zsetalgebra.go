package redis

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/zset"
)

func zsetAlgebraCommands() []*command {
	const group = "sorted-set"
	sources := func(at int) keySpec { return countedKeys(keyRO|keyAccess, at) }
	target := keySpec{flags: keyOW | keyUpdate, first: 1, step: 1}
	read := func(name, since, summary, complexity string, run func(*client, [][]byte)) *command {
		return &command{name: name, arity: -3, flags: flagReadonly | flagMovableKeys, cats: catSortedSet,
			keys: []keySpec{sources(1)}, run: run, doc: doc{summary, since, group, complexity, "", ""}}
	}
	written := func(name, since, summary, complexity string, run func(*client, [][]byte)) *command {
		return &command{name: name, arity: -4, flags: flagWrite | flagDenyOOM | flagMovableKeys, cats: catSortedSet,
			keys: []keySpec{target, sources(2)}, run: run, doc: doc{summary, since, group, complexity, "", ""}}
	}
	const union = "O(N + M log M), N the sizes of all sets, M that of the result"
	const inter = "O(NK + M log M), N the size of the smallest set, K the number of sets, M the size of the result"
	const diff = "O(NK + M log M), N the size of the first set, K the number of sets, M the size of the result"
	return []*command{
		read("zdiff", "6.2.0", "Returns the members of the first set that no other has.", diff, zdiffCommand),
		written("zdiffstore", "6.2.0", "Stores the members of the first set that no other has.", diff, zdiffstoreCommand),
		read("zinter", "6.2.0", "Returns the members that all sets have.", inter, zinterCommand),
		read("zintercard", "7.0.0", "Counts the members that all sets have.", inter, zintercardCommand),
		written("zinterstore", "2.0.0", "Stores the members that all sets have.", inter, zinterstoreCommand),
		read("zunion", "6.2.0", "Returns the members that any set has.", union, zunionCommand),
		written("zunionstore", "2.0.0", "Stores the members that any set has.", union, zunionstoreCommand),
	}
}

// scoredMember is a member with its score, outside of the store.
type scoredMember struct {
	member string
	score  float64
}

type scoredMembers []scoredMember

func (all *scoredMembers) add(member []byte, score float64) {
	*all = append(*all, scoredMember{string(member), score})
}

// sort puts the members in the order of a sorted set.
func (all scoredMembers) sort() {
	slices.SortFunc(all, func(a, b scoredMember) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return cmp.Compare(a.member, b.member)
	})
}

// storeZset makes members, in their order, the sorted set of a key, in the place of
// whatever the key has, publishes an event, and replies with their number. None delete the
// key.
func (c *client) storeZset(key []byte, all scoredMembers, event string) {
	if len(all) == 0 {
		c.storeNothing(key)
		return
	}
	longest := 0
	for _, x := range all {
		longest = max(longest, len(x.member))
	}
	s := c.server.sortedSets().Create(c.db.keys, key, len(all), longest)
	for _, x := range all {
		s.Append([]byte(x.member), x.score)
	}
	s.Commit()
	c.changed(key)
	c.notify(eventZset, event, key)
	c.db.ready(key)
	c.Int(int64(len(all)))
}

// storeNothing deletes the key of an empty result, and replies with 0.
func (c *client) storeNothing(key []byte) {
	if old := c.db.find(key); old.Exists() {
		c.db.keys.Delete(old)
		c.changed(key)
		c.notify(eventGeneric, "del", key)
	}
	c.Int(0)
}

// weighted is a source of a union, an intersection or a difference: a sorted set, or a set,
// whose members have the score 1.
type weighted struct {
	zset   zset.Set
	set    setView // if isSet
	isSet  bool
	weight float64
}

func (w *weighted) len() int {
	if w.isSet {
		return w.set.len()
	}
	return w.zset.Len()
}

func (w *weighted) score(member []byte) (float64, bool) {
	if w.isSet {
		return 1, w.set.has(member)
	}
	return w.zset.Score(member)
}

// all yields the members, backwards as Redis has them: sums of floating point numbers
// depend on their order.
func (w *weighted) all() iter.Seq2[[]byte, float64] {
	if w.isSet {
		return func(yield func([]byte, float64) bool) {
			w.set.each(func(member []byte) bool { return yield(member, 1) })
		}
	}
	return w.zset.Back(w.zset.Len() - 1)
}

// algebra is a command of the family: what it does with which sets.
type algebra struct {
	sources   []weighted
	aggregate func(a, b float64) float64
	scores    bool
	limit     int64 // ZINTERCARD; 0: none
}

// algebraKind is what the options of an algebra command are.
type algebraKind struct {
	weights, scores, limit bool
}

// parse reads the arguments from the number of keys on.
func (a *algebra) parse(c *client, args [][]byte, name string, kind algebraKind) bool {
	n, ok := c.int64Arg(args[0])
	if !ok {
		return false
	}
	args = args[1:]
	switch {
	case n < 1:
		c.fail("ERR at least 1 input key is needed for '" + name + "' command")
		return false
	case n > int64(len(args)):
		c.fail(errSyntax)
		return false
	}
	a.sources = make([]weighted, n)
	for i, key := range args[:n] {
		// An expired key is deleted first, since that changes the store.
		c.db.find(key)
		a.sources[i].weight = 1
	}
	for i, key := range args[:n] {
		if !a.sources[i].open(c, key) {
			c.fail(errWrongType)
			return false
		}
	}
	return a.options(c, args[n:], kind)
}

// open finds a source. It reports false if the key has another type.
func (w *weighted) open(c *client, key []byte) bool {
	it := c.db.read(key)
	switch {
	case !it.Exists() || it.Type() == store.ZSet:
		w.zset = zset.Open(c.db.keys, it)
	case it.Type() == store.Set:
		w.set, w.isSet = c.db.viewSet(it), true
	default:
		return false
	}
	return true
}

func (a *algebra) options(c *client, args [][]byte, kind algebraKind) bool {
	a.aggregate = sumScores
	for len(args) > 0 {
		used := 0
		switch arg := args[0]; {
		case kind.weights && len(args) > len(a.sources) && isWord(arg, "WEIGHTS"):
			used = 1 + len(a.sources)
			for i := range a.sources {
				var ok bool
				if a.sources[i].weight, ok = c.doubleArg(args[1+i], "ERR weight value is not a float"); !ok {
					return false
				}
			}
		case kind.weights && len(args) > 1 && isWord(arg, "AGGREGATE"):
			used = 2
			if a.aggregate = aggregates(args[1]); a.aggregate == nil {
				c.fail(errSyntax)
				return false
			}
		case kind.scores && isWord(arg, "WITHSCORES"):
			used = 1
			a.scores = true
		case kind.limit && len(args) > 1 && isWord(arg, "LIMIT"):
			used = 2
			var ok bool
			if a.limit, ok = c.positiveArg(args[1], 0, "ERR LIMIT can't be negative"); !ok {
				return false
			}
		default:
			c.fail(errSyntax)
			return false
		}
		args = args[used:]
	}
	return true
}

// aggregates returns the function of a word, or nil.
func aggregates(word []byte) func(a, b float64) float64 {
	switch {
	case isWord(word, "SUM"):
		return sumScores
	case isWord(word, "MIN"):
		return func(a, b float64) float64 {
			if b < a {
				return b
			}
			return a
		}
	case isWord(word, "MAX"):
		return func(a, b float64) float64 {
			if b > a {
				return b
			}
			return a
		}
	}
	return nil
}

// sumScores adds two scores; the sum of opposite infinities is 0.
func sumScores(a, b float64) float64 { return orZero(a + b) }

func orZero(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// bySize puts the smallest sources first.
func (a *algebra) bySize() {
	slices.SortStableFunc(a.sources, func(x, y weighted) int { return cmp.Compare(x.len(), y.len()) })
}

// union returns the members that any source has.
func (a *algebra) union() (all scoredMembers) {
	a.bySize()
	if len(a.sources) > 0 {
		all = make(scoredMembers, 0, a.sources[len(a.sources)-1].len())
	}
	index := make(map[string]int)
	for i := range a.sources {
		w := &a.sources[i]
		for member, score := range w.all() {
			score = orZero(w.weight * score)
			if at, ok := index[string(member)]; ok {
				all[at].score = a.aggregate(all[at].score, score)
				continue
			}
			all.add(member, score)
			index[all[len(all)-1].member] = len(all) - 1
		}
	}
	all.sort()
	return all
}

// eachCommon calls visit for the members that all sources have, until it returns false.
func (a *algebra) eachCommon(visit func(member []byte, score float64) bool) {
	a.bySize()
	first := &a.sources[0]
	for member, score := range first.all() {
		score = orZero(first.weight * score)
		common := true
		for i := 1; i < len(a.sources) && common; i++ {
			w := &a.sources[i]
			var other float64
			if other, common = w.score(member); common {
				score = a.aggregate(score, other*w.weight)
			}
		}
		if common && !visit(member, score) {
			return
		}
	}
}

// inter returns the members that all sources have.
func (a *algebra) inter() (all scoredMembers) {
	a.eachCommon(func(member []byte, score float64) bool {
		all.add(member, score)
		return true
	})
	all.sort()
	return all
}

// diff returns the members of the first source that no other has.
func (a *algebra) diff() (all scoredMembers) {
	for member, score := range a.sources[0].all() {
		found := false
		for i := 1; i < len(a.sources) && !found; i++ {
			_, found = a.sources[i].score(member)
		}
		if !found {
			all.add(member, score)
		}
	}
	all.sort()
	return all
}

// algebra implements a command that returns a result.
func (c *client) algebra(args [][]byte, name string, kind algebraKind, result func(*algebra) scoredMembers) {
	var a algebra
	if !a.parse(c, args[1:], name, kind) {
		return
	}
	all := result(&a)
	c.scored(len(all), a.scores)
	for _, x := range all {
		if a.scores && c.Proto == 3 {
			c.Array(2)
		}
		c.BulkString(x.member)
		if a.scores {
			c.Double(x.score)
		}
		c.spill()
	}
}

// algebraStore implements a command that stores a result.
func (c *client) algebraStore(args [][]byte, name string, kind algebraKind, result func(*algebra) scoredMembers) {
	var a algebra
	if a.parse(c, args[2:], name, kind) {
		c.storeZset(args[1], result(&a), name)
	}
}

func zunionCommand(c *client, args [][]byte) {
	c.algebra(args, "zunion", algebraKind{weights: true, scores: true}, (*algebra).union)
}

func zinterCommand(c *client, args [][]byte) {
	c.algebra(args, "zinter", algebraKind{weights: true, scores: true}, (*algebra).inter)
}

func zdiffCommand(c *client, args [][]byte) {
	c.algebra(args, "zdiff", algebraKind{scores: true}, (*algebra).diff)
}

func zunionstoreCommand(c *client, args [][]byte) {
	c.algebraStore(args, "zunionstore", algebraKind{weights: true}, (*algebra).union)
}

func zinterstoreCommand(c *client, args [][]byte) {
	c.algebraStore(args, "zinterstore", algebraKind{weights: true}, (*algebra).inter)
}

func zdiffstoreCommand(c *client, args [][]byte) {
	c.algebraStore(args, "zdiffstore", algebraKind{}, (*algebra).diff)
}

func zintercardCommand(c *client, args [][]byte) {
	var a algebra
	if !a.parse(c, args[1:], "zintercard", algebraKind{limit: true}) {
		return
	}
	n := int64(0)
	a.eachCommon(func([]byte, float64) bool {
		n++
		return n != a.limit
	})
	c.Int(n)
}
