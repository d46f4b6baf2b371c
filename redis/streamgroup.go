package redis

import (
	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/redis/stream"
)

func streamGroupCommands() []*command {
	const group = "stream"
	second := func(f keyFlags) []keySpec { return []keySpec{{flags: f, first: 2, step: 1}} }
	return []*command{
		{name: "xack", arity: -4, flags: flagWrite | flagFast, cats: catStream, keys: oneKey(keyRW | keyUpdate), run: xackCommand,
			doc: doc{"Acknowledges entries that are pending for a group.", "5.0.0", group, "O(1) for each ID", "", ""}},
		{name: "xgroup", arity: -2,
			doc: doc{"A container for commands about consumer groups.", "5.0.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "xgroup|create", arity: -5, flags: flagWrite | flagDenyOOM, cats: catStream, keys: second(keyRW | keyInsert), run: xgroupCreateCommand,
					doc: doc{"Creates a consumer group.", "5.0.0", group, "O(1)", "", ""}},
				{name: "xgroup|createconsumer", arity: 5, flags: flagWrite | flagDenyOOM, cats: catStream, keys: second(keyRW | keyInsert), run: xgroupCreateconsumerCommand,
					doc: doc{"Creates a consumer in a group.", "6.2.0", group, "O(1)", "", ""}},
				{name: "xgroup|delconsumer", arity: 5, flags: flagWrite, cats: catStream, keys: second(keyRW | keyDelete), run: xgroupDelconsumerCommand,
					doc: doc{"Deletes a consumer with its pending entries.", "5.0.0", group, "O(N log M), N the consumer's pending entries, M the group's", "", ""}},
				{name: "xgroup|destroy", arity: 4, flags: flagWrite, cats: catStream, keys: second(keyRW | keyDelete), run: xgroupDestroyCommand,
					doc: doc{"Deletes a consumer group.", "5.0.0", group, "O(1): its memory is freed in slices", "", ""}},
				{name: "xgroup|help", arity: 2, flags: flagLoading | flagStale, cats: catStream, run: xgroupHelpCommand,
					doc: doc{"Returns help about the subcommands.", "5.0.0", group, "O(1)", "", ""}},
				{name: "xgroup|setid", arity: -5, flags: flagWrite, cats: catStream, keys: second(keyRW | keyUpdate), run: xgroupSetidCommand,
					doc: doc{"Sets the last ID that a group has got.", "5.0.0", group, "O(1)", "", ""}},
			}},
	}
}

func xackCommand(c *client, args [][]byte) {
	it := c.db.read(args[1])
	if !c.typed(it, store.Stream) {
		return
	}
	if !it.Exists() {
		c.Int(0)
		return
	}
	g, ok := c.db.stream(it).Group(args[2])
	if !ok {
		c.Int(0)
		return
	}
	ids, ok := c.idArgs(args[3:])
	if !ok {
		return
	}
	c.db.keys.Changing(it)
	n := int64(0)
	for _, id := range ids {
		if g.Ack(id) {
			n++
		}
	}
	c.db.space.dirty += n
	c.Int(n)
}

// xgroupOptions are the options of XGROUP CREATE and SETID.
type xgroupOptions struct {
	create bool  // MKSTREAM
	read   int64 // ENTRIESREAD
}

func (o *xgroupOptions) parse(c *client, args [][]byte, create bool) (ok bool) {
	o.read = stream.Unknown
	for i := 5; i < len(args); i++ {
		switch {
		case create && isWord(args[i], "MKSTREAM"):
			o.create = true
		case isWord(args[i], "ENTRIESREAD") && i+1 < len(args):
			i++
			if o.read, ok = c.int64Arg(args[i]); !ok {
				return false
			}
			if o.read < 0 && o.read != stream.Unknown {
				c.fail("ERR value for ENTRIESREAD must be positive or -1")
				return false
			}
		default:
			c.subcommandSyntax(args)
			return false
		}
	}
	return true
}

const errNoStream = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM " +
	"option to create an empty stream automatically."

// groupKey returns the Item of a key that a subcommand of XGROUP changes. ok is false if the
// reply is an error; without missing, also if there is no key.
func (c *client) groupKey(key []byte, missing bool) (it store.Item, ok bool) {
	it = c.db.find(key)
	if !c.typed(it, store.Stream) {
		return it, false
	}
	if !it.Exists() && !missing {
		c.fail(errNoStream)
		return it, false
	}
	return it, true
}

