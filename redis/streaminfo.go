package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
)

func streamInfoCommands() []*command {
	const group = "stream"
	vague := []string{"nondeterministic_output"}
	keys := []keySpec{{flags: keyRO | keyAccess, first: 2, step: 1}}
	return []*command{
		{name: "xinfo", arity: -2,
			doc: doc{"A container for commands about streams and their groups.", "5.0.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "xinfo|consumers", arity: 4, flags: flagReadonly, cats: catStream, keys: keys, tips: vague, run: xinfoConsumersCommand,
					doc: doc{"Returns the consumers of a group.", "5.0.0", group, "O(N), N the number of consumers", "", ""}},
				{name: "xinfo|groups", arity: 3, flags: flagReadonly, cats: catStream, keys: keys, run: xinfoGroupsCommand,
					doc: doc{"Returns the groups of a stream.", "5.0.0", group, "O(N), N the number of groups", "", ""}},
				{name: "xinfo|help", arity: 2, flags: flagLoading | flagStale, cats: catStream, run: xinfoHelpCommand,
					doc: doc{"Returns help about the subcommands.", "5.0.0", group, "O(1)", "", ""}},
				{name: "xinfo|stream", arity: -3, flags: flagReadonly, cats: catStream, keys: keys, run: xinfoStreamCommand,
					doc: doc{"Returns the state of a stream.", "5.0.0", group, "O(N), N the number of blocks of entries; with FULL also of what is returned", "", ""}},
			}},
	}
}

// infoStream returns the stream of a key. It replies with an error if there is none.
func (c *client) infoStream(key []byte) (s stream.Stream, ok bool) {
	it := c.db.read(key)
	if !it.Exists() {
		c.fail(errNoSuchKey)
		return s, false
	}
	if !c.typed(it, store.Stream) {
		return s, false
	}
	return c.db.stream(it), true
}

func xinfoConsumersCommand(c *client, args [][]byte) {
	s, ok := c.infoStream(args[2])
	if !ok {
		return
	}
	g, ok := s.Group(args[3])
	if !ok {
		c.noGroup(args[2], args[3])
		return
	}
	c.Array(g.Consumers())
	for i := range g.Consumers() {
		x := g.ConsumerAt(i)
		c.Map(3)
		c.BulkString("name")
		c.Bulk(x.Name())
		c.intPair("pending", x.Pending().Len())
		c.BulkString("idle")
		c.Int(max(c.db.space.now-x.Seen(), 0))
		c.spill()
	}
}

func xinfoGroupsCommand(c *client, args [][]byte) {
	s, ok := c.infoStream(args[2])
	if !ok {
		return
	}
	c.Array(s.Groups())
	for i := range s.Groups() {
		g := s.GroupAt(i)
		c.Map(6)
		c.BulkString("name")
		c.Bulk(g.Name())
		c.intPair("consumers", g.Consumers())
		c.intPair("pending", g.Pending().Len())
		c.groupProgress(g)
		c.spill()
	}
}

// groupProgress adds how far a group has come: three pairs.
func (c *client) groupProgress(g stream.Group) {
	c.idPair("last-delivered-id", g.Last())
	c.BulkString("entries-read")
	if n := g.Read(); n != stream.Unknown {
		c.Int(n)
	} else {
		c.Null()
	}
	c.BulkString("lag")
	if lag, ok := g.Lag(); ok {
		c.Int(lag)
	} else {
		c.Null()
	}
}

func (c *client) idPair(name string, id stream.ID) {
	c.BulkString(name)
	c.streamID(id)
}

func xinfoStreamCommand(c *client, args [][]byte) {
	s, ok := c.infoStream(args[2])
	if !ok {
		return
	}
	opts, count := args[3:], int64(10)
	switch {
	case len(opts) == 0:
		c.streamState(s, 10)
		c.intPair("groups", s.Groups())
		c.edgeEntry("first-entry", s, false)
		c.edgeEntry("last-entry", s, true)
		return
	case len(opts) != 1 && len(opts) != 3 || !isWord(opts[0], "FULL") || len(opts) == 3 && !isWord(opts[1], "COUNT"):
		c.subcommandSyntax(args)
		return
	case len(opts) == 3:
		if count, ok = c.int64Arg(opts[2]); !ok {
			return
		}
		if count < 0 {
			count = 10
		}
	}
	c.streamState(s, 9)
	most := int(min(count, math.MaxInt))
	c.BulkString("entries")
	c.streamEntries(s, stream.ID{}, stream.MaxID, most, false)
	c.BulkString("groups")
	c.Array(s.Groups())
	for i := range s.Groups() {
		c.fullGroup(s.GroupAt(i), countOrAll(most))
	}
}

// streamState begins a map of n pairs with seven.
func (c *client) streamState(s stream.Stream, n int) {
	c.Map(n)
	c.intPair("length", s.Len())
	c.intPair("radix-tree-keys", s.Blocks())
	c.intPair("radix-tree-nodes", s.RadixNodes())
	c.idPair("last-generated-id", s.Last())
	c.idPair("max-deleted-entry-id", s.Erased())
	c.BulkString("entries-added")
	c.Int(s.Added())
	c.idPair("recorded-first-entry-id", s.First())
}

// edgeEntry adds the first entry, or the last one.
func (c *client) edgeEntry(name string, s stream.Stream, last bool) {
	c.BulkString(name)
	var it stream.Iter
	if s.Range(&it, stream.ID{}, stream.MaxID, last); it.Next() {
		c.streamEntry(&it)
	} else {
		c.Null()
	}
}

// fullGroup adds a group with up to most pending entries, and as many of each consumer.
func (c *client) fullGroup(g stream.Group, most int) {
	c.Map(7)
	c.BulkString("name")
	c.Bulk(g.Name())
	c.groupProgress(g)
	all := g.Pending()
	c.intPair("pel-count", all.Len())
	c.BulkString("pending")
	n := min(all.Len(), most)
	c.Array(n)
	var at stream.Cursor
	for all.First(&at); n > 0; n-- {
		p := stream.Pending(at.Value())
		x, _ := g.Owner(p)
		c.Array(4)
		c.streamID(at.ID())
		c.Bulk(x.Name())
		c.delivery(p)
		at.Next()
	}
	c.BulkString("consumers")
	c.Array(g.Consumers())
	for i := range g.Consumers() {
		c.fullConsumer(g, g.ConsumerAt(i), most)
	}
}

func (c *client) fullConsumer(g stream.Group, x stream.Consumer, most int) {
	c.Map(4)
	c.BulkString("name")
	c.Bulk(x.Name())
	c.BulkString("seen-time")
	c.Int(x.Seen())
	n := x.Pending().Len()
	c.intPair("pel-count", n)
	c.BulkString("pending")
	n = min(n, most)
	c.Array(n)
	var at stream.Cursor
	for x.Pending().First(&at); n > 0; n-- {
		c.Array(3)
		c.streamID(at.ID())
		c.delivery(g.Find(at.ID()))
		at.Next()
	}
	c.spill()
}

// delivery adds when and how often an entry was delivered.
func (c *client) delivery(p stream.Pending) {
	c.Int(p.Time())
	c.Int(p.Count())
	c.spill()
}

func xinfoHelpCommand(c *client, _ [][]byte) {
	c.help("XINFO",
		"CONSUMERS <key> <groupname>",
		"    The consumers of a group.",
		"GROUPS <key>",
		"    The groups of a stream.",
		"STREAM <key> [FULL [COUNT <count>]]",
		"    The state of a stream; with FULL its entries and groups too.")
}
