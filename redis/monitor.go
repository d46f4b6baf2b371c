package redis

import (
	"slices"
	"strconv"
)

func monitorCommands() []*command {
	return []*command{
		{name: "monitor", arity: 1, flags: flagAdmin | flagNoscript | flagLoading | flagStale, run: monitorCommand,
			doc: doc{"Shows every command that the server runs, until the connection closes.", "1.0.0", "server", "O(1)", "", ""}},
	}
}

// monitors are the clients that have called MONITOR.
type monitors struct {
	list []*client
	line []byte // the line for the command that has run
}

func monitorCommand(c *client, _ [][]byte) {
	switch {
	case c.executing:
		c.fail("ERR MONITOR isn't allowed for DENY BLOCKING client")
	case !c.monitor:
		c.monitor, c.limited = true, true
		c.server.monitors.list = append(c.server.monitors.list, c)
		c.idleChanged()
		c.ok()
	}
}

// endMonitor makes a client that has called MONITOR an ordinary one again.
func (c *client) endMonitor() {
	if c.monitor {
		m := &c.server.monitors
		m.list = slices.DeleteFunc(m.list, func(x *client) bool { return x == c })
		c.monitor, c.limited = false, c.local
	}
}

// forbidden replies with an error if a client that is not an ordinary one may
// not use a command.
func (c *client) forbidden(cmd *command) bool {
	switch {
	case c.local:
		return c.refuses(cmd)
	case c.monitor && (cmd.flags&(flagWrite|flagReadonly) != 0 || cmd.name == "publish"):
		c.reject(cmd, "ERR Replica can't interact with the keyspace")
		return true
	}
	return false
}

// feed shows a command that has run to the clients that have called MONITOR.
// Administrative commands are not shown.
func (m *monitors) feed(c *client, cmd *command, args [][]byte) {
	if cmd.flags&flagAdmin != 0 {
		return
	}
	now := c.server.clock()
	b := append(m.line[:0], '+')
	b = strconv.AppendInt(b, now.Unix(), 10)
	b = append(b, '.')
	micro := strconv.Itoa(1e6 + now.Nanosecond()/1000)
	b = append(b, micro[1:]...)
	b = append(b, " ["...)
	b = strconv.AppendInt(b, int64(c.db.keys.Index()), 10)
	b = append(b, ' ')
	switch {
	case c == c.server.scripts.caller:
		b = append(b, "lua"...)
	case c.isUnix():
		b = append(b, "unix:"...)
		b = append(b, c.server.config.unixSocket...)
	default:
		b = append(b, c.addr()...)
	}
	b = append(b, ']')
	for _, arg := range redacted(cmd, args) {
		b = append(b, ' ')
		b = appendQuoted(b, arg)
	}
	b = append(b, "\r\n"...)
	for _, x := range m.list {
		x.deliver(b)
	}
	if m.line = b; cap(b) > spillSize {
		m.line = nil
	}
}

// appendQuoted appends an argument as MONITOR shows it.
func appendQuoted(b, arg []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, x := range arg {
		switch {
		case x == '\\' || x == '"':
			b = append(b, '\\', x)
		case x == '\n':
			b = append(b, `\n`...)
		case x == '\r':
			b = append(b, `\r`...)
		case x == '\t':
			b = append(b, `\t`...)
		case x == '\a':
			b = append(b, `\a`...)
		case x == '\b':
			b = append(b, `\b`...)
		case x >= ' ' && x <= '~':
			b = append(b, x)
		default:
			b = append(b, '\\', 'x', hex[x>>4], hex[x&15])
		}
	}
	return append(b, '"')
}
