package redis

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/zset"
)

func sortCommands() []*command {
	const group = "generic"
	const complexity = "O(N + M log M), N the number of elements, M that of returned ones"
	const cats = catSet | catSortedSet | catList | catDangerous
	key := keySpec{flags: keyRO | keyAccess, first: 1, step: 1}
	patterns := keySpec{flags: keyRO | keyAccess, unknown: true, search: noKeys,
		notes: "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort"}
	target := keySpec{flags: keyOW | keyUpdate, unknown: true, search: sortTarget, step: 1,
		notes: "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array"}
	return []*command{
		{name: "sort", arity: -2, flags: flagWrite | flagDenyOOM | flagMovableKeys, cats: cats, keys: []keySpec{key, patterns, target}, run: sortCommand,
			doc: doc{"Returns or stores the elements of a list, a set or a sorted set in another order.", "1.0.0", group, complexity, "", ""}},
		{name: "sort_ro", arity: -2, flags: flagReadonly | flagMovableKeys, cats: cats, keys: []keySpec{key, patterns}, run: sortRoCommand,
			doc: doc{"Returns the elements of a list, a set or a sorted set in another order.", "7.0.0", group, complexity, "", ""}},
	}
}

// noKeys finds no key in a request.
func noKeys([][]byte) (first, last int) { return 0, -1 }

// sortTarget finds the key behind the last STORE of a request.
func sortTarget(args [][]byte) (first, last int) {
	first, last = noKeys(args)
	for i := 2; i < len(args); i++ {
		switch {
		case isWord(args[i], "LIMIT"):
			i += 2
		case isWord(args[i], "GET"), isWord(args[i], "BY"):
			i++
		case isWord(args[i], "STORE") && i+1 < len(args):
			first, last = i+1, i+1
			i++
		}
	}
	return first, last
}

// sortOptions are the options of SORT.
type sortOptions struct {
	desc, alpha  bool
	start, count int64 // LIMIT; a negative count: all
	by           *sortPattern
	unsorted     bool // a pattern of BY names the same key for all elements
	get          []sortPattern
	store        []byte // the key, if stores is set
	stores       bool
	readsAll     bool // the client's user may read what BY and GET name
}

func (o *sortOptions) parse(c *client, args [][]byte, mayStore bool) (ok bool) {
	o.count = -1
	for len(args) > 0 {
		used := 2
		switch arg, left := args[0], len(args)-1; {
		case isWord(arg, "ASC"):
			o.desc, used = false, 1
		case isWord(arg, "DESC"):
			o.desc, used = true, 1
		case isWord(arg, "ALPHA"):
			o.alpha, used = true, 1
		case isWord(arg, "LIMIT") && left >= 2:
			if o.start, ok = c.int64Arg(args[1]); !ok {
				return false
			}
			if o.count, ok = c.int64Arg(args[2]); !ok {
				return false
			}
			used = 3
		case isWord(arg, "STORE") && left >= 1 && mayStore:
			o.store, o.stores = args[1], true
		case isWord(arg, "BY") && left >= 1:
			by := parseSortPattern(args[1])
			if by.star && !o.readsAll {
				c.fail("ERR BY option of SORT denied due to insufficient ACL permissions.")
				return false
			}
			o.by, o.unsorted = &by, o.unsorted || !by.star
		case isWord(arg, "GET") && left >= 1:
			if !o.readsAll {
				c.fail("ERR GET option of SORT denied due to insufficient ACL permissions.")
				return false
			}
			o.get = append(o.get, parseSortPattern(args[1]))
		default:
			c.fail(errSyntax)
			return false
		}
		args = args[used:]
	}
	return true
}

// limits returns the range of n elements that LIMIT chooses, without its end.
func (o *sortOptions) limits(n int) (start, end int) {
	start = int(min(max(o.start, 0), int64(n)))
	if o.count < 0 {
		return start, n
	}
	return start, start + int(min(o.count, int64(n-start)))
}

// A sortPattern is the argument of BY or GET: it names a string, or the field of a hash,
// for each element.
type sortPattern struct {
	self           bool // the element itself
	star           bool // an element stands between before and behind; without it there is nothing
	before, behind []byte
	field          []byte // nil: a string
}

