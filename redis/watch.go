package redis

import "slices"

// A watch is a client's interest in a key between WATCH and EXEC.
type watch struct {
	client *client
	db     *database
	key    string
	// expired reports that the key had already expired when WATCH was called.
	// Its deletion is then not a change.
	expired bool
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
	e := c.db.entries[id.key]
	w := &watch{client: c, db: c.db, key: id.key, expired: e != nil && c.db.hidden(e)}
	if c.watching == nil {
		c.watching = make(map[watchID]*watch)
	}
	c.watching[id] = w
	if c.db.watchers == nil {
		c.db.watchers = make(map[string][]*watch)
	}
	c.db.watchers[id.key] = append(c.db.watchers[id.key], w)
}

// unwatch ends all watches of the client.
func (c *client) unwatch() {
	for id, w := range c.watching {
		watchers := id.db.watchers[id.key]
		i := slices.Index(watchers, w)
		if watchers = slices.Delete(watchers, i, i+1); len(watchers) == 0 {
			delete(id.db.watchers, id.key)
		} else {
			id.db.watchers[id.key] = watchers
		}
	}
	c.watching = nil
}

// watchedExpired reports whether a watched key has expired since WATCH. The key
// may still be in the database.
func (c *client) watchedExpired() bool {
	for _, w := range c.watching {
		if e := w.db.entries[w.key]; !w.expired && e != nil && w.db.hidden(e) {
			return true
		}
	}
	return false
}

// touched tells the clients watching a key that it has changed.
func (db *database) touched(key string) {
	if len(db.watchers) == 0 {
		return
	}
	for _, w := range slices.Clone(db.watchers[key]) {
		if w.expired && db.entries[key] == nil {
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
	for key, watchers := range db.watchers {
		if db.entries[key] == nil {
			continue
		}
		for _, w := range watchers {
			if w.expired {
				w.expired = false
			} else {
				w.client.dirtyCAS = true
			}
		}
	}
}
