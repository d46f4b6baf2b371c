package redis

import (
	"fmt"

	"github.com/rondo-go/rondo/redis/acl"
	"github.com/rondo-go/rondo/resp"
)

func connectionCommands() []*command {
	const group = "connection"
	const hello = flagNoscript | flagLoading | flagStale | flagFast | flagNoAuth | flagAllowBusy
	return []*command{
		{name: "auth", arity: -2, flags: hello, cats: catConnection, run: authCommand,
			doc: doc{"Authenticates the connection with a password.", "1.0.0", group, "O(N), N the length of the password", "", ""}},
		{name: "echo", arity: 2, flags: flagLoading | flagStale | flagFast, cats: catConnection, run: echoCommand,
			doc: doc{"Returns its argument.", "1.0.0", group, "O(1)", "", ""}},
		{name: "hello", arity: -1, flags: hello, cats: catConnection, run: helloCommand,
			doc: doc{"Chooses the version of the protocol. May also authenticate the connection and name it.", "6.0.0", group, "O(1)", "", ""}},
		{name: "ping", arity: -1, flags: flagFast | flagInSubscribed, cats: catConnection, run: pingCommand,
			tips: []string{"request_policy:all_shards", "response_policy:all_succeeded"},
			doc:  doc{"Returns PONG, or its argument.", "1.0.0", group, "O(1)", "", ""}},
		{name: "quit", arity: -1, flags: hello | flagInMulti | flagInSubscribed, cats: catConnection, run: quitCommand,
			doc: doc{"Closes the connection.", "1.0.0", group, "O(1)", "", ""}},
		{name: "reset", arity: 1, flags: hello | flagInMulti | flagInSubscribed, cats: catConnection, run: resetCommand,
			doc: doc{"Resets the connection to the state of a new one.", "6.2.0", group, "O(1)", "", ""}},
		{name: "select", arity: 2, flags: flagLoading | flagStale | flagFast, cats: catConnection, run: selectCommand,
			doc: doc{"Chooses the database.", "1.0.0", group, "O(1)", "", ""}},
	}
}

func pingCommand(c *client, args [][]byte) {
	switch {
	case len(args) > 2:
		c.fail("ERR wrong number of arguments for 'ping' command")
	case c.subscribed() && c.Proto == 2:
		// A subscribed RESP2 client expects an array, like those of messages.
		c.Array(2)
		c.BulkString("pong")
		if len(args) == 2 {
			c.value(args[1])
		} else {
			c.BulkString("")
		}
	case len(args) == 2:
		c.value(args[1])
	default:
		c.B = append(c.B, "+PONG\r\n"...)
	}
}

func echoCommand(c *client, args [][]byte) { c.value(args[1]) }

func quitCommand(c *client, _ [][]byte) {
	c.ok()
	c.closing = true
}

func selectCommand(c *client, args [][]byte) {
	i, ok := c.intArg(args[1])
	if !ok {
		return
	}
	if i < 0 || i >= len(c.server.space.dbs) {
		c.fail("ERR DB index is out of range")
		return
	}
	c.db = &c.server.space.dbs[i]
	c.ok()
}

// authenticate makes the client the user of a name, if the password is right. Otherwise it
// replies with an error. word is the command's name as the client wrote it.
func (c *client) authenticate(word, user, password []byte) bool {
	u := c.server.users.Login(user, password)
	if u == nil {
		c.addDenial(acl.DeniedLogin, "", logged(word), logged(user))
		c.fail(errWrongPass)
		return false
	}
	c.user, c.authed = u, true
	return true
}

func authCommand(c *client, args [][]byte) {
	user, password := []byte(acl.DefaultName), args[1]
	switch {
	case len(args) > 3:
		c.fail(errSyntax)
		return
	case len(args) == 3:
		user, password = args[1], args[2]
	case c.server.users.Default.NoPass():
		c.fail("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
		return
	}
	if c.authenticate(args[0], user, password) {
		c.ok()
	}
}

func helloCommand(c *client, args [][]byte) {
	version := c.Proto
	if len(args) > 1 {
		v, ok := resp.ParseInt(args[1])
		if !ok {
			c.fail("ERR Protocol version is not an integer or out of range")
			return
		}
		if v < 2 || v > 3 {
			c.fail("NOPROTO unsupported protocol version")
			return
		}
		version = int(v)
		if !c.helloOptions(args[0], args[2:]) {
			return
		}
	}
	if !c.authed {
		c.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.Proto = version
	c.Map(7)
	c.pair("server", "redis")
	c.pair("version", Version)
	c.BulkString("proto")
	c.Int(int64(c.Proto))
	c.BulkString("id")
	c.Int(c.id)
	c.pair("mode", "standalone")
	c.pair("role", "master")
	c.BulkString("modules")
	c.Array(0)
}

func (c *client) helloOptions(word []byte, args [][]byte) bool {
	for len(args) > 0 {
		switch {
		case isWord(args[0], "AUTH") && len(args) > 2:
			if !c.authenticate(word, args[1], args[2]) {
				return false
			}
			args = args[3:]
		case isWord(args[0], "SETNAME") && len(args) > 1:
			if !c.setName(args[1]) {
				return false
			}
			args = args[2:]
		default:
			c.fail(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", cString(args[0], len(args[0]))))
			return false
		}
	}
	return true
}

func resetCommand(c *client, _ [][]byte) {
	c.discard()
	c.endSubscriptions()
	c.endMonitor()
	c.server.tracking.stop(c)
	c.noTouch = false
	c.idleChanged()
	c.db = &c.server.space.dbs[0]
	c.Proto = 2
	c.name = ""
	c.reply = replyOn
	c.beDefault()
	c.Simple("RESET")
}
