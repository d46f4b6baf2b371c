package redis

import (
	"math"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/quicklist"
	"github.com/rondo-go/rondo/redis/rdb"
	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/zset"
)

func dumpCommands() []*command {
	const group = "generic"
	return []*command{
		{name: "dump", arity: 2, flags: flagReadonly, cats: catKeyspace, keys: oneKey(keyRO | keyAccess),
			tips: []string{"nondeterministic_output"}, run: dumpCommand,
			doc: doc{"Returns a value in the format of RDB files.", "2.6.0", group, "O(N), N the bytes of the value", "", ""}},
		{name: "restore", arity: -4, flags: flagWrite | flagDenyOOM, cats: catKeyspace | catDangerous, keys: oneKey(keyOW | keyUpdate), run: restoreCommand,
			doc: doc{"Creates a key from what DUMP has returned.", "2.6.0", group, "O(N), N the bytes of the value; O(N log N) for sorted sets", "", ""}},
	}
}

const errBadData = "ERR Bad data format"

func dumpCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	if !it.Exists() {
		c.Null()
		return
	}
	s := c.server
	e := &s.encoder
	e.Compress = s.config.compress
	e.B = s.space.takeScratch()
	c.db.encode(e, it)
	e.Seal()
	c.value(e.B)
	s.space.keepScratch(e.B)
	e.B = nil
}

// encode appends the value of an Item, in the types that Redis 7.0 gives values of its
// encoding.
func (db *database) encode(e *rdb.Encoder, it store.Item) {
	switch it.Type() {
	case store.String:
		e.Type(rdb.TypeString)
		if n, ok := it.Int(); ok && it.Form() == store.Integer {
			e.Int(n)
		} else {
			e.String(it.Bytes())
		}
	case store.List:
		db.encodeList(e, db.list(it))
	case store.Set:
		db.encodeSet(e, db.viewSet(it))
	case store.Hash:
		db.encodeHash(e, db.viewHash(it))
	case store.Stream:
		encodeStream(e, db.stream(it))
	default:
		db.encodeZset(e, it)
	}
}

func (db *database) encodeList(e *rdb.Encoder, list quicklist.View) {
	nodes := uint64(0)
	for range list.Listpacks {
		nodes++
	}
	e.Type(rdb.TypeListQuicklist2)
	e.Len(nodes)
	list.Listpacks(func(lp []byte) bool {
		e.Node(lp)
		return true
	})
}

func (db *database) encodeSet(e *rdb.Encoder, s setView) {
	if !s.nested {
		e.Type(rdb.TypeSetIntset)
		e.String(s.ints)
		return
	}
	e.Type(rdb.TypeSet)
	e.Len(uint64(s.len()))
	for member := range s.each {
		e.String(member)
	}
}

func (db *database) encodeHash(e *rdb.Encoder, h hashView) {
	if h.lp != nil {
		e.Type(rdb.TypeHashListpack)
		e.String(h.lp)
		return
	}
	e.Type(rdb.TypeHash)
	e.Len(uint64(h.len()))
	for field, value := range h.each {
		e.String(field)
		e.String(value)
	}
}

// encodeZset begins with the last member, as Redis does: then each one that is read is
// inserted before all others.
func (db *database) encodeZset(e *rdb.Encoder, it store.Item) {
	if it.Form() != store.Node {
		e.Type(rdb.TypeZSetListpack)
		e.String(it.Bytes())
		return
	}
	s := zset.Open(db.keys, it)
	e.Type(rdb.TypeZSet2)
	e.Len(uint64(s.Len()))
	s.Each(s.Len()-1, true, func(member []byte, score float64) bool {
		e.String(member)
		e.Score(score)
		return true
	})
}

// restoreOptions are the options of RESTORE.
type restoreOptions struct {
	replace, absolute bool
	idle, freq        int64 // -1: none
}

