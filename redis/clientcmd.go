package redis

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/resp"
)

func clientCommands() []*command {
	const group = "connection"
	const plain = flagNoscript | flagLoading | flagStale
	const admin = plain | flagAdmin
	sub := func(name string, arity int, flags cmdFlags, run func(*client, [][]byte), since, summary string, tips ...string) *command {
		return &command{name: "client|" + name, arity: arity, flags: flags, cats: catConnection, run: run, tips: tips,
			doc: doc{summary: summary, since: since, group: group, complexity: "O(1)"}}
	}
	return []*command{
		{name: "client", arity: -2,
			doc: doc{"A container for commands about connections.", "2.4.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				sub("caching", 3, plain, clientCachingCommand, "6.0.0", "Says whether to track the keys of the next command or transaction."),
				sub("getname", 2, plain, clientGetnameCommand, "2.6.9", "Returns the connection's name."),
				sub("getredir", 2, plain, clientGetredirCommand, "6.0.0", "Returns the connection that gets the messages about this one's keys."),
				sub("help", 2, flagLoading|flagStale, clientHelpCommand, "5.0.0", "Returns help about the subcommands."),
				sub("id", 2, plain, clientIDCommand, "5.0.0", "Returns the connection's number."),
				sub("info", 2, plain, clientInfoCommand, "6.2.0", "Returns information about the connection.", "nondeterministic_output"),
				sub("kill", -3, admin, clientKillCommand, "2.4.0", "Closes connections."),
				sub("list", -2, admin, clientListCommand, "2.4.0", "Returns information about all connections.", "nondeterministic_output"),
				sub("no-evict", 3, admin, clientNoEvictCommand, "7.0.0", "Exempts the connection from being closed to free memory."),
				sub("no-touch", 3, plain, clientNoTouchCommand, "7.2.0", "Makes the connection's commands count as no use of their keys."),
				sub("pause", -3, admin, clientPauseCommand, "2.9.50", "Makes the commands of clients wait for some time."),
				sub("reply", 3, plain, clientReplyCommand, "3.2.0", "Turns replies on, off, or off for the next command."),
				sub("setinfo", 4, plain, clientSetinfoCommand, "7.2.0", "Sets the name or version of the client's library."),
				sub("setname", 3, plain, clientSetnameCommand, "2.6.9", "Gives the connection a name."),
				sub("tracking", -3, plain, clientTrackingCommand, "6.0.0", "Tells the connection when keys that it has read change."),
				sub("trackinginfo", 2, plain, clientTrackinginfoCommand, "6.2.0", "Returns how keys are tracked for the connection."),
				sub("unpause", 2, admin, clientUnpauseCommand, "6.2.0", "Ends the wait that CLIENT PAUSE began."),
				sub("unblock", -3, admin, clientUnblockCommand, "5.0.0", "Ends the wait of a connection that is blocked."),
			}},
	}
}

func clientIDCommand(c *client, _ [][]byte) { c.Int(c.id) }

func clientGetnameCommand(c *client, _ [][]byte) {
	if c.name == "" {
		c.Null()
	} else {
		c.BulkString(c.name)
	}
}

func clientSetnameCommand(c *client, args [][]byte) {
	if c.setName(args[2]) {
		c.ok()
	}
}

func (c *client) setName(name []byte) bool {
	if !isPlain(name) {
		c.fail("ERR Client names cannot contain spaces, newlines or special characters.")
		return false
	}
	c.name = string(name)
	return true
}

// isPlain reports whether b can stand in a line of CLIENT LIST without breaking
// its format.
func isPlain(b []byte) bool {
	for _, x := range b {
		if x < '!' || x > '~' {
			return false
		}
	}
	return true
}

// clientSetinfoCommand comes from Redis 7.2: current clients call it when they
// connect.
func clientSetinfoCommand(c *client, args [][]byte) {
	to := &c.libName
	option := strings.ToLower(string(args[2]))
	switch option {
	case "lib-name":
	case "lib-ver":
		to = &c.libVersion
	default:
		c.fail(fmt.Sprintf("ERR Unrecognized option '%s'", args[2]))
		return
	}
	if !isPlain(args[3]) {
		c.fail("ERR " + option + " cannot contain spaces, newlines or special characters.")
		return
	}
	*to = string(args[3])
	c.ok()
}

