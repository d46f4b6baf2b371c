package redis

import (
	"bytes"
	"math"

	"github.com/rondo-go/rondo/redis/rdb"
	"github.com/rondo-go/rondo/redis/store"
)

// debugReload encodes each value, reads it again and puts it in the value's place: DEBUG
// RELOAD shows what a restart of Redis, with its file, does to values. Expired keys are
// deleted. It reports false if a value cannot be read.
func (c *client) debugReload() bool {
	old := c.db
	defer func() { c.db = old }()
	c.server.tracking.flushed()
	for i := range c.server.space.dbs {
		c.db = &c.server.space.dbs[i]
		var keys [][]byte
		c.db.keys.Each(func(it store.Item) { keys = append(keys, bytes.Clone(it.Key())) })
		for _, key := range keys {
			if !c.reload(key) {
				return false
			}
		}
	}
	return true
}

func (c *client) reload(key []byte) bool {
	it := c.db.find(key)
	if !it.Exists() {
		return true
	}
	e := rdb.Encoder{Compress: c.server.config.compress}
	c.db.encode(&e, it)
	v, err := rdb.Parse(e.B, math.MaxInt)
	if err != nil {
		return false
	}
	made, ok := c.made(v)
	if !ok {
		return false
	}
	c.db.keys.Replace(c.db.find(key), made.value, store.KeepDeadline)
	if made.scratch != nil {
		c.db.space.keepScratch(made.scratch)
	}
	return true
}
