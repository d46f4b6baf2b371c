package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
)

func streamPendingCommands() []*command {
	const group = "stream"
	vague := []string{"nondeterministic_output"}
	return []*command{
		{name: "xautoclaim", arity: -6, flags: flagWrite | flagFast, cats: catStream, keys: oneKey(keyRW | keyDelete), tips: vague, run: xautoclaimCommand,
			doc: doc{"Gives a consumer pending entries of others that are idle.", "6.2.0", group, "O(log N + M), N the pending entries, M those looked at", "", ""}},
		{name: "xclaim", arity: -6, flags: flagWrite | flagFast, cats: catStream, keys: oneKey(keyRW | keyUpdate), tips: vague, run: xclaimCommand,
			doc: doc{"Gives a consumer pending entries by their IDs.", "5.0.0", group, "O(log N) for each ID, N the pending entries", "", ""}},
		{name: "xpending", arity: -3, flags: flagReadonly, cats: catStream, keys: oneKey(keyRO | keyAccess), tips: vague, run: xpendingCommand,
			doc: doc{"Returns pending entries of a group, or a summary.", "5.0.0", group, "O(log N + M), N the pending entries, M those looked at; O(C) for a summary, C the consumers", "", ""}},
	}
}

// pendingGroup returns the group of a command about pending entries. It replies with an
// error if there is none.
func (c *client) pendingGroup(it store.Item, args [][]byte) (g stream.Group, ok bool) {
	if !c.typed(it, store.Stream) {
		return g, false
	}
	if it.Exists() {
		g, ok = c.db.stream(it).Group(args[2])
	}
	if !ok {
		c.fail("NOGROUP No such key '" + cText(args[1]) + "' or consumer group '" + cText(args[2]) + "'")
	}
	return g, ok
}

// xpendingOptions are the arguments of XPENDING that ask for entries.
type xpendingOptions struct {
	idle     int64
	lo, hi   stream.ID
	count    int64
	consumer []byte // nil: any
}

func (o *xpendingOptions) parse(c *client, args [][]byte) (ok bool) {
	args = args[3:]
	if isWord(args[0], "IDLE") {
		if o.idle, ok = c.int64Arg(args[1]); !ok {
			return false
		}
		if len(args) < 5 {
			c.fail(errSyntax)
			return false
		}
		args = args[2:]
	}
	if o.count, ok = c.int64Arg(args[2]); !ok {
		return false
	}
	if o.lo, ok = c.startArg(args[0]); !ok {
		return false
	}
	if o.hi, ok = c.endIDArg(args[1]); !ok {
		return false
	}
	if len(args) > 3 {
		o.consumer = args[3]
	}
	return true
}

func xpendingCommand(c *client, args [][]byte) {
	var o xpendingOptions
	summary := len(args) == 3
	if !summary && (len(args) < 6 || len(args) > 9) {
		c.fail(errSyntax)
		return
	}
	if !summary && !o.parse(c, args) {
		return
	}
	g, ok := c.pendingGroup(c.db.read(args[1]), args)
	switch {
	case !ok:
	case summary:
		c.pendingSummary(g)
	default:
		c.pendingEntries(g, &o)
	}
}

func (c *client) pendingSummary(g stream.Group) {
	all := g.Pending()
	c.Array(4)
	c.Int(int64(all.Len()))
	if all.Len() == 0 {
		c.Null()
		c.Null()
		c.NullArray()
		return
	}
	var at stream.Cursor
	all.First(&at)
	c.streamID(at.ID())
	all.Last(&at)
	c.streamID(at.ID())
	busy := 0
	for i := range g.Consumers() {
		if g.ConsumerAt(i).Pending().Len() > 0 {
			busy++
		}
	}
	c.Array(busy)
	for i := range g.Consumers() {
		x := g.ConsumerAt(i)
		if n := x.Pending().Len(); n > 0 {
			c.Array(2)
			c.Bulk(x.Name())
			c.BulkInt(int64(n))
			c.spill()
		}
	}
}