func clientInfoCommand(c *client, _ [][]byte) { c.Verbatim("txt", c.describe()+"\n") }

func clientListCommand(c *client, args [][]byte) {
	var text strings.Builder
	list := func(x *client) {
		text.WriteString(x.describe())
		text.WriteByte('\n')
	}
	switch {
	case len(args) == 4 && isWord(args[2], "TYPE"):
		class, ok := c.classArg(args[3])
		if !ok {
			return
		}
		for _, x := range c.server.clients.sorted() {
			if x.class() == class {
				list(x)
			}
		}
	case len(args) > 3 && isWord(args[2], "ID"):
		for _, arg := range args[3:] {
			id, ok := resp.ParseInt(arg)
			if !ok {
				c.fail("ERR Invalid client ID")
				return
			}
			if x := c.server.clients.find(id); x != nil {
				list(x)
			}
		}
	case len(args) != 2:
		c.fail(errSyntax)
		return
	default:
		for _, x := range c.server.clients.sorted() {
			list(x)
		}
	}
	c.Verbatim("txt", text.String())
}

// sorted returns the listed clients in the order they connected.
func (l *clients) sorted() []*client {
	return slices.SortedFunc(l.listed(), func(a, b *client) int { return cmp.Compare(a.id, b.id) })
}

// find returns the listed client with an id, or nil.
func (l *clients) find(id int64) *client {
	if c := l.byID[id]; c != nil || len(l.leaving) == 0 {
		return c
	}
	for c := range l.listed() {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (c *client) classArg(arg []byte) (class, bool) {
	class, ok := classByName(arg)
	if !ok {
		c.fail(fmt.Sprintf("ERR Unknown client type '%s'", arg))
	}
	return class, ok
}

// describe returns the client's line of CLIENT LIST. It reports values that are
// unknown here, such as the descriptor, as 0.
func (c *client) describe() string {
	now := c.server.space.now
	sub, psub, ssub, multi, multiMem := 0, 0, 0, -1, 0
	if c.pubsub != nil {
		sub, psub, ssub = len(c.pubsub.channels.list), len(c.pubsub.patterns.list), len(c.pubsub.shards.list)
	}
	if c.tx != nil {
		multi, multiMem = len(c.tx.queue), c.tx.size
	}
	pending := c.transport.pending()
	total, _ := c.memory()
	c.transport.refresh() // for the next describe
	events := "r"
	if pending > 0 {
		events = "rw"
	}
	cmd := "NULL"
	if c.lastCmd != nil {
		cmd = c.lastCmd.name
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=0 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=%d "+
		"qbuf=%d qbuf-free=0 argv-mem=0 multi-mem=%d rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=%s cmd=%s "+
		"user=%s redir=%d resp=%d%s",
		c.id, c.addr(), c.laddr(), c.name, (now-c.created)/1000, (now-c.active)/1000, c.flagLetters(), c.db.keys.Index(), sub, psub, ssub, multi,
		c.input, multiMem, pending, total, events, cmd, c.user.Name(), c.redirection(), c.Proto, c.library())
}

// library returns the values that CLIENT SETINFO set. The lines of Redis 7.0 do
// not have them.
func (c *client) library() string {
	if c.libName == "" && c.libVersion == "" {
		return ""
	}
	return " lib-name=" + c.libName + " lib-ver=" + c.libVersion
}

// addr and laddr return the ends of the connection as CLIENT LIST and CLIENT
// KILL write them.
func (c *client) addr() string {
	if a, ok := c.transport.peer().(*net.TCPAddr); ok {
		return a.String()
	}
	return c.laddr()
}

func (c *client) laddr() string {
	switch a := c.transport.local().(type) {
	case *net.TCPAddr:
		return a.String()
	case nil:
		return "?:0"
	default:
		return a.String() + ":0"
	}
}

func (c *client) flagLetters() string {
	var flags []byte
	var x clientTracking
	if c.tracks != nil {
		x = *c.tracks
	}
	for _, f := range []struct {
		on     bool
		letter byte
	}{
		{c.monitor, 'O'}, {c.subscribed(), 'P'}, {c.tx != nil, 'x'}, {c.wait != nil, 'b'}, {x.on, 't'}, {x.broken, 'R'}, {x.bcast, 'B'},
		{c.dirtyCAS, 'd'}, {c.closing, 'c'}, {!c.isTCP(), 'U'}, {c.noEvict, 'e'}, {c.noTouch, 'T'},
	} {
		if f.on {
			flags = append(flags, f.letter)
		}
	}
	if len(flags) == 0 {
		return "N"
	}
	return string(flags)
}

func (c *client) isUnix() bool {
	_, ok := c.transport.peer().(*net.UnixAddr)
	return ok
}

func (c *client) isTCP() bool {
	_, ok := c.transport.peer().(*net.TCPAddr)
	return ok
}

func clientReplyCommand(c *client, args [][]byte) {
	switch mode := args[2]; {
	case isWord(mode, "ON"):
		if c.silent() {
			c.B = c.B[:c.base] // drop the replies of earlier commands of the transaction
		}
		c.reply = replyOn
		c.ok()
	case isWord(mode, "OFF"):
		c.base = len(c.B) // keep the replies of earlier commands of the transaction
		c.reply = replyOff
	case isWord(mode, "SKIP"):
		if c.reply != replyOff {
			c.reply = replySkipNext
		}
	default:
		c.fail(errSyntax)
	}
}

// clientNoEvictCommand exempts a client from clientMemory.check.
func clientNoEvictCommand(c *client, args [][]byte) {
	switch mode := args[2]; {
	case isWord(mode, "ON"):
		c.noEvict = true
	case isWord(mode, "OFF"):
		c.noEvict = false
	default:
		c.fail(errSyntax)
		return
	}
	c.ok()
}

func clientHelpCommand(c *client, _ [][]byte) {
	c.help("CLIENT",
		"CACHING (YES|NO)",
		"    Whether to track the keys of the next command or transaction, with OPTIN or OPTOUT.",
		"GETNAME",
		"    The name of this connection.",
		"GETREDIR",
		"    The connection that gets the messages about this one's keys: 0: itself, -1: none.",
		"ID",
		"    The number of this connection.",
		"INFO",
		"    Information about this connection.",
		"KILL <ip:port>",
		"    Close the connection from an address.",
		"KILL <option> <value> [<option> <value> [...]]",
		"    Close all connections to which every option applies:",
		"    * ADDR (<ip:port>|<unixsocket>:0), LADDR: the client's address, the server's address",
		"    * ID <number>",
		"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
		"    * USER <name>",
		"    * SKIPME (YES|NO): whether to spare this one (default: yes)",
		"LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)|ID <number> ...]",
		"    Information about connections.",
		"NO-EVICT (ON|OFF)",
		"    Whether to spare this connection when clients hold more than maxmemory-clients.",
		"NO-TOUCH (ON|OFF)",
		"    Whether this connection's commands count as no use of their keys.",
		"PAUSE <milliseconds> [WRITE|ALL]",
		"    Make commands of clients wait: those that may write, or all (default).",
		"REPLY (ON|OFF|SKIP)",
		"    Turn replies on, off, or off for the next command.",
		"SETINFO (LIB-NAME|LIB-VER) <text>",
		"    Set the name or version of the client's library.",
		"SETNAME <name>",
		"    Name this connection.",
		"TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]",
		"    Whether to tell this connection when keys that it has read change.",
		"TRACKINGINFO",
		"    How keys are tracked for this connection.",
		"UNBLOCK <id> [TIMEOUT|ERROR]",
		"    End the wait of a blocked connection, as a timeout does or with an error.",
		"UNPAUSE",
		"    End the wait that CLIENT PAUSE began.")
}