// editGroup returns the group that a subcommand of XGROUP changes.
func (c *client) editGroup(key, name []byte) (s stream.Stream, g stream.Group, ok bool) {
	it, ok := c.groupKey(key, false)
	if !ok {
		return s, g, false
	}
	if g, ok = c.db.stream(it).Group(name); !ok {
		c.noGroup(key, name)
		return s, g, false
	}
	return c.db.editStream(it), g, true
}

func (c *client) noGroup(key, name []byte) {
	c.fail("NOGROUP No such consumer group '" + cText(name) + "' for key name '" + cText(key) + "'")
}

func xgroupCreateCommand(c *client, args [][]byte) {
	var o xgroupOptions
	if !o.parse(c, args, true) {
		return
	}
	key, name := args[2], args[3]
	it, ok := c.groupKey(key, o.create)
	if !ok {
		return
	}
	if len(args) > 8 {
		c.subcommandSyntax(args)
		return
	}
	var last stream.ID
	if cText(args[4]) != "$" {
		if last, ok = c.idArg(args[4], 0); !ok {
			return
		}
	} else if it.Exists() {
		last = c.db.stream(it).Last()
	}
	var s stream.Stream
	if it.Exists() {
		s = c.db.editStream(it)
	} else {
		s = c.db.createStream(key)
		c.db.touched(key, false)
		c.db.ready(key)
	}
	if _, ok := s.AddGroup(name, last, o.read); !ok {
		c.fail("BUSYGROUP Consumer Group name already exists")
		return
	}
	c.db.space.dirty++
	c.notify(eventStream, "xgroup-create", key)
	c.ok()
}

func xgroupSetidCommand(c *client, args [][]byte) {
	var o xgroupOptions
	if !o.parse(c, args, false) {
		return
	}
	s, g, ok := c.editGroup(args[2], args[3])
	if !ok {
		return
	}
	if len(args) != 5 && len(args) != 7 {
		c.subcommandSyntax(args)
		return
	}
	last := s.Last()
	if cText(args[4]) != "$" {
		if last, ok = c.boundArg(args[4], 0); !ok {
			return
		}
	}
	g.SetLast(last)
	g.SetRead(o.read)
	c.db.space.dirty++
	c.notify(eventStream, "xgroup-setid", args[2])
	c.ok()
}

func xgroupDestroyCommand(c *client, args [][]byte) {
	key := args[2]
	it, ok := c.groupKey(key, false)
	if !ok {
		return
	}
	rest, ok := c.db.editStream(it).RemoveGroup(args[3])
	if !ok {
		c.Int(0)
		return
	}
	if rest != 0 {
		c.db.keys.Discard(store.Stream, rest)
	}
	c.db.space.dirty++
	c.notify(eventStream, "xgroup-destroy", key)
	c.db.ready(key) // waiters get an error
	c.Int(1)
}

func xgroupCreateconsumerCommand(c *client, args [][]byte) {
	_, g, ok := c.editGroup(args[2], args[3])
	if !ok {
		return
	}
	if _, added := g.AddConsumer(args[4], c.db.space.now); !added {
		c.Int(0)
		return
	}
	c.db.space.dirty++
	c.notify(eventStream, "xgroup-createconsumer", args[2])
	c.Int(1)
}

func xgroupDelconsumerCommand(c *client, args [][]byte) {
	_, g, ok := c.editGroup(args[2], args[3])
	if !ok {
		return
	}
	pending, ok := g.RemoveConsumer(args[4])
	if ok {
		c.db.space.dirty++
		c.notify(eventStream, "xgroup-delconsumer", args[2])
	}
	c.Int(int64(pending))
}

func xgroupHelpCommand(c *client, _ [][]byte) {
	c.help("XGROUP",
		"CREATE <key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
		"    Create a consumer group that has got the entries up to an ID. MKSTREAM creates the",
		"    stream too; ENTRIESREAD says how many entries these were.",
		"CREATECONSUMER <key> <groupname> <consumer>",
		"    Create a consumer in a group.",
		"DELCONSUMER <key> <groupname> <consumer>",
		"    Delete a consumer with its pending entries.",
		"DESTROY <key> <groupname>",
		"    Delete a group.",
		"SETID <key> <groupname> <id|$> [ENTRIESREAD <count>]",
		"    Set the last ID that a group has got.")
}
