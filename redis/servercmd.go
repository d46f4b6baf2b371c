package redis

import (
	"math"
	"strconv"
	"strings"
	"time"
)

func serverCommands() []*command {
	const group = "server"
	all := []string{"request_policy:all_shards", "response_policy:all_succeeded"}
	return []*command{
		{name: "dbsize", arity: 1, flags: flagReadonly | flagFast, cats: catKeyspace, run: dbsizeCommand,
			tips: []string{"request_policy:all_shards", "response_policy:agg_sum"},
			doc:  doc{"Counts the keys of the database.", "1.0.0", group, "O(1)", "", ""}},
		{name: "debug", arity: -2, flags: flagAdmin | flagNoscript | flagLoading | flagStale | flagProtected, run: debugCommand,
			doc: doc{"A container for commands that help to test servers and clients.", "1.0.0", group, "depends on the subcommand", "", ""}},
		{name: "flushall", arity: -1, flags: flagWrite, cats: catKeyspace | catDangerous, tips: all, run: flushallCommand,
			doc: doc{"Deletes the keys of all databases.", "1.0.0", group, "O(1)", "", ""}},
		{name: "flushdb", arity: -1, flags: flagWrite, cats: catKeyspace | catDangerous, tips: all, run: flushdbCommand,
			doc: doc{"Deletes the keys of the database.", "1.0.0", group, "O(1)", "", ""}},
		{name: "info", arity: -1, flags: flagLoading | flagStale, cats: catDangerous, run: infoCommand,
			tips: []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
			doc:  doc{"Returns information and statistics about the server.", "1.0.0", group, "O(1)", "", ""}},
		{name: "shutdown", arity: -1, flags: flagAdmin | flagNoscript | flagLoading | flagStale | flagNoMulti | flagAllowBusy, run: shutdownCommand,
			doc: doc{"Ends the server. Nothing is saved.", "1.0.0", group, "O(1)", "", ""}},
		{name: "time", arity: 1, flags: flagLoading | flagStale | flagFast, run: timeCommand,
			tips: []string{"nondeterministic_output"},
			doc:  doc{"Returns the server's time.", "2.6.0", group, "O(1)", "", ""}},
	}
}

func dbsizeCommand(c *client, _ [][]byte) { c.Int(int64(c.db.len())) }

// flushOption checks the one option of FLUSHALL, FLUSHDB and FUNCTION FLUSH.
// Its two values mean the same here, since the store frees the memory in slices.
func flushOption(args [][]byte) bool {
	return len(args) == 0 || len(args) == 1 && (isWord(args[0], "SYNC") || isWord(args[0], "ASYNC"))
}

func flushdbCommand(c *client, args [][]byte) {
	if !flushOption(args[1:]) {
		c.fail(errSyntax)
		return
	}
	c.flushDB(c.db)
	c.server.tracking.flushed()
	c.ok()
}

func flushallCommand(c *client, args [][]byte) {
	if !flushOption(args[1:]) {
		c.fail(errSyntax)
		return
	}
	for i := range c.server.space.dbs {
		c.flushDB(&c.server.space.dbs[i])
	}
	c.server.tracking.flushed()
	c.ok()
}

func (c *client) flushDB(db *database) {
	c.server.space.dirty += int64(db.len())
	db.touchedAll()
	db.suspectAll(true)
	db.flush()
}

func timeCommand(c *client, _ [][]byte) {
	now := c.server.clock()
	c.Array(2)
	c.BulkInt(now.Unix())
	c.BulkInt(int64(now.Nanosecond()) / 1000)
}

// debugAllowed reports whether the client may use DEBUG.
func (c *client) debugAllowed() bool {
	return c.mayProtected(c.server.config.debug)
}

// mayProtected reports whether the client is among those that may do something.
func (c *client) mayProtected(who DebugAccess) bool {
	switch who {
	case DebugYes:
		return true
	case DebugNo:
		return false
	}
	return isLocal(c.transport.peer())
}

const errDebug = `ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`

