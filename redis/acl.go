package redis

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/rondo-go/rondo/redis/acl"
)

func aclCommands() []*command {
	const group = "server"
	const plain = flagNoscript | flagLoading | flagStale
	const admin = plain | flagAdmin
	sub := func(name string, arity int, flags cmdFlags, run func(*client, [][]byte), since, complexity, summary string) *command {
		return &command{name: "acl|" + name, arity: arity, flags: flags, run: run,
			doc: doc{summary: summary, since: since, group: group, complexity: complexity}}
	}
	return []*command{
		{name: "acl", arity: -2,
			doc: doc{"A container for commands about users and their permissions.", "6.0.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				sub("cat", -2, plain, aclCatCommand, "6.0.0", "O(N), N the number of commands", "Returns the categories of commands, or the commands of one."),
				sub("deluser", -3, admin, aclDeluserCommand, "6.0.0", "O(N), N the number of connections", "Deletes users, and closes their connections."),
				sub("dryrun", -4, admin, aclDryrunCommand, "7.0.0", "O(1)", "Returns whether a user may run a command, without running it."),
				sub("genpass", -2, plain, aclGenpassCommand, "6.0.0", "O(1)", "Returns a random password."),
				sub("getuser", 3, admin, aclGetuserCommand, "6.0.0", "O(N), N the number of rules", "Returns the rules of a user."),
				sub("help", 2, flagLoading|flagStale, aclHelpCommand, "6.0.0", "O(1)", "Returns help about the subcommands."),
				sub("list", 2, admin, aclListCommand, "6.0.0", "O(N), N the number of users", "Returns the users with their rules, as lines of a file."),
				sub("load", 2, admin, aclLoadCommand, "6.0.0", "O(N), N the number of users", "Reads the users' file anew."),
				sub("log", -2, admin, aclLogCommand, "6.0.0", "O(N), N the number of entries", "Returns what was refused, or forgets it."),
				sub("save", 2, admin, aclSaveCommand, "6.0.0", "O(N), N the number of users", "Writes the users' file."),
				sub("setuser", -3, admin, aclSetuserCommand, "6.0.0", "O(N), N the number of rules", "Makes a user, or changes one."),
				sub("users", 2, admin, aclUsersCommand, "6.0.0", "O(N), N the number of users", "Returns the names of the users."),
				sub("whoami", 2, plain, aclWhoamiCommand, "6.0.0", "O(1)", "Returns the name of the connection's user."),
			}},
	}
}

func aclCatCommand(c *client, args [][]byte) {
	switch len(args) {
	case 2:
		c.Array(len(categoryNames))
		for _, name := range categoryNames {
			c.BulkString(name)
		}
		return
	case 3:
	default:
		c.subcommandSyntax(args)
		return
	}
	for i, name := range categoryNames {
		if isWord(args[2], strings.ToUpper(name)) {
			c.array(func() (n int) {
				c.server.commands.all(func(cmd *command) {
					if cmd.categories()&(1<<i) != 0 {
						c.BulkString(cmd.name)
						n++
					}
				})
				return n
			})
			return
		}
	}
	c.fail(fmt.Sprintf("ERR Unknown category '%s'", cString(args[2], 128)))
}

func aclWhoamiCommand(c *client, _ [][]byte) { c.BulkString(c.user.Name()) }

func aclUsersCommand(c *client, _ [][]byte) {
	c.Array(c.server.users.Len())
	for _, u := range c.server.users.Sorted() {
		c.BulkString(u.Name())
		c.spill()
	}
}

func aclListCommand(c *client, _ [][]byte) {
	c.Array(c.server.users.Len())
	for _, u := range c.server.users.Sorted() {
		c.BulkString(u.Line())
		c.spill()
	}
}

func aclGetuserCommand(c *client, args [][]byte) {
	u := c.server.users.Find(args[2])
	if u == nil {
		c.Null()
		return
	}
	c.Map(6)
	c.BulkString("flags")
	c.Set(len(u.Flags()))
	for _, f := range u.Flags() {
		c.BulkString(f)
	}
	c.BulkString("passwords")
	c.Array(len(u.Passwords()))
	for _, p := range u.Passwords() {
		c.BulkString(p)
	}
	all := u.Selectors()
	c.selector(all[0])
	c.BulkString("selectors")
	c.Array(len(all) - 1)
	for _, s := range all[1:] {
		c.Map(3)
		c.selector(s)
	}
}

// selector adds three pairs that describe a selector.
func (c *client) selector(s *acl.Selector) {
	c.pair("commands", s.Commands())
	c.pair("keys", s.Keys())
	c.pair("channels", s.Channels())
}

func aclSetuserCommand(c *client, args [][]byte) {
	rules := make([]string, 0, len(args)-3)
	for _, arg := range args[3:] {
		rules = append(rules, string(arg))
	}
	name := string(args[2])
	narrowed, err := c.server.users.Set(name, rules)
	if err != nil {
		c.fail("ERR " + err.Error())
		return
	}
	if narrowed {
		u := c.server.users.Find(args[2])
		c.disconnect(func(x *client) bool { return x.user == u && x.hearsTooMuch() })
	}
	c.ok()
}

