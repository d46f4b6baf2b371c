package redis

import (
	"bytes"
	"math/bits"
)

func tableCommands() []*command {
	const group = "server"
	const flags = flagLoading | flagStale
	unordered := []string{"nondeterministic_output_order"}
	return []*command{
		{name: "command", arity: -1, flags: flags, cats: catConnection, tips: unordered, run: commandCommand,
			doc: doc{"Returns information about all commands.", "2.8.13", group, "O(N), N the number of commands", "", ""},
			subs: []*command{
				{name: "command|count", arity: 2, flags: flags, cats: catConnection, run: commandCountCommand,
					doc: doc{"Counts the commands.", "2.8.13", group, "O(1)", "", ""}},
				{name: "command|docs", arity: -2, flags: flags, cats: catConnection, tips: unordered, run: commandDocsCommand,
					doc: doc{"Returns documentation of commands.", "7.0.0", group, "O(N), N the number of commands", "", ""}},
				{name: "command|getkeys", arity: -4, flags: flags, cats: catConnection, run: commandGetkeysCommand,
					doc: doc{"Returns the keys of a request.", "2.8.13", group, "O(N), N the number of arguments", "", ""}},
				{name: "command|getkeysandflags", arity: -4, flags: flags, cats: catConnection, run: commandGetkeysandflagsCommand,
					doc: doc{"Returns the keys of a request and their flags.", "7.0.0", group, "O(N), N the number of arguments", "", ""}},
				{name: "command|help", arity: 2, flags: flags, cats: catConnection, run: commandHelpCommand,
					doc: doc{"Returns help about the subcommands.", "5.0.0", group, "O(1)", "", ""}},
				{name: "command|info", arity: -2, flags: flags, cats: catConnection, tips: unordered, run: commandInfoCommand,
					doc: doc{"Returns information about commands.", "2.8.13", group, "O(N), N the number of commands", "", ""}},
				{name: "command|list", arity: -2, flags: flags, cats: catConnection, tips: unordered, run: commandListCommand,
					doc: doc{"Returns the names of commands.", "7.0.0", group, "O(N), N the number of commands", "", ""}},
			}},
	}
}

func commandCommand(c *client, _ [][]byte) {
	c.Array(len(c.server.commands.list))
	for _, cmd := range c.server.commands.list {
		c.commandInfo(cmd)
	}
}

func commandCountCommand(c *client, _ [][]byte) { c.Int(int64(len(c.server.commands.list))) }

func commandInfoCommand(c *client, args [][]byte) {
	if len(args) == 2 {
		commandCommand(c, args)
		return
	}
	c.Array(len(args) - 2)
	for _, name := range args[2:] {
		if cmd := c.server.commands.named(name); cmd != nil {
			c.commandInfo(cmd)
		} else {
			c.Null()
		}
	}
}

// commandInfo adds a command's entry of COMMAND INFO.
func (c *client) commandInfo(cmd *command) {
	first, last, step := cmd.keyRange()
	c.Array(10)
	c.BulkString(cmd.name)
	c.Int(int64(cmd.arity))
	c.names(uint32(cmd.flags), flagNames, "")
	c.Int(int64(first))
	c.Int(int64(last))
	c.Int(int64(step))
	c.names(uint32(cmd.categories()), categoryNames, "@")
	c.Set(len(cmd.tips))
	for _, tip := range cmd.tips {
		c.BulkString(tip)
	}
	c.Set(len(cmd.keys))
	for i := range cmd.keys {
		c.keySpec(&cmd.keys[i])
	}
	if cmd.subs == nil {
		c.Set(0)
		return
	}
	c.Array(len(cmd.subs))
	for _, sub := range cmd.subs {
		c.commandInfo(sub)
	}
}

// names adds the names of the set's bits as a RESP set. It ignores bits without
// a name.
func (c *client) names(set uint32, names []string, prefix string) {
	set &= 1<<len(names) - 1
	c.Set(bits.OnesCount32(set))
	for i, name := range names {
		if set&(1<<i) != 0 {
			c.Simple(prefix + name)
		}
	}
}

func (c *client) keySpec(k *keySpec) {
	if k.notes == "" {
		c.Map(3)
	} else {
		c.Map(4)
		c.pair("notes", k.notes)
	}
	c.BulkString("flags")
	c.names(uint32(k.flags), keyFlagNames, "")
	c.BulkString("begin_search")
	if k.unknown {
		c.keySearch("unknown", 0)
		c.BulkString("find_keys")
		c.keySearch("unknown", 0)
		return
	}
	if k.keyword != "" {
		c.keySearch("keyword", 2)
		c.pair("keyword", k.keyword)
		c.intPair("startfrom", k.first)
	} else {
		c.keySearch("index", 1)
		c.intPair("index", k.first)
	}
	c.BulkString("find_keys")
	if k.counted {
		c.keySearch("keynum", 3)
		c.intPair("keynumidx", 0)
		c.intPair("firstkey", 1)
		c.intPair("keystep", k.step)
		return
	}
	c.keySearch("range", 3)
	c.intPair("lastkey", k.last)
	c.intPair("keystep", k.step)
	if k.half {
		c.intPair("limit", 2)
	} else {
		c.intPair("limit", 0)
	}
}