func debugCommand(c *client, args [][]byte) {
	switch sub := args[1]; {
	case isWord(sub, "PROTOCOL") && len(args) == 3:
		c.debugReply(args[2])
		return
	case isWord(sub, "SLEEP") && len(args) == 3:
		c.sleep(args[2])
	case isWord(sub, "LOG") && len(args) == 3:
		c.server.log().Warn("DEBUG LOG", "text", string(args[2]))
	case isWord(sub, "ERROR") && len(args) == 3:
		c.fail(string(args[2]))
		return
	case isWord(sub, "OBJECT") && len(args) == 3:
		c.debugObject(args[2])
		return
	case isWord(sub, "SET-ACTIVE-EXPIRE") && len(args) == 3:
		c.server.expiry.enable(string(args[2]) != "0")
	case isWord(sub, "QUICKLIST-PACKED-THRESHOLD") && len(args) == 3: // all elements lie in listpacks
	case isWord(sub, "REPLYBUFFER") && len(args) == 4: // no client keeps a buffer for replies
	case isWord(sub, "PAUSE-CRON") && len(args) == 3: // nothing is done by a clock that can be done at once
	case isWord(sub, "DIGEST") && len(args) == 2:
		c.debugDigest()
		return
	case isWord(sub, "DIGEST-VALUE"):
		c.debugDigestValues(args[2:])
		return
	case isWord(sub, "RELOAD") && len(args) == 2:
		if !c.debugReload() {
			c.fail("ERR Error trying to load the RDB dump")
			return
		}
	case isWord(sub, "CONFIG-REWRITE-FORCE-ALL") && len(args) == 2:
		c.rewriteConfig(true)
		return
	case isWord(sub, "HELP") && len(args) == 2:
		c.help("DEBUG",
			"CONFIG-REWRITE-FORCE-ALL",
			"    As CONFIG REWRITE, with a line for every parameter.",
			"DIGEST",
			"    A checksum of all keys and values.",
			"DIGEST-VALUE [<key> ...]",
			"    The checksums of values.",
			"ERROR <text>",
			"    Reply with an error, to test clients.",
			"LOG <text>",
			"    Write a text to the log.",
			"OBJECT <key>",
			"    Where the value of a key lies, how it is stored, and its bytes in memory.",
			"PAUSE-CRON (0|1)",
			"    Accepted, without effect.",
			"PROTOCOL <type>",
			"    Reply with a value of a type, to test clients.",
			"QUICKLIST-PACKED-THRESHOLD <size>",
			"    Accepted, without effect: no element of a list is stored by itself.",
			"RELOAD",
			"    Encode all values as in a file, and read them again.",
			"REPLYBUFFER (PEAK-RESET-TIME (<ms>|NEVER|RESET)|RESIZING (0|1))",
			"    Accepted, without effect: no client keeps a buffer for replies.",
			"SET-ACTIVE-EXPIRE (0|1)",
			"    Delete keys when they expire (1), or only when a command asks for them (0).",
			"SLEEP <seconds>",
			"    Stop the server for a time. Fractions are allowed.")
		return
	default:
		c.subcommandSyntax(args)
		return
	}
	c.ok()
}

// sleep stops the loop, as DEBUG SLEEP does in Redis, to show what clients do
// when the server is stuck.
func (c *client) sleep(arg []byte) {
	seconds, err := strconv.ParseFloat(string(arg), 64)
	if err != nil || math.IsNaN(seconds) || seconds <= 0 {
		return
	}
	d := time.Duration(min(seconds, float64(math.MaxInt32)) * float64(time.Second))
	time.Sleep(d)
	c.server.space.setNow(c.server.space.now + d.Milliseconds())
}

// subcommandSyntax answers a known subcommand that has the wrong arguments.
func (c *client) subcommandSyntax(args [][]byte) {
	c.fail("ERR unknown subcommand or wrong number of arguments for '" + string(cString(args[1], 128)) +
		"'. Try " + strings.ToUpper(string(args[0])) + " HELP.")
}

// help replies with what a container's subcommands do.
func (c *client) help(container string, lines ...string) {
	c.Array(len(lines) + 3)
	c.Simple(container + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, line := range lines {
		c.Simple(line)
	}
	c.Simple("HELP")
	c.Simple("    Prints this help.")
}