// pendingEntries adds the pending entries of a range that are idle for long enough. It looks
// at each twice: first to count them.
func (c *client) pendingEntries(g stream.Group, o *xpendingOptions) {
	ids := g.Pending()
	if o.consumer != nil {
		x, ok := g.Consumer(o.consumer)
		if !ok {
			c.Array(0)
			return
		}
		ids = x.Pending()
	}
	now := c.db.space.now
	each := func(most int, visit func(id stream.ID, p stream.Pending)) (n int) {
		var at stream.Cursor
		for ids.Seek(&at, o.lo); at.Ok() && n < most && !o.hi.Less(at.ID()); at.Next() {
			p := stream.Pending(at.Value())
			if o.consumer != nil {
				p = g.Find(at.ID())
			}
			if o.idle == 0 || now-p.Time() >= o.idle {
				visit(at.ID(), p)
				n++
			}
		}
		return n
	}
	most := int(min(max(o.count, 0), math.MaxInt))
	n := each(most, func(stream.ID, stream.Pending) {})
	c.Array(n)
	each(n, func(id stream.ID, p stream.Pending) {
		c.Array(4)
		c.streamID(id)
		x, _ := g.Owner(p)
		c.Bulk(x.Name())
		c.Int(max(now-p.Time(), 0))
		c.Int(p.Count())
		c.spill()
	})
}

// claim is what XCLAIM and XAUTOCLAIM do with a pending entry.
type claim struct {
	c       *client
	s       stream.Stream
	g       stream.Group
	key     []byte
	name    []byte // of the consumer
	idle    int64  // the least time since the last delivery
	time    int64  // of the delivery
	retries int64  // the new count; -1: one more
	justID  bool

	entries stream.Finder
	taken   []stream.ID
	deleted []stream.ID // they were pending, but have no entries
}

// take gives the consumer a pending entry, if that is idle for long enough. It creates the
// consumer if there is none.
func (x *claim) take(id stream.ID, p stream.Pending, now int64) {
	if _, owned := x.g.Owner(p); owned && x.idle > 0 && now-p.Time() < x.idle {
		return
	}
	consumer, ok := x.g.Consumer(x.name)
	if !ok || len(x.taken) == 0 {
		consumer = x.c.consumer(x.g, x.key, x.name)
	}
	x.g.Assign(id, p, consumer)
	p.SetTime(x.time)
	switch {
	case x.retries >= 0:
		p.SetCount(x.retries)
	case !x.justID:
		p.SetCount(p.Count() + 1)
	}
	x.taken = append(x.taken, id)
	x.c.db.space.dirty++
}

// drop ends that an entry is pending, since it is deleted.
func (x *claim) drop(id stream.ID) {
	if x.g.Ack(id) {
		x.deleted = append(x.deleted, id)
		x.c.db.space.dirty++
	}
}

// reply adds the entries that were taken.
func (x *claim) reply() {
	if x.justID {
		x.c.streamIDs(x.taken)
		return
	}
	x.c.Array(len(x.taken))
	for _, id := range x.taken {
		x.c.oneEntry(&x.entries, x.s, id)
		x.c.spill()
	}
}

const (
	errIdleArg = "ERR Invalid min-idle-time argument for "
	optionArg  = " option argument for XCLAIM"
)

// xclaimOptions are the options of XCLAIM.
type xclaimOptions struct {
	force, justID bool
	time, retries int64
	last          stream.ID
}

func (o *xclaimOptions) parse(c *client, args [][]byte) (ok bool) {
	now := c.db.space.now
	o.time, o.retries = -1, -1
	for ; len(args) > 0; args = args[1:] {
		arg, more := args[0], len(args) > 1
		switch {
		case isWord(arg, "FORCE"):
			o.force = true
			continue
		case isWord(arg, "JUSTID"):
			o.justID = true
			continue
		case isWord(arg, "IDLE") && more:
			o.time, ok = c.atLeast(args[1], math.MinInt64, "ERR Invalid IDLE"+optionArg)
			o.time = now - o.time
		case isWord(arg, "TIME") && more:
			o.time, ok = c.atLeast(args[1], math.MinInt64, "ERR Invalid TIME"+optionArg)
		case isWord(arg, "RETRYCOUNT") && more:
			o.retries, ok = c.atLeast(args[1], math.MinInt64, "ERR Invalid RETRYCOUNT"+optionArg)
		case isWord(arg, "LASTID") && more:
			o.last, ok = c.idArg(args[1], 0)
		default:
			c.fail("ERR Unrecognized XCLAIM option '" + cText(arg) + "'")
			return false
		}
		if !ok {
			return false
		}
		args = args[1:]
	}
	if o.time < 0 || o.time > now {
		o.time = now
	}
	return true
}

func xclaimCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	g, ok := c.pendingGroup(it, args)
	if !ok {
		return
	}
	idle, ok := c.atLeast(args[4], math.MinInt64, errIdleArg+"XCLAIM")
	if !ok {
		return
	}
	var ids []stream.ID
	i := 5
	for ; i < len(args); i++ {
		id, ok := stream.Parse(args[i], 0)
		if !ok {
			break
		}
		ids = append(ids, id)
	}
	var o xclaimOptions
	if !o.parse(c, args[i:]) {
		return
	}
	x := claim{c: c, s: c.db.editStream(it), g: g, key: args[1], name: args[3],
		idle: idle, time: o.time, retries: o.retries, justID: o.justID}
	if g.Last().Less(o.last) {
		g.SetLast(o.last)
		c.db.space.dirty++
	}
	for _, id := range ids {
		p := g.Find(id)
		if _, ok := x.entries.Find(x.s, id); !ok {
			x.drop(id)
			continue
		}
		if p == nil && o.force {
			p = g.Force(id)
			p.SetCount(1)
		}
		if p != nil {
			x.take(id, p, c.db.space.now)
		}
	}
	x.reply()
}

// attempts is how many pending entries XAUTOCLAIM looks at for each that it may take.
const attempts = 10

func xautoclaimCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	idle, ok := c.atLeast(args[4], math.MinInt64, errIdleArg+"XAUTOCLAIM")
	if !ok {
		return
	}
	from, ok := c.startArg(args[5])
	if !ok {
		return
	}
	count, justID := int64(100), false
	for opts := args[6:]; len(opts) > 0; opts = opts[1:] {
		switch {
		case isWord(opts[0], "COUNT") && len(opts) > 1:
			if count, ok = c.claimCount(opts[1]); !ok {
				return
			}
			opts = opts[1:]
		case isWord(opts[0], "JUSTID"):
			justID = true
		default:
			c.fail(errSyntax)
			return
		}
	}
	g, ok := c.pendingGroup(it, args)
	if !ok {
		return
	}
	now := c.db.space.now
	x := claim{c: c, s: c.db.editStream(it), g: g, key: args[1], name: args[3], idle: idle, time: now, retries: -1, justID: justID}
	next := x.scan(from, count)
	c.Array(3)
	c.streamID(next)
	x.reply()
	c.streamIDs(x.deleted)
}

// claimCount parses COUNT of XAUTOCLAIM.
func (c *client) claimCount(arg []byte) (n int64, ok bool) {
	const failure = "ERR COUNT must be > 0"
	if n, ok = c.atLeast(arg, 1, failure); ok && n > math.MaxInt64/16 {
		c.fail(failure)
		ok = false
	}
	return n, ok
}

// scan takes up to count pending entries from an ID on. It returns the ID of the next one, or
// 0-0.
func (x *claim) scan(from stream.ID, count int64) (next stream.ID) {
	all := x.g.Pending()
	var at stream.Cursor
	all.Seek(&at, from)
	for left := count * attempts; left > 0 && count > 0 && at.Ok(); left-- {
		id := at.ID()
		if _, ok := x.entries.Find(x.s, id); !ok {
			x.drop(id)
			all.Seek(&at, id)
			count--
			continue
		}
		before := len(x.taken)
		x.take(id, at.Value(), x.time)
		count -= int64(len(x.taken) - before)
		at.Next()
	}
	if at.Ok() {
		next = at.ID()
	}
	return next
}