func (o *restoreOptions) parse(c *client, args [][]byte) (ok bool) {
	o.idle, o.freq = -1, -1
	for ; len(args) > 0; args = args[1:] {
		switch arg, more := args[0], len(args) > 1; {
		case isWord(arg, "REPLACE"):
			o.replace = true
		case isWord(arg, "ABSTTL"):
			o.absolute = true
		case isWord(arg, "IDLETIME") && more && o.freq == -1:
			if o.idle, ok = c.int64Arg(args[1]); !ok {
				return false
			}
			if o.idle < 0 {
				c.fail("ERR Invalid IDLETIME value, must be >= 0")
				return false
			}
			args = args[1:]
		case isWord(arg, "FREQ") && more && o.idle == -1:
			if o.freq, ok = c.int64Arg(args[1]); !ok {
				return false
			}
			if o.freq < 0 || o.freq > math.MaxUint8 {
				c.fail("ERR Invalid FREQ value, must be >= 0 and <= 255")
				return false
			}
			args = args[1:]
		default:
			c.fail(errSyntax)
			return false
		}
	}
	return true
}

func restoreCommand(c *client, args [][]byte) {
	var o restoreOptions
	if !o.parse(c, args[4:]) {
		return
	}
	key := args[1]
	if !o.replace && c.db.find(key).Exists() {
		c.fail("BUSYKEY Target key name already exists.")
		return
	}
	at, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	if at < 0 {
		c.fail("ERR Invalid TTL value, must be >= 0")
		return
	}
	payload, ok := rdb.Unseal(args[3])
	if !ok {
		c.fail("ERR DUMP payload version or checksum are wrong")
		return
	}
	v, err := rdb.Parse(payload, int(min(c.server.config.maxBulk, math.MaxInt)))
	if err != nil {
		c.fail(errBadData)
		return
	}
	if at != 0 && !o.absolute {
		at += c.db.space.now // an overflow gives a time that has passed, as in Redis
	}
	c.restore(key, v, at, &o)
}

// restore makes a checked value that of a key, and replies.
func (c *client) restore(key []byte, v *rdb.Value, at int64, o *restoreOptions) {
	made, ok := c.made(v)
	if !ok {
		c.fail(errBadData)
		return
	}
	if at != 0 && at <= c.db.space.now {
		made.drop(c.db)
		if old := c.db.find(key); old.Exists() {
			c.db.keys.Delete(old)
			c.changed(key)
			c.notify(eventGeneric, "del", key)
		}
		c.ok()
		return
	}
	if old := c.db.find(key); old.Exists() {
		c.db.keys.Delete(old)
	}
	it := c.db.keys.Put(key, made.value, at)
	if made.scratch != nil {
		c.db.space.keepScratch(made.scratch)
	}
	c.restoreUse(it, o)
	c.changed(key)
	c.notify(eventGeneric, "restore", key)
	c.db.ready(key)
	c.ok()
}

// restoreUse notes when or how often the key was used, whichever the policy asks for.
func (c *client) restoreUse(it store.Item, o *restoreOptions) {
	s := c.server.space.store
	const most = 8 * 365 * 24 * 3600 // seconds: the store notes no longer time
	switch {
	case s.Tracking() == store.TrackLFU:
		if o.freq >= 0 {
			c.db.keys.SetFrequency(it, int(o.freq))
		}
	case o.idle >= 0:
		if s.Tracking() == store.TrackNothing {
			s.Track(store.TrackLRU)
		}
		c.db.keys.SetIdle(it, min(o.idle, most)*1000)
	}
}

// A madeValue is a value that no key has yet.
type madeValue struct {
	value   store.Value
	root    store.Handle // of its cells; 0: it has none
	scratch []byte       // memory of the keyspace that it is in, if it is
}

// drop frees the value.
func (m *madeValue) drop(db *database) {
	if m.root != 0 {
		db.keys.Discard(m.value.Type, m.root)
	}
	if m.scratch != nil {
		db.space.keepScratch(m.scratch)
	}
}

func nodeMade(t store.Type, root store.Handle) *madeValue {
	return &madeValue{value: store.NodeValue(t, root, false), root: root}
}

