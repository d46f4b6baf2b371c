package redis

import (
	"bytes"
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
	"github.com/rondo-go/rondo/resp"
)

func streamReadCommands() []*command {
	const group = "stream"
	const cost = "O(N) for each key, N the number of entries returned"
	keys := func(first int) []keySpec {
		return []keySpec{{flags: keyRO | keyAccess, keyword: "STREAMS", first: first, last: -1, step: 1, half: true, search: streamKeys}}
	}
	return []*command{
		{name: "xread", arity: -4, flags: flagReadonly | flagBlocking | flagMovableKeys, cats: catStream, keys: keys(1), run: xreadCommand,
			doc: doc{"Returns the entries of streams behind given IDs, or waits for some.", "5.0.0", group, cost, "", ""}},
		{name: "xreadgroup", arity: -7, flags: flagWrite | flagBlocking | flagMovableKeys, cats: catStream, keys: keys(4), run: xreadgroupCommand,
			doc: doc{"Returns new entries for a consumer of a group, or those that it has not acknowledged, or waits for new ones.", "5.0.0", group, cost, "", ""}},
	}
}

// xreadOptions are the arguments of XREAD and XREADGROUP.
type xreadOptions struct {
	timeout  int64 // milliseconds; -1: no BLOCK
	count    int64
	noack    bool
	group    []byte // nil: XREAD
	consumer []byte
	keys     [][]byte
	ids      []stream.ID // of XREADGROUP: stream.MaxID for new entries
}

// streamKeys finds the keys of XREAD and XREADGROUP: a group or a consumer may be called streams.
func streamKeys(args [][]byte) (first, last int) {
	for i, n := 1, len(args); i < n-1; i++ {
		switch {
		case isWord(args[i], "COUNT"), isWord(args[i], "BLOCK"):
			i++
		case isWord(args[i], "GROUP"):
			i += 2
		case isWord(args[i], "STREAMS"):
			return i + 1, i + (n-1-i)/2
		}
	}
	return noKeys(args)
}

func xreadCommand(c *client, args [][]byte) { c.xread(args, false) }

func xreadgroupCommand(c *client, args [][]byte) { c.xread(args, true) }

func (c *client) xread(args [][]byte, grouped bool) {
	var o xreadOptions
	after, ok := o.parse(c, args, grouped)
	if !ok || !o.resolve(c, after) {
		return
	}
	if o.serveNow(c) {
		return
	}
	if o.timeout == -1 || !c.mayBlock() {
		c.NullArray()
		return
	}
	o.block(c)
}