// keySearch begins a way to find keys, whose map of n properties follows.
func (c *client) keySearch(kind string, n int) {
	c.Map(2)
	c.pair("type", kind)
	c.BulkString("spec")
	c.Map(n)
}

func (c *client) intPair(key string, n int) {
	c.BulkString(key)
	c.Int(int64(n))
}

func commandDocsCommand(c *client, args [][]byte) {
	chosen := c.server.commands.list
	if len(args) > 2 {
		chosen = nil
		for _, name := range args[2:] {
			if cmd := c.server.commands.named(name); cmd != nil {
				chosen = append(chosen, cmd)
			}
		}
	}
	c.Map(len(chosen))
	for _, cmd := range chosen {
		c.commandDocs(cmd)
	}
}

// forTests are the commands that Redis marks as of its own use.
var forTests = map[string]bool{"debug": true, "pfdebug": true, "pfselftest": true}

// commandDocs adds a command's name and its entry of COMMAND DOCS.
func (c *client) commandDocs(cmd *command) {
	c.BulkString(cmd.name)
	c.mapOf(func(f *fields) {
		f.text("summary", cmd.doc.summary)
		f.text("since", cmd.doc.since)
		f.text("group", cmd.doc.group)
		f.text("complexity", cmd.doc.complexity)
		switch {
		case cmd.doc.deprecated != "":
			f.key("doc_flags")
			c.Set(1)
			c.Simple("deprecated")
			f.text("deprecated_since", cmd.doc.deprecated)
			f.text("replaced_by", cmd.doc.instead)
		case forTests[cmd.name]:
			f.key("doc_flags")
			c.Set(1)
			c.Simple("syscmd")
		}
		if list := syntax()[cmd.name]; list != nil {
			f.key("arguments")
			c.arguments(list)
		}
		if cmd.subs != nil {
			f.key("subcommands")
			c.Map(len(cmd.subs))
			for _, sub := range cmd.subs {
				c.commandDocs(sub)
			}
		}
	})
}

func commandListCommand(c *client, args [][]byte) {
	want := func(*command) bool { return true }
	if rest := args[2:]; len(rest) > 0 {
		if len(rest) != 3 || !isWord(rest[0], "FILTERBY") {
			c.fail(errSyntax)
			return
		}
		if want = commandFilter(rest[1], rest[2]); want == nil {
			c.fail(errSyntax)
			return
		}
	}
	c.array(func() (n int) {
		c.server.commands.all(func(cmd *command) {
			if want(cmd) {
				c.BulkString(cmd.name)
				n++
			}
		})
		return n
	})
}

// commandFilter returns the predicate of a FILTERBY, or nil for an unknown
// filter.
func commandFilter(filter, arg []byte) func(*command) bool {
	switch {
	case isWord(filter, "MODULE"):
		return func(*command) bool { return false }
	case isWord(filter, "ACLCAT"):
		var cat category
		for i, name := range categoryNames {
			if bytes.EqualFold(arg, []byte(name)) {
				cat = 1 << i
			}
		}
		return func(cmd *command) bool { return cmd.categories()&cat != 0 }
	case isWord(filter, "PATTERN"):
		return func(cmd *command) bool { return glob(arg, cmd.name, true) }
	}
	return nil
}

func commandGetkeysCommand(c *client, args [][]byte) { c.keysOf(args[2:], false) }

func commandGetkeysandflagsCommand(c *client, args [][]byte) { c.keysOf(args[2:], true) }

// keysOf replies with the keys of a request.
func (c *client) keysOf(args [][]byte, withFlags bool) {
	cmd := c.server.commands.find(args)
	switch {
	case cmd == nil:
		c.fail("ERR Invalid command specified")
		return
	case len(cmd.keys) == 0 || cmd.keys[0].flags&keyNot != 0:
		c.fail("ERR The command has no key arguments")
		return
	case !cmd.arityOK(len(args)):
		c.fail("ERR Invalid number of arguments specified for command")
		return
	}
	for i := range cmd.keys {
		if k := &cmd.keys[i]; cmd.flags&flagNoKeys != 0 && k.counted && string(args[k.first]) == "0" {
			continue
		}
		if _, _, ok := cmd.keys[i].find(args); !ok {
			c.fail("ERR Invalid arguments specified for command")
			return
		}
	}
	c.array(func() (n int) {
		for i := range cmd.keys {
			k := &cmd.keys[i]
			first, last, ok := k.find(args)
			if !ok {
				continue
			}
			for at := first; at <= last; at += k.step {
				n++
				if withFlags {
					c.Array(2)
					c.Bulk(args[at])
					c.names(uint32(k.flagsOf(args)), keyFlagNames, "")
				} else {
					c.Bulk(args[at])
				}
			}
		}
		return n
	})
}

func commandHelpCommand(c *client, _ [][]byte) {
	c.help("COMMAND",
		"(no subcommand)",
		"    Information about all commands.",
		"COUNT",
		"    The number of commands.",
		"LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
		"    The names of commands.",
		"INFO [<command-name> ...]",
		"    Information about commands (default: all).",
		"DOCS [<command-name> ...]",
		"    Documentation of commands (default: all).",
		"GETKEYS <full-command>",
		"    The keys of a request.",
		"GETKEYSANDFLAGS <full-command>",
		"    The keys of a request, and their flags.")
}
