package redis

import (
	"container/list"
	"fmt"
	"time"
)

func slowlogCommands() []*command {
	const group = "server"
	const flags = flagAdmin | flagLoading | flagStale
	tips := []string{"request_policy:all_nodes", "nondeterministic_output"}
	return []*command{
		{name: "slowlog", arity: -2,
			doc: doc{"A container for commands about the slow log.", "2.2.12", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "slowlog|get", arity: -2, flags: flags, run: slowlogGetCommand, tips: tips,
					doc: doc{"Returns the newest entries of the slow log.", "2.2.12", group, "O(N), N the number of entries", "", ""}},
				{name: "slowlog|help", arity: 2, flags: flagLoading | flagStale, run: slowlogHelpCommand,
					doc: doc{"Returns help about the subcommands.", "6.2.0", group, "O(1)", "", ""}},
				{name: "slowlog|len", arity: 2, flags: flags, run: slowlogLenCommand,
					tips: []string{"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
					doc:  doc{"Counts the entries of the slow log.", "2.2.12", group, "O(1)", "", ""}},
				{name: "slowlog|reset", arity: 2, flags: flags, run: slowlogResetCommand,
					tips: []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
					doc:  doc{"Deletes the entries of the slow log.", "2.2.12", group, "O(N), N the number of entries", "", ""}},
			}},
	}
}

// slowlog holds the commands that took longer than a limit.
type slowlog struct {
	limit   time.Duration // negative: nothing is slow
	most    int           // entries to keep
	entries list.List     // of *slowEntry, the newest first
	lastID  int64         // of the next entry
}

type slowEntry struct {
	id         int64
	at         int64 // seconds since 1970
	took       time.Duration
	args       []string
	addr, name string // of the client
}

const (
	slowArgs     = 32  // of a command that has more, the last of these says how many
	slowArgument = 128 // bytes of an argument that are kept
)

func (l *slowlog) add(c *client, cmd *command, args [][]byte, took time.Duration) {
	if cmd.flags&flagSkipSlowlog != 0 {
		return
	}
	l.entries.PushFront(&slowEntry{
		id: l.lastID, at: c.server.space.now / 1000, took: took,
		args: slowArguments(redacted(cmd, args)), addr: c.addr(), name: c.name,
	})
	l.lastID++
	l.trim()
}

func (l *slowlog) trim() {
	for l.entries.Len() > l.most {
		l.entries.Remove(l.entries.Back())
	}
}

// slowArguments returns what the slow log keeps of a command.
func slowArguments(args [][]byte) []string {
	kept := make([]string, 0, min(len(args), slowArgs))
	for i, arg := range args {
		switch {
		case i == slowArgs-1 && len(args) > slowArgs:
			return append(kept, fmt.Sprintf("... (%d more arguments)", len(args)-i))
		case len(arg) > slowArgument:
			kept = append(kept, fmt.Sprintf("%s... (%d more bytes)", arg[:slowArgument], len(arg)-slowArgument))
		default:
			kept = append(kept, string(arg))
		}
	}
	return kept
}

// redacted returns the arguments of a command without its secrets.
func redacted(cmd *command, args [][]byte) [][]byte {
	var shown [][]byte
	hide := func(i int) {
		if shown == nil {
			shown = append(shown, args...)
		}
		shown[i] = []byte("(redacted)")
	}
	switch cmd.name {
	case "auth":
		for i := 1; i < len(args); i++ { // Redis shows them if they are too many
			hide(i)
		}
	case "hello":
		for i := 1; i < len(args); i++ {
			if isWord(args[i], "AUTH") { // or a name or a user of that name: rather too much is hidden
				for at := i + 1; at < min(i+3, len(args)); at++ {
					hide(at) // also the only one behind AUTH, which may be a password
				}
			}
		}
	case "acl|setuser":
		for i := 2; i < len(args); i++ {
			hide(i)
		}
	case "config|set":
		for i := 2; i+1 < len(args); i += 2 {
			if p := findParam(string(args[i])); p != nil && p.secret {
				hide(i + 1)
			}
		}
	}
	if shown == nil {
		return args
	}
	return shown
}

func slowlogGetCommand(c *client, args [][]byte) {
	if len(args) > 3 {
		c.subcommandSyntax(args)
		return
	}
	count := int64(10)
	if len(args) == 3 {
		var ok bool
		if count, ok = c.positiveArg(args[2], -1, "ERR count should be greater than or equal to -1"); !ok {
			return
		}
	}
	log := &c.server.slowlog.entries
	if count < 0 || count > int64(log.Len()) {
		count = int64(log.Len())
	}
	c.Array(int(count))
	for e := log.Front(); count > 0; e, count = e.Next(), count-1 {
		x := e.Value.(*slowEntry)
		c.Array(6)
		c.Int(x.id)
		c.Int(x.at)
		c.Int(x.took.Microseconds())
		c.Array(len(x.args))
		for _, arg := range x.args {
			c.BulkString(arg)
		}
		c.BulkString(x.addr)
		c.BulkString(x.name)
		c.spill()
	}
}

func slowlogLenCommand(c *client, _ [][]byte) { c.Int(int64(c.server.slowlog.entries.Len())) }

func slowlogResetCommand(c *client, _ [][]byte) {
	c.server.slowlog.entries.Init()
	c.ok()
}

func slowlogHelpCommand(c *client, _ [][]byte) {
	c.help("SLOWLOG",
		"GET [<count>]",
		"    The newest entries (default: 10, -1: all): number, time, microseconds, command,",
		"    the client's address and name.",
		"LEN",
		"    The number of entries.",
		"RESET",
		"    Delete the entries.")
}
