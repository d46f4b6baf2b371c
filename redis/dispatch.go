package redis

import (
	"fmt"
	"strings"
)

// dispatch runs a request, queues it, or refuses it. The checks are in Redis's
// order, since that decides which error the client gets.
func (c *client) dispatch(args [][]byte) {
	s := c.server
	c.base = len(c.B)
	cmd := s.commands.find(args)
	c.lastCmd = cmd
	switch {
	case cmd == nil:
		c.unknown(args)
	case !cmd.arityOK(len(args)):
		c.reject(cmd, wrongArity(cmd))
	case cmd.flags&flagProtected != 0 && !c.debugAllowed():
		c.reject(cmd, errDebug)
	case cmd.flags&flagNoAuth == 0 && c.authRequired():
		c.reject(cmd, errNoAuth)
	case cmd.flags&flagNoMulti != 0 && c.tx != nil:
		c.reject(cmd, "ERR Command not allowed inside a transaction")
	case !c.user.Unlimited() && c.denied(cmd, args):
	case s.config.maxMemory > 0 && !c.makeRoom() && c.needsMemory(cmd, args):
		c.reject(cmd, errOOM)
	case cmd.flags&flagInSubscribed == 0 && c.pubsub != nil && c.Proto == 2:
		c.reject(cmd, fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / "+
			"(P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", cmd.name))
	case s.scripts.busy && cmd.flags&flagAllowBusy == 0:
		c.reject(cmd, s.scripts.busyError())
	case c.limited && c.forbidden(cmd):
	case s.pause.on && s.pause.holds(c, cmd, args):
		c.postpone(cmd, args)
	case c.tx != nil && cmd.flags&flagInMulti == 0:
		c.queue(cmd, args)
	default:
		c.call(cmd, args)
	}
	if c.reply != replyOn && c.wait == nil {
		c.endSilent()
	}
	if len(s.space.ready) > 0 && s.current == c && !s.scripts.busy {
		s.serveBlocked()
	}
	if c.late != nil {
		c.deliverLate()
	}
}

// memoryFull reports whether maxmemory is exceeded. It counts the memory that
// the server used when it started, that of keys and values, and the clients'.
func (s *Server) memoryFull() bool {
	return s.usedMemory()+s.clientMemory.held > s.config.maxMemory
}

// needsMemory reports whether a command must neither run nor be queued while
// memory is full. For EXEC that holds if it holds for a queued command.
func (c *client) needsMemory(cmd *command, args [][]byte) bool {
	switch {
	case c.tx == nil && cmd.flags&flagScript != 0:
		return c.server.scripts.effective(cmd, args)&flagDenyOOM != 0
	case c.tx == nil:
		return cmd.flags&flagDenyOOM != 0
	case cmd.name == "exec":
		return c.tx.flags&flagDenyOOM != 0
	}
	return cmd.flags&flagInMulti == 0 || cmd.name == "watch" || cmd.name == "multi"
}

// call runs a command and counts it. An error counts for the innermost call, so
// for a queued command and not for EXEC.
func (c *client) call(cmd *command, args [][]byte) {
	s := c.server
	c.charged = c.errors
	s.stats.commands++
	writes := s.space.paused && cmd.flags&flagWrite != 0
	if writes {
		s.space.store.KeepExpired(false)
	}
	if cmd.timing() || s.watch.single(c, cmd) {
		c.callMeasured(cmd, args)
	} else {
		s.watch.group++
		cmd.run(c, args)
	}
	if writes {
		s.space.store.KeepExpired(s.space.paused)
	}
	if c.tracks != nil {
		c.remember(cmd, args)
	}
	if len(s.monitors.list) > 0 && cmd.flags&flagSkipMonitor == 0 {
		s.monitors.feed(c, cmd, args)
	}
	if c.wait != nil {
		return // answer counts the call
	}
	cmd.calls++
	if c.errors != c.charged {
		cmd.failed++
		c.charged = c.errors
	}
}

func (c *client) callMeasured(cmd *command, args [][]byte) {
	s := c.server
	start := s.watch.start(c)
	cmd.run(c, args)
	d := s.watch.stop(start)
	if c.wait != nil {
		c.wait.took = d
		if s.slowlog.limit >= 0 {
			c.wait.args = copyArgs(args, 0)
		}
		return
	}
	if s.config.latencyTracking {
		cmd.observe(d)
	} else {
		cmd.clock(d)
	}
	if s.watch.on {
		s.spent(c, cmd, args, d)
	}
}

// endSilent drops a reply that the reply mode silences, and advances the mode.
func (c *client) endSilent() {
	if c.silent() {
		c.B = c.B[:c.base]
	}
	switch c.reply {
	case replySkipNext:
		c.reply = replySkip
	case replySkip:
		c.reply = replyOn
	}
}

// reject refuses a known command. It spoils an open transaction.
func (c *client) reject(cmd *command, text string) {
	cmd.rejected++
	c.spoil()
	if cmd.name == "exec" {
		c.discard()
	}
	if !cmd.ofClient() {
		c.uncache() // behind discard: a refused EXEC is what CLIENT CACHING was for
	}
	if cmd.name == "exec" {
		_, reason, _ := strings.Cut(text, " ")
		if !strings.HasPrefix(text, "ERR ") {
			reason = text
		}
		c.fail("EXECABORT Transaction discarded because of: " + reason)
		return
	}
	c.fail(text)
}

// unknown answers a request for an unknown command.
func (c *client) unknown(args [][]byte) {
	if isHTTP(args[0]) {
		c.server.log().Warn("client closed: it sent an HTTP request, possibly forged by a web page", "client", c.addr())
		c.closing = true
		return
	}
	c.uncache()
	c.spoil()
	if container := lookup(c.server.commands.byName, args[0]); container != nil {
		c.fail(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.",
			cString(args[1], 128), strings.ToUpper(container.name)))
		return
	}
	var begin []byte
	for _, arg := range args[1:] {
		if len(begin) >= 128 {
			break
		}
		begin = append(begin, '\'')
		begin = append(begin, cString(arg, 128-len(begin)+1)...)
		begin = append(begin, '\'', ' ')
	}
	c.fail(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s",
		cString(args[0], 128), begin))
}

// isHTTP reports whether a command name is the start of an HTTP request. Redis
// closes such connections: a web page could make a browser send a request with
// commands in its body.
func isHTTP(name []byte) bool {
	return strings.EqualFold(string(name), "post") || strings.EqualFold(string(name), "host:")
}

// cString returns the part of b that C's printf prints: b up to its first zero
// byte, at most max bytes.
func cString(b []byte, max int) []byte {
	b = b[:min(len(b), max)]
	for i, x := range b {
		if x == 0 {
			return b[:i]
		}
	}
	return b
}

func wrongArity(cmd *command) string {
	return "ERR wrong number of arguments for '" + cmd.name + "' command"
}
