package redis

func moveCommands() []*command {
	return []*command{
		{name: "move", arity: 3, flags: flagWrite | flagFast, cats: catKeyspace,
			keys: oneKey(keyRW | keyAccess | keyUpdate), run: moveCommand,
			doc: doc{"Moves a key to another database.", "1.0.0", "generic", "O(1); O(N) for N elements", "", ""}},
		{name: "swapdb", arity: 3, flags: flagWrite | flagFast, cats: catKeyspace | catDangerous, run: swapdbCommand,
			doc: doc{"Exchanges the keys of two databases.", "4.0.0", "server", "O(N), N the number of clients that watch keys or wait for them", "", ""}},
	}
}

func moveCommand(c *client, args [][]byte) {
	key := args[1]
	i, ok := c.intArg(args[2])
	if !ok {
		return
	}
	if i < 0 || i >= len(c.server.space.dbs) {
		c.fail(errDBIndex)
		return
	}
	to := &c.server.space.dbs[i]
	if to == c.db {
		c.fail("ERR source and destination objects are the same")
		return
	}
	if !c.db.find(key).Exists() || to.find(key).Exists() {
		c.Int(0)
		return
	}
	c.db.keys.Move(c.db.find(key), to.keys, key)
	to.touched(key, false)
	to.ready(key)
	c.changed(key)
	c.notify(eventGeneric, "move_from", key)
	to.notify(eventGeneric, "move_to", key)
	c.Int(1)
}

func swapdbCommand(c *client, args [][]byte) {
	var dbs [2]*database
	for i, text := range []string{"ERR invalid first DB index", "ERR invalid second DB index"} {
		n, ok := c.atLeast(args[1+i], -1<<31, text)
		if !ok {
			return
		}
		if n >= 0 && n < int64(len(c.server.space.dbs)) {
			dbs[i] = &c.server.space.dbs[n]
		}
	}
	a, b := dbs[0], dbs[1]
	if a == nil || b == nil {
		c.fail(errDBIndex)
		return
	}
	if a != b {
		a.touchedBySwap(b)
		b.touchedBySwap(a)
		c.server.space.store.Swap(a.keys, b.keys)
		for _, db := range dbs {
			db.suspectAll(false)
		}
		for _, db := range dbs {
			db.readyAll()
		}
		c.server.tracking.flushed()
	}
	c.server.space.dirty++
	c.ok()
}

// touchedBySwap tells the clients watching keys of the database that it is about to get
// the keys of another one.
func (db *database) touchedBySwap(other *database) {
	for name, w := range db.watchers {
		key := []byte(name)
		had, gets := db.keys.Peek(key).Exists(), other.keys.Peek(key).Exists()
		if !had && !gets {
			continue
		}
		for expired := other.hidden(key); w != nil; w = w.behind {
			switch {
			case w.expired && !gets:
				w.expired = false
			case expired && (w.expired || !had):
				w.expired = true
			default:
				w.client.dirtyCAS = true
			}
		}
	}
}