// parseSortPattern looks for the parts as Redis does: only before a zero byte.
func parseSortPattern(p []byte) sortPattern {
	text := cString(p, len(p))
	star := bytes.IndexByte(text, '*')
	if star < 0 {
		return sortPattern{self: string(text) == "#"}
	}
	x := sortPattern{star: true, before: p[:star], behind: p[star+1:]}
	arrow := bytes.Index(text[star+1:], []byte("->"))
	if at := star + 1 + arrow; arrow >= 0 && at+2 < len(text) {
		x.behind, x.field = p[star+1:at], p[at+2:]
	}
	return x
}

// find returns what the pattern names for an element: the element, or memory of the store
// or the client's, valid until the next call.
func (p *sortPattern) find(c *client, element []byte) (value []byte, ok bool) {
	if p.self {
		return element, true
	}
	if !p.star {
		return nil, false
	}
	space := c.db.space
	key := append(append(append(space.takeScratch(), p.before...), element...), p.behind...)
	it := c.db.read(key)
	space.keepScratch(key)
	switch {
	case !it.Exists():
	case p.field != nil && it.Type() == store.Hash:
		h := c.db.viewHash(it)
		return h.get(p.field)
	case p.field == nil && it.Type() == store.String:
		if it.Form() == store.Integer {
			return it.AppendTo(space.digits[0][:0]), true
		}
		return it.Bytes(), true
	}
	return nil, false
}

// sortElement is an element with what it is compared by.
type sortElement struct {
	text    []byte
	score   float64
	by      []byte // ALPHA with BY
	missing bool   // there is no by
}

// A copier copies slices into memory that it allocates in larger pieces.
type copier struct{ free []byte }

func (x *copier) copy(b []byte) []byte {
	const least, most = 512, 64 << 10
	if cap(x.free)-len(x.free) < len(b) {
		x.free = make([]byte, 0, max(len(b), min(max(2*cap(x.free), least), most)))
	}
	n := len(x.free)
	x.free = append(x.free, b...)
	return x.free[n:len(x.free):len(x.free)]
}

func sortCommand(c *client, args [][]byte) { c.sort(args, true) }

func sortRoCommand(c *client, args [][]byte) { c.sort(args, false) }

// sort implements SORT and SORT_RO. It copies all elements first, since the lookups of BY
// and GET may delete expired keys.
func (c *client) sort(args [][]byte, mayStore bool) {
	o := sortOptions{readsAll: c.readsAll(c.server.commands.find(args), args)}
	if !o.parse(c, args[2:], mayStore) {
		return
	}
	it := c.db.read(args[1])
	if it.Exists() && it.Type() != store.Set && it.Type() != store.List && it.Type() != store.ZSet {
		c.fail(errWrongType)
		return
	}
	if o.unsorted && o.stores && it.Exists() && it.Type() == store.Set {
		// A stored list of a set's members has an order that can be repeated.
		o.unsorted, o.alpha, o.by = false, true, nil
	}
	var memory copier
	all := c.sortElements(it, &o, &memory)
	if !o.unsorted {
		if !o.weigh(c, all, &memory) {
			c.fail("ERR One or more scores can't be converted into double")
			return
		}
		start, end := o.limits(len(all))
		o.sort(all, start, end)
		all = all[start:end]
	}
	if o.stores {
		c.storeSorted(&o, all)
		return
	}
	c.replySorted(&o, all)
}

// sortElements copies the elements of an Item, which may be zero. If nothing is sorted
// these are the ones that LIMIT chooses.
func (c *client) sortElements(it store.Item, o *sortOptions, memory *copier) (all []sortElement) {
	if !it.Exists() {
		return nil
	}
	n, skip := 0, 0
	add := func(text []byte) bool {
		if skip--; skip < 0 && len(all) < n {
			all = append(all, sortElement{text: memory.copy(text)})
		}
		return len(all) < n
	}
	choose := func(length int) (start int) {
		n = length
		if o.unsorted {
			var end int
			start, end = o.limits(length)
			n = end - start
		}
		all = make([]sortElement, 0, n)
		return start
	}
	switch it.Type() {
	case store.Set:
		s := c.db.viewSet(it)
		skip = choose(s.len())
		s.each(add)
	case store.List:
		c.sortList(it, choose, o.unsorted && o.desc, add)
	default:
		s := zset.Open(c.db.keys, it)
		rank := choose(s.Len())
		back := o.unsorted && o.desc
		if back {
			rank = s.Len() - 1 - rank
		}
		s.Each(rank, back, func(member []byte, _ float64) bool { return add(member) })
	}
	return all
}

