package redis

import (
	"math"

	"github.com/rondo-go/rondo/resp"
)

// standaloneCommands are commands about replicas, saving, modules and art, of which
// this server has none. Clients and tools ask for them.
func standaloneCommands() []*command {
	const group = "server"
	return []*command{
		{name: "lastsave", arity: 1, flags: flagLoading | flagStale | flagFast, cats: catAdmin | catDangerous, run: lastsaveCommand,
			tips: []string{"nondeterministic_output"},
			doc:  doc{"Returns the time when the server started: nothing is saved.", "1.0.0", group, "O(1)", "", ""}},
		{name: "lolwut", arity: -1, flags: flagReadonly | flagFast, run: lolwutCommand,
			doc: doc{"Returns the version of Redis, without art.", "5.0.0", group, "O(1)", "", ""}},
		{name: "module", arity: -2,
			doc: doc{"A container for commands about modules. The server has none.", "4.0.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "module|help", arity: 2, flags: flagLoading | flagStale, run: moduleHelpCommand,
					doc: doc{"Returns help about the subcommands.", "5.0.0", group, "O(1)", "", ""}},
				{name: "module|list", arity: 2, flags: flagAdmin | flagNoscript, run: func(c *client, _ [][]byte) { c.Array(0) },
					tips: []string{"nondeterministic_output_order"},
					doc:  doc{"Returns the loaded modules: none.", "4.0.0", group, "O(1)", "", ""}},
			}},
		{name: "role", arity: 1, flags: flagNoscript | flagLoading | flagStale | flagFast, cats: catAdmin | catDangerous, run: roleCommand,
			doc: doc{"Returns that the server is a master without replicas.", "2.8.12", group, "O(1)", "", ""}},
		{name: "wait", arity: 3, flags: flagNoscript, cats: catConnection, run: waitCommand,
			tips: []string{"request_policy:all_shards", "response_policy:agg_min"},
			doc:  doc{"Waits until replicas have the client's writes, of which there are none.", "3.0.0", "generic", "O(1)", "", ""}},
	}
}

func lolwutCommand(c *client, args [][]byte) {
	if len(args) > 2 && isWord(args[1], "VERSION") {
		if _, ok := c.int64Arg(args[2]); !ok {
			return
		}
	}
	c.Verbatim("txt", "Redis ver. "+Version+"\n")
}

func lastsaveCommand(c *client, _ [][]byte) { c.Int(c.server.since.Unix()) }

func moduleHelpCommand(c *client, _ [][]byte) {
	c.help("MODULE",
		"LIST",
		"    The loaded modules: none.")
}

func roleCommand(c *client, _ [][]byte) {
	c.Array(3)
	c.BulkString("master")
	c.Int(0)
	c.Array(0)
}

// waitCommand waits for the whole timeout if it is asked for a replica.
func waitCommand(c *client, args [][]byte) {
	replicas, ok := c.int64Arg(args[1])
	if !ok {
		return
	}
	timeout, ok := c.positiveArg(args[2], math.MinInt64, "ERR timeout is not an integer or out of range")
	switch {
	case !ok:
	case timeout < 0:
		c.fail("ERR timeout is negative")
	case replicas <= 0 || !c.mayBlock():
		c.Int(0)
	default:
		c.block(nil, 0, timeout, nil)
		c.wait.missed = func(r *resp.Reply) { r.Int(0) }
	}
}
