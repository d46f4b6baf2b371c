package redis

func transactionCommands() []*command {
	const group = "transactions"
	const flags = flagNoscript | flagLoading | flagStale
	return []*command{
		{name: "discard", arity: 1, flags: flags | flagFast | flagAllowBusy | flagInMulti, cats: catTransaction, run: discardCommand,
			doc: doc{"Discards a transaction.", "2.0.0", group, "O(N), N the number of queued commands", "", ""}},
		{name: "exec", arity: 1, flags: flags | flagSkipSlowlog | flagInMulti, cats: catTransaction, run: execCommand,
			doc: doc{"Runs the commands of a transaction.", "1.2.0", group, "the sum of the commands' complexities", "", ""}},
		{name: "multi", arity: 1, flags: flags | flagFast | flagAllowBusy | flagInMulti, cats: catTransaction, run: multiCommand,
			doc: doc{"Begins a transaction.", "1.2.0", group, "O(1)", "", ""}},
		{name: "unwatch", arity: 1, flags: flags | flagFast | flagAllowBusy, cats: catTransaction, run: unwatchCommand,
			doc: doc{"Forgets all watched keys.", "2.2.0", group, "O(1)", "", ""}},
		{name: "watch", arity: -2, flags: flags | flagFast | flagAllowBusy | flagInMulti, cats: catTransaction,
			keys: allKeys(keyRO, 1), run: watchCommand,
			doc: doc{"Makes the next transaction fail if one of the keys changes before it.", "2.2.0", group, "O(1) a key", "", ""}},
	}
}

// transaction holds the commands that a client has queued since MULTI.
type transaction struct {
	queue   []queued
	size    int // bytes that queue holds
	flags   cmdFlags
	spoiled bool // a command was refused, so EXEC will fail

	replicates bool // see command.replicates
}

type queued struct {
	cmd   *command
	args  [][]byte
	owned bool // see client.owned
}

// queue keeps a request for EXEC. It copies the arguments unless the command
// may keep them. It keeps nothing if EXEC will fail anyway.
func (c *client) queue(cmd *command, args [][]byte) {
	if tx := c.tx; !tx.spoiled && !c.dirtyCAS {
		size := 0
		for _, arg := range args {
			size += len(arg)
		}
		if !c.owned {
			args = copyArgs(args, size)
		}
		tx.queue = append(tx.queue, queued{cmd, args, c.owned})
		flags, replicates := cmd.flags, cmd.replicates()
		if flags&flagScript != 0 {
			flags = c.server.scripts.effective(cmd, args)
			replicates = flags == cmd.flags && flags&flagReadonly == 0
		}
		tx.flags |= flags
		tx.replicates = tx.replicates || replicates
		tx.size += size + 24*len(args) + 64
		c.checkInput(0)
	}
	c.Simple("QUEUED")
}

// copyArgs copies arguments whose lengths add up to size.
func copyArgs(args [][]byte, size int) [][]byte {
	data := make([]byte, 0, size)
	kept := make([][]byte, len(args))
	for i, arg := range args {
		start := len(data)
		data = append(data, arg...)
		kept[i] = data[start:len(data):len(data)]
	}
	return kept
}

// spoil makes EXEC fail because a command of the transaction was refused.
func (c *client) spoil() {
	if c.tx != nil {
		c.tx.spoiled = true
	}
}

// discard ends the transaction, if there is one, and all watches.
func (c *client) discard() {
	c.tx = nil
	c.dirtyCAS = false
	c.unwatch()
}

func multiCommand(c *client, _ [][]byte) {
	if c.tx != nil {
		c.fail("ERR MULTI calls can not be nested")
		return
	}
	c.tx = new(transaction)
	c.ok()
}

func discardCommand(c *client, _ [][]byte) {
	if c.tx == nil {
		c.fail("ERR DISCARD without MULTI")
		return
	}
	c.discard()
	c.ok()
}

func execCommand(c *client, _ [][]byte) {
	tx := c.tx
	if tx == nil {
		c.fail("ERR EXEC without MULTI")
		return
	}
	if c.watchedExpired() {
		c.dirtyCAS = true
	}
	changed := c.dirtyCAS
	if tx.spoiled || changed {
		c.discard()
		if tx.spoiled {
			c.fail(errExecAbort)
		} else {
			c.NullArray()
		}
		return
	}
	c.unwatch()
	c.executing = true
	c.Array(len(tx.queue))
	c.execRest(tx.queue)
}

// execRest runs the commands of a transaction. If one is a script that is suspended, it returns,
// and is called again with the commands behind it.
func (c *client) execRest(queue []queued) {
	for i, q := range queue {
		c.owned = q.owned
		switch {
		case c.authRequired() && q.cmd.flags&flagNoAuth == 0:
			c.fail(errNoAuth) // a command of the transaction has deleted its user
		case c.user.Unlimited() || !c.deniedInExec(q.cmd, q.args):
			c.call(q.cmd, q.args)
		}
		if c.wait != nil {
			c.wait.exec, c.wait.rest = true, queue[i+1:]
			return
		}
	}
	c.discard()
	c.executing = false
}

func watchCommand(c *client, args [][]byte) {
	if c.tx != nil {
		c.fail("ERR WATCH inside MULTI is not allowed")
		return
	}
	if !c.dirtyCAS { // else the next EXEC fails anyway
		for _, key := range args[1:] {
			c.watchKey(key)
		}
	}
	c.ok()
}

func unwatchCommand(c *client, _ [][]byte) {
	c.unwatch()
	c.dirtyCAS = false
	c.ok()
}