// sortList adds the elements of a list from the one on that choose returns, forth or back.
func (c *client) sortList(it store.Item, choose func(length int) int, back bool, add func([]byte) bool) {
	list := c.db.list(it)
	length := list.Len()
	index := choose(length)
	if index >= length {
		return
	}
	step := list.Next
	if back {
		index, step = length-1-index, list.Prev
	}
	var digits [20]byte
	for p := list.Seek(index); p.Exists(); p = step(p) {
		if !add(p.Value().Bytes(digits[:])) {
			return
		}
	}
}

// weigh finds what the elements are compared by. It reports false if a score is none.
func (o *sortOptions) weigh(c *client, all []sortElement, memory *copier) bool {
	if o.alpha && o.by == nil {
		return true
	}
	ok := true
	for i := range all {
		e := &all[i]
		value, found := e.text, true
		if o.by != nil {
			value, found = o.by.find(c, e.text)
		}
		switch {
		case !found:
			e.missing = true
		case o.alpha:
			e.by = memory.copy(value)
		default:
			var valid bool
			e.score, valid = sortScore(value)
			ok = ok && valid
		}
	}
	return ok
}

// sortScore parses a score as C's strtod does. No digits at all are 0.
func sortScore(b []byte) (f float64, ok bool) {
	b = cString(b, len(b))
	if len(b) == 0 {
		return 0, true
	}
	f, n, ranged := scanDouble(b)
	return f, n == len(b) && ranged && !math.IsNaN(f)
}

// sort puts elements in order. With BY and LIMIT these are at least those from start to
// end; elements that BY does not distinguish then have the order that Redis gives them.
func (o *sortOptions) sort(all []sortElement, start, end int) {
	compare := o.compare
	if o.desc {
		compare = func(x, y *sortElement) int { return -o.compare(x, y) }
	}
	if o.by != nil && (start != 0 || end != len(all)) {
		partialSort(all, end, compare)
		return
	}
	slices.SortStableFunc(all, func(x, y sortElement) int { return compare(&x, &y) })
}

func (o *sortOptions) compare(x, y *sortElement) int {
	switch {
	case !o.alpha:
		if r := cmp.Compare(x.score, y.score); r != 0 {
			return r
		}
		return bytes.Compare(x.text, y.text)
	case o.by == nil:
		return o.collate(x.text, y.text)
	case x.missing || y.missing:
		switch {
		case x.missing && y.missing:
			return 0
		case x.missing:
			return -1
		}
		return 1
	}
	return o.collate(x.by, y.by)
}

// collate compares texts. Those to be returned end at a zero byte, as in Redis, which
// compares them by the rules of its system's language: here that is always C.
func (o *sortOptions) collate(a, b []byte) int {
	if !o.stores {
		a, b = cString(a, len(a)), cString(b, len(b))
	}
	return bytes.Compare(a, b)
}

// replySorted replies with elements, or with what GET names for each.
func (c *client) replySorted(o *sortOptions, all []sortElement) {
	if len(o.get) == 0 {
		c.Array(len(all))
		for i := range all {
			c.value(all[i].text)
		}
		return
	}
	c.Array(len(all) * len(o.get))
	for i := range all {
		for j := range o.get {
			if value, ok := o.get[j].find(c, all[i].text); ok {
				c.value(value)
			} else {
				c.Null()
			}
			c.spill()
		}
	}
}

// storeSorted makes elements, or what GET names for each, a list, and replies with its
// length. None delete the key.
func (c *client) storeSorted(o *sortOptions, all []sortElement) {
	if len(all) == 0 {
		c.storeNothing(o.store)
		return
	}
	values := make([][]byte, 0, len(all)*max(1, len(o.get)))
	var memory copier
	for i := range all {
		if len(o.get) == 0 {
			values = append(values, all[i].text)
		}
		for j := range o.get {
			value, _ := o.get[j].find(c, all[i].text)
			values = append(values, memory.copy(value))
		}
	}
	c.db.push(store.Item{}, o.store, false, values...)
	c.changedBy(o.store, len(values))
	c.notify(eventList, "sortstore", o.store)
	c.Int(int64(len(values)))
}