// made makes the value of a payload one of the store, in the encoding that the limits of the
// configuration give it, as Redis does when it loads it. ok is false if two members are the
// same, or the parts of a stream do not fit together.
func (c *client) made(v *rdb.Value) (m *madeValue, ok bool) {
	limits := &c.server.config
	n := int64(v.Len())
	switch v.Kind {
	case rdb.String:
		return &madeValue{value: store.StringValue(v.Bytes())}, true
	case rdb.List:
		return c.db.makeList(v), true
	case rdb.Set:
		if s := v.Intset(); s != nil && n <= limits.setEntries {
			return &madeValue{value: store.BytesValue(store.Set, s, false)}, true
		}
		return c.makeSet(v)
	case rdb.Hash:
		if lp := v.Listpack(); lp != nil && n <= limits.hashEntries {
			return &madeValue{value: store.BytesValue(store.Hash, lp, false)}, true
		}
		return c.makeHash(v)
	case rdb.Stream:
		return c.db.makeStream(v)
	}
	if lp := v.Listpack(); lp != nil && n <= limits.zsetEntries {
		return &madeValue{value: store.BytesValue(store.ZSet, lp, false)}, true
	}
	return c.makeZset(v)
}

// makeList copies listpacks as they are, but divides those that are longer than the
// configuration allows.
func (db *database) makeList(v *rdb.Value) *madeValue {
	space := db.space
	short, n := listpack.Init(space.takeScratch()), 0
	var long *quicklist.List
	for part, packed := range v.Parts {
		e, size, count := listpack.Value{}, len(part)-listpack.MinSize, 1
		if packed {
			count = listpack.Len(part)
		} else {
			e = listpack.String(part)
			size = e.Size()
		}
		if n += count; long == nil && !space.isShort(len(short)+size, n) {
			l := quicklist.New(db.keys.Cells(), short)
			long = &l
		}
		switch {
		case long == nil && packed:
			short = listpack.Concat(short, part)
		case long == nil:
			short = listpack.Append(short, e)
		case packed:
			long.Extend(part, space.listLimit)
		default:
			long.Push(false, e, space.listLimit)
		}
	}
	if long == nil {
		return &madeValue{value: store.BytesValue(store.List, short, false), scratch: short}
	}
	space.keepScratch(short)
	return nodeMade(store.List, long.Root())
}

func (c *client) makeSet(v *rdb.Value) (m *madeValue, ok bool) {
	var e setEdit
	e.begin(c, nil, store.Item{})
	ok = true
	for member := range v.Elements {
		if ok = e.add(member); !ok {
			break
		}
	}
	if e.nested {
		m = nodeMade(store.Set, e.dict.Root())
	} else {
		m = &madeValue{value: e.value(), scratch: e.ints}
	}
	if !ok {
		m.drop(c.db)
	}
	return m, ok
}

func (c *client) makeHash(v *rdb.Value) (m *madeValue, ok bool) {
	e := c.editHash(nil, store.Item{})
	var field []byte
	isField := true
	ok = true
	for text := range v.Elements {
		if isField {
			field = append(field[:0], text...)
		} else if ok = e.set(field, text); !ok {
			break
		}
		isField = !isField
	}
	if e.lp == nil {
		m = nodeMade(store.Hash, e.dict.Root())
	} else {
		m = &madeValue{value: store.BytesValue(store.Hash, e.lp, false), scratch: e.lp}
	}
	if !ok {
		m.drop(c.db)
	}
	return m, ok
}

func (c *client) makeZset(v *rdb.Value) (m *madeValue, ok bool) {
	all := make(scoredMembers, 0, v.Len())
	longest := 0
	for member, score := range v.Scored {
		all.add(member, score)
		longest = max(longest, len(member))
	}
	slices.SortFunc(all, func(a, b scoredMember) int { return strings.Compare(a.member, b.member) })
	for i := 1; i < len(all); i++ {
		if all[i].member == all[i-1].member {
			return nil, false
		}
	}
	all.sort()
	s := c.server.sortedSets().Create(c.db.keys, nil, len(all), longest)
	for _, x := range all {
		s.Append([]byte(x.member), x.score)
	}
	value, root := s.Take()
	return &madeValue{value: value, root: root}, true
}
