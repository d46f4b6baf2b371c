package redis

// A watch is a client's interest in a key between WATCH and EXEC. The watches of one key
// are a list: a change of the key ends them all, and in a slice each would be searched for.
type watch struct {
	client *client
	db     *database
	key    string
	// expired reports that the key had already expired when WATCH was called.
	// Its deletion is then not a change.
	expired bool

	before, behind *watch // of the same key
}

type watchID struct {
	db  *database
	key string
}

// watchKey makes the next EXEC fail if a key of the current database changes
// before.
func (c *client) watchKey(key []byte) {
	id := watchID{c.db, string(key)}
	if c.watching[id] != nil {
		return
	}
	w := &watch{client: c, db: c.db, key: id.key, expired: c.db.hidden(key)}
	if c.watching == nil {
		c.watching = make(map[watchID]*watch)
	}
	c.watching[id] = w
	if c.db.watchers == nil {
		c.db.watchers = make(map[string]*watch)
	}
	if w.behind = c.db.watchers[id.key]; w.behind != nil {
		w.behind.before = w
	}
	c.db.watchers[id.key] = w
}

// unwatch ends all watches of the client.
func (c *client) unwatch() {
	for _, w := range c.watching {
		w.end()
	}
	c.watching = nil
}

// end removes the watch from the list.
func (w *watch) end() {
	if w.behind != nil {
		w.behind.before = w.before
	}
	switch {
	case w.before != nil:
		w.before.behind = w.behind
	case w.behind != nil:
		w.db.watchers[w.key] = w.behind
	default:
		delete(w.db.watchers, w.key)
	}
}

// watchedExpired reports whether a watched key has expired since WATCH. The key
// may still be in the database.
func (c *client) watchedExpired() bool {
	for _, w := range c.watching {
		if !w.expired && w.db.hidden([]byte(w.key)) {
			return true
		}
	}
	return false
}

// touched tells the clients that watch a key, or track it, that it has changed, or is about to
// be deleted because it has expired.
func (db *database) touched(key []byte, expires bool) {
	if t := db.space.tracking; t != nil {
		t.invalidate(key, expires)
	}
	if len(db.waiting) > 0 {
		db.suspect(key, expires)
	}
	if len(db.watchers) == 0 {
		return
	}
	var behind *watch
	for w := db.watchers[string(key)]; w != nil; w = behind {
		behind = w.behind // unwatch ends w, and no other one of this key
		if w.expired && expires {
			w.expired = false
			continue
		}
		w.client.dirtyCAS = true
		w.client.unwatch()
	}
}

// touchedAll tells the clients watching keys of the database that these are about to
// be deleted.
func (db *database) touchedAll() {
	for key, w := range db.watchers {
		if !db.keys.Peek([]byte(key)).Exists() {
			continue
		}
		for ; w != nil; w = w.behind {
			if w.expired {
				w.expired = false
			} else {
				w.client.dirtyCAS = true
			}
		}
	}
}