func aclDeluserCommand(c *client, args [][]byte) {
	for _, name := range args[2:] {
		if string(name) == acl.DefaultName {
			c.fail("ERR The 'default' user cannot be removed")
			return
		}
	}
	deleted := make(map[*acl.User]bool)
	for _, name := range args[2:] {
		if u := c.server.users.Delete(name); u != nil {
			deleted[u] = true
		}
	}
	if len(deleted) > 0 {
		c.disconnect(func(x *client) bool { return deleted[x.user] })
	}
	c.Int(int64(len(deleted)))
}

// disconnect ends clients that lost their user, or a permission they use. The running one
// gets its reply first; it has no other user meanwhile than the default one, without its
// password.
func (c *client) disconnect(which func(*client) bool) {
	for _, x := range c.server.clients.sorted() {
		if !which(x) {
			continue
		}
		x.user, x.authed = c.server.users.Default, false
		switch {
		case x == c || x == c.server.current:
			x.closing = true
		case !x.gone:
			x.kill()
		}
	}
}

// hearsTooMuch reports whether the client has a subscription that its user is not allowed.
func (c *client) hearsTooMuch() bool {
	if c.pubsub == nil {
		return false
	}
	for _, k := range []topicKind{ofChannels, ofPatterns, ofShards} {
		for _, sub := range c.pubsub.set(k).list {
			if !c.user.Hears([]byte(sub.topic.name), k == ofPatterns) {
				return true
			}
		}
	}
	return false
}

func aclDryrunCommand(c *client, args [][]byte) {
	u := c.server.users.Find(args[2])
	if u == nil {
		c.fail(fmt.Sprintf("ERR User '%s' not found", cString(args[2], len(args[2]))))
		return
	}
	args = args[3:]
	cmd := c.server.commands.find(args)
	switch {
	case cmd == nil:
		c.fail(fmt.Sprintf("ERR Command '%s' not found", cString(args[0], len(args[0]))))
		return
	case !cmd.arityOK(len(args)):
		c.fail(wrongArity(cmd))
		return
	}
	switch why, at := c.server.mayRun(u, cmd, args); why {
	case acl.DeniedCommand:
		c.BulkString("This user has no permissions to run the '" + cmd.name + "' command")
	case acl.DeniedKey, acl.DeniedChannel:
		c.BulkString(fmt.Sprintf("This user has no permissions to access the '%s' %v", args[at], why))
	default:
		c.ok()
	}
}

// maxPassword is the longest password that ACL GENPASS makes, in bits.
const maxPassword = 4096

func aclGenpassCommand(c *client, args [][]byte) {
	bits := int64(256)
	if len(args) > 3 {
		c.subcommandSyntax(args)
		return
	}
	if len(args) == 3 {
		var ok bool
		if bits, ok = c.int64Arg(args[2]); !ok {
			return
		}
	}
	if bits <= 0 || bits > maxPassword {
		c.fail(fmt.Sprintf("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to %d", maxPassword))
		return
	}
	var random [maxPassword / 8]byte
	rand.Read(random[:]) // never fails
	c.BulkString(hex.EncodeToString(random[:])[:(bits+3)/4])
}

func aclLogCommand(c *client, args [][]byte) {
	log, count := &c.server.denials, int64(10)
	switch {
	case len(args) > 3:
		c.subcommandSyntax(args)
		return
	case len(args) == 3 && isWord(args[2], "RESET"):
		log.Reset()
		c.ok()
		return
	case len(args) == 3:
		var ok bool
		if count, ok = c.int64Arg(args[2]); !ok {
			return
		}
	}
	entries := log.Newest(int(min(max(count, 0), math.MaxInt32)))
	c.Array(len(entries))
	for _, e := range entries {
		c.Map(7)
		c.BulkString("count")
		c.Int(e.Count)
		c.pair("reason", e.Why.String())
		c.pair("context", e.Context)
		c.pair("object", e.Object)
		c.pair("username", e.User)
		c.BulkString("age-seconds")
		c.Double(float64(c.server.space.now-e.At) / 1000)
		c.pair("client-info", e.Client)
		c.spill()
	}
}

func aclHelpCommand(c *client, _ [][]byte) {
	c.help("ACL",
		"CAT [<category>]",
		"    The categories, or the commands of one.",
		"DELUSER <username> [<username> ...]",
		"    Delete users, and close their connections.",
		"DRYRUN <username> <command> [<arg> ...]",
		"    Whether a user may run a command.",
		"GENPASS [<bits>]",
		"    A random password (default: 256 bits).",
		"GETUSER <username>",
		"    The rules of a user.",
		"LIST",
		"    The users with their rules, as lines of a file.",
		"LOAD",
		"    Replace all users by those of the file.",
		"LOG [<count>|RESET]",
		"    What was refused (default: 10 entries), or forget it.",
		"SAVE",
		"    Write the users to the file.",
		"SETUSER <username> [<rule> ...]",
		"    Make a user, or change one.",
		"USERS",
		"    The names of the users.",
		"WHOAMI",
		"    The name of this connection's user.")
}