// parse reads the arguments, and returns the IDs.
func (o *xreadOptions) parse(c *client, args [][]byte, grouped bool) (ids [][]byte, ok bool) {
	o.timeout = -1
	for i := 1; i < len(args); i++ {
		arg, more := args[i], len(args)-1-i
		switch {
		case isWord(arg, "BLOCK") && more > 0:
			if c == c.server.scripts.caller {
				c.fail("ERR " + string(args[0]) + " command is not allowed with BLOCK option from scripts")
				return nil, false
			}
			i++
			if o.timeout, ok = c.milliseconds(args[i]); !ok {
				return nil, false
			}
		case isWord(arg, "COUNT") && more > 0:
			i++
			if o.count, ok = c.int64Arg(args[i]); !ok {
				return nil, false
			}
			o.count = max(o.count, 0)
		case isWord(arg, "STREAMS") && more > 0:
			if more%2 != 0 {
				c.fail("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.")
				return nil, false
			}
			o.keys, ids = args[i+1:i+1+more/2], args[i+1+more/2:]
			i = len(args)
		case isWord(arg, "GROUP") && more > 1:
			if !grouped {
				c.fail("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
				return nil, false
			}
			o.group, o.consumer = args[i+1], args[i+2]
			i += 2
		case isWord(arg, "NOACK"):
			if !grouped {
				c.fail("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
				return nil, false
			}
			o.noack = true
		default:
			c.fail(errSyntax)
			return nil, false
		}
	}
	switch {
	case o.keys == nil:
		c.fail(errSyntax)
		return nil, false
	case grouped && o.group == nil:
		c.fail("ERR Missing GROUP option for XREADGROUP")
		return nil, false
	}
	return ids, true
}

// milliseconds parses the value of BLOCK.
func (c *client) milliseconds(arg []byte) (ms int64, ok bool) {
	ms, ok = resp.ParseInt(arg)
	switch {
	case !ok:
		c.fail("ERR timeout is not an integer or out of range")
	case ms < 0:
		c.fail("ERR timeout is negative")
	default:
		return ms, true
	}
	return 0, false
}

// resolve checks that the keys have streams with the group, and parses the IDs.
func (o *xreadOptions) resolve(c *client, after [][]byte) bool {
	o.ids = make([]stream.ID, len(after))
	for i, arg := range after {
		it := c.db.read(o.keys[i])
		if !c.typed(it, store.Stream) {
			return false
		}
		if o.group != nil {
			if _, ok := o.groupOf(c, it); !ok {
				c.fail("NOGROUP No such key '" + cText(o.keys[i]) + "' or consumer group '" + cText(o.group) +
					"' in XREADGROUP with GROUP option")
				return false
			}
		}
		switch cText(arg) {
		case "$":
			if o.group != nil {
				c.fail("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer " +
					"by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.")
				return false
			}
			if it.Exists() {
				o.ids[i] = c.db.stream(it).Last()
			}
		case ">":
			if o.group == nil {
				c.fail("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
				return false
			}
			o.ids[i] = stream.MaxID
		default:
			var ok bool
			if o.ids[i], ok = c.idArg(arg, 0); !ok {
				return false
			}
		}
	}
	return true
}

// cText returns an argument as C prints it.
func cText(arg []byte) string { return string(cString(arg, len(arg))) }

// groupOf returns the group in the stream of an Item, which may be zero.
func (o *xreadOptions) groupOf(c *client, it store.Item) (g stream.Group, ok bool) {
	if !it.Exists() {
		return g, false
	}
	return c.db.stream(it).Group(o.group)
}

// serveNow replies with what there is for the client. It reports false, without a reply, if
// there is nothing.
func (o *xreadOptions) serveNow(c *client) bool {
	n := 0
	has := make([]bool, len(o.keys))
	var before map[string]*takings
	if o.group != nil && len(o.keys) > 1 {
		before = make(map[string]*takings)
	}
	for i := range o.keys {
		if has[i] = o.has(c, i, before); has[i] {
			n++
		}
	}
	if n == 0 {
		return false
	}
	if c.Proto == 2 {
		c.Array(n)
	} else {
		c.Map(n)
	}
	for i, key := range o.keys {
		if !has[i] {
			continue
		}
		after := o.ids[i]
		fresh := o.group != nil && after == stream.MaxID
		if fresh {
			g, _ := o.groupOf(c, c.db.find(key))
			after = g.Last()
		}
		o.reply(c, key, c.db.find(key), after, o.group != nil && !fresh, int(min(o.count, math.MaxInt)))
	}
	return true
}

// has reports whether the client gets a reply about a key at once: of a group, always if it
// asks for the past. If it asks for new entries of the same key several times, which before
// counts, each time takes some.
func (o *xreadOptions) has(c *client, i int, before map[string]*takings) bool {
	it := c.db.read(o.keys[i])
	if !it.Exists() {
		return false
	}
	s := c.db.stream(it)
	if o.group == nil {
		return s.Len() > 0 && o.ids[i].Less(s.Top())
	}
	if o.ids[i] != stream.MaxID {
		return true
	}
	g, _ := s.Group(o.group)
	if s.Len() == 0 || !g.Last().Less(s.Top()) {
		return false
	}
	if before == nil {
		return true
	}
	t := before[string(o.keys[i])]
	if t == nil {
		before[string(o.keys[i])] = &takings{times: 1}
		return true
	}
	if t.left == 0 {
		from, _ := g.Last().Next()
		t.left = s.Count(from, stream.MaxID, math.MaxInt)
	}
	t.times++
	return o.count > 0 && o.count <= int64((t.left-1)/(t.times-1))
}

// takings says how often a client asks at once for new entries of a key.
type takings struct {
	times int
	left  int // new entries before; counted at the second time
}

// reply adds a key and entries of its stream behind an ID. past says that they are those
// which the consumer has not acknowledged.
func (o *xreadOptions) reply(c *client, key []byte, it store.Item, after stream.ID, past bool, count int) {
	if c.Proto == 2 {
		c.Array(2)
	}
	c.Bulk(key)
	s := c.db.stream(it)
	from, _ := after.Next()
	if o.group == nil {
		c.streamEntries(s, from, stream.MaxID, count, false)
		return
	}
	s = c.db.editStream(it)
	c.db.space.dirty++
	g, _ := s.Group(o.group)
	x := c.consumer(g, key, o.consumer)
	if past {
		c.pastEntries(s, g, x, from, count)
	} else {
		c.newEntries(g, x, count, o.noack)
	}
}

// consumer returns a consumer of a group, which it creates if there is none of the name.
func (c *client) consumer(g stream.Group, key, name []byte) stream.Consumer {
	x, added := g.AddConsumer(name, c.db.space.now)
	if added {
		c.db.space.dirty++
		c.notify(eventStream, "xgroup-createconsumer", key)
	} else {
		x.SetSeen(c.db.space.now)
	}
	return x
}

// newEntries adds entries that the group has not got, and makes them pending.
func (c *client) newEntries(g stream.Group, x stream.Consumer, count int, noack bool) {
	var it stream.Iter
	g.Unread(&it)
	n := it.Ahead(countOrAll(count))
	for c.Array(n); n > 0 && it.Next(); n-- {
		g.Advance(it.ID())
		g.Reached(&it)
		c.streamEntry(&it)
		if !noack {
			g.Deliver(it.ID(), x, c.db.space.now)
		}
	}
}

// pastEntries adds entries that are pending for a consumer. Of those that are deleted it
// adds the ID alone.
func (c *client) pastEntries(s stream.Stream, g stream.Group, x stream.Consumer, from stream.ID, count int) {
	n := x.Pending().CountFrom(from, countOrAll(count))
	c.Array(n)
	var at stream.Cursor
	var entries stream.Finder
	for x.Pending().Seek(&at, from); n > 0; n-- {
		id := at.ID()
		if c.oneEntry(&entries, s, id) {
			p := g.Find(id)
			p.SetTime(c.db.space.now)
			p.SetCount(p.Count() + 1)
		} else {
			c.Array(2)
			c.streamID(id)
			c.NullArray()
		}
		c.spill()
		at.Next()
	}
}

// blockedCount is how many entries a client gets that has waited, without a COUNT.
const blockedCount = 1000

// block makes the client wait for entries. The arguments are valid during the command only.
func (o *xreadOptions) block(c *client) {
	after := make(map[string]stream.ID, len(o.keys))
	for i, key := range o.keys {
		if _, ok := after[string(key)]; !ok {
			after[string(key)] = o.ids[i]
		}
	}
	waiting := xreadOptions{noack: o.noack, count: o.count}
	if waiting.count == 0 {
		waiting.count = blockedCount
	}
	w := &wait{client: c, cmd: c.lastCmd, typ: store.Stream}
	if o.group != nil {
		waiting.group, waiting.consumer = bytes.Clone(o.group), bytes.Clone(o.consumer)
		w.lost = "UNBLOCKED the stream key no longer exists"
	}
	w.serve = func(c *client, key []byte, it store.Item) bool {
		return waiting.serve(c, key, it, after[string(key)])
	}
	c.await(w, o.keys, o.timeout)
}

// serve replies to a client that has waited, with what is behind an ID, or new for the group.
func (o *xreadOptions) serve(c *client, key []byte, it store.Item, after stream.ID) bool {
	s := stream.Open(c.db.keys.Cells(), it.Root())
	if o.group != nil {
		g, ok := s.Group(o.group)
		if !ok {
			c.fail("NOGROUP the consumer group this client was blocked on no longer exists")
			return true
		}
		after = g.Last()
	}
	if !after.Less(s.Last()) {
		return false
	}
	if c.Proto == 2 {
		c.Array(1)
	} else {
		c.Map(1)
	}
	o.reply(c, key, it, after, false, int(min(o.count, math.MaxInt)))
	return true
}
