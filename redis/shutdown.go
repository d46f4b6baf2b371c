package redis

const (
	errNoShutdown = "ERR No shutdown in progress."
	errNotSaved   = "ERR Errors trying to SHUTDOWN. Check logs."
)

// shutdownCommand asks the program to end the server. There is no reply: the end of its connection
// tells the client, which until then is blocked. NOW changes nothing, since there are no
// replicas to wait for.
func shutdownCommand(c *client, args [][]byte) {
	var save, nosave, now, force, abort bool
	for _, arg := range args[1:] {
		switch {
		case isWord(arg, "SAVE"):
			save = true
		case isWord(arg, "NOSAVE"):
			nosave = true
		case isWord(arg, "NOW"):
			now = true
		case isWord(arg, "FORCE"):
			force = true
		case isWord(arg, "ABORT"):
			abort = true
		default:
			c.fail(errSyntax)
			return
		}
	}
	s := c.server
	switch {
	case save && nosave, abort && (save || nosave || now || force):
		c.fail(errSyntax)
	case abort && s.asked:
		c.fail("ERR The program has been told to end the server, which can't be aborted")
	case abort:
		c.fail(errNoShutdown)
	case !now && !c.mayBlock():
		c.fail("ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client")
	case !nosave && s.scripts.busy:
		c.fail(s.scripts.busyError())
	case s.OnShutdown == nil:
		c.fail("ERR SHUTDOWN is not available: the program decides when the server ends")
	case save && !force:
		s.log().Warn("SHUTDOWN SAVE refused: nothing can be saved, all keys are in memory only", "client", c.describe())
		c.fail(errNotSaved)
	default:
		c.askForEnd()
	}
}

// askForEnd calls OnShutdown, once, and blocks the client.
func (c *client) askForEnd() {
	s := c.server
	if !s.asked {
		s.asked = true
		s.log().Warn("SHUTDOWN: a client ends the server", "client", c.describe())
		go s.OnShutdown()
	}
	if !c.mayBlock() {
		c.ok()
		return
	}
	c.await(&wait{client: c, cmd: c.lastCmd, unending: true}, nil, 0)
}
