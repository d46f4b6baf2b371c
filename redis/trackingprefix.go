package redis

import (
	"maps"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/resp"
)

// prefixTable is the broadcasting mode of client side caching: which prefixes of keys clients
// want to know of, and the keys that have changed in this turn of the loop. Their clients
// get them at the end of the turn, in one message for each prefix.
type prefixTable struct {
	server  *Server
	tree    prefixTree
	dirty   []*prefix      // with changed keys
	waiting bool           // soon will call broadcast
	soon    func(f func()) // calls f at the end of the turn
}

// prefix is a beginning of keys that clients want to know of.
type prefix struct {
	text    string
	clients []*client
	index   map[*client]int    // in clients, if they are many
	keys    map[string]*client // changed in this turn; who changed the key last, nil: nobody
}

func (p *prefixTable) init(s *Server) {
	p.server = s
	if p.soon == nil {
		p.soon = func(f func()) { s.loop.Defer(f) }
	}
}

func (p *prefixTable) any() bool { return p.tree.count > 0 }

// add gives a client the changed keys with a prefix that it does not have yet.
func (p *prefixTable) add(c *client, text []byte) {
	x := p.tree.find(text)
	if x == nil {
		x = &prefix{text: string(text)}
		p.tree.add(x)
	}
	x.add(c)
	c.tracks.prefixes.add(x)
}

// fewClients is how many clients a prefix finds without an index. Most prefixes have one client,
// and a client may have many prefixes.
const fewClients = 8

func (x *prefix) add(c *client) {
	x.clients = append(x.clients, c)
	switch n := len(x.clients); {
	case x.index != nil:
		x.index[c] = n - 1
	case n > fewClients:
		x.index = make(map[*client]int, n)
		for at, y := range x.clients {
			x.index[y] = at
		}
	}
}

// remove ends the prefix of a client. The last client takes its place.
func (x *prefix) remove(c *client) {
	at, last := 0, len(x.clients)-1
	if x.index == nil {
		at = slices.Index(x.clients, c)
	} else {
		at = x.index[c]
		x.index[x.clients[last]] = at
		delete(x.index, c)
	}
	x.clients[at] = x.clients[last]
	x.clients[last] = nil
	x.clients = x.clients[:last]
}

// remove ends all prefixes of a client.
func (p *prefixTable) remove(c *client) {
	for x := range c.tracks.prefixes.all() {
		if x.remove(c); len(x.clients) == 0 {
			p.tree.remove(x.text)
		}
	}
	if p.tree.count == 0 {
		p.tree = prefixTree{}
	}
}

// note keeps a changed key until the end of the turn. by has changed it; nil: nobody.
func (p *prefixTable) note(key []byte, by *client) {
	var name string
	for n, at := p.tree.root, 0; n != nil; n, at = n.next(key, at) {
		x := n.prefix
		if x == nil {
			continue
		}
		if name == "" {
			name = string(key)
		}
		if len(x.keys) == 0 {
			p.dirty = append(p.dirty, x)
			if x.keys == nil {
				x.keys = make(map[string]*client)
			}
		}
		x.keys[name] = by
	}
	if len(p.dirty) > 0 && !p.waiting {
		p.waiting = true
		p.soon(p.broadcast)
	}
}

// broadcast tells the clients which keys have changed.
func (p *prefixTable) broadcast() {
	p.waiting = false
	defer p.server.published()
	slices.SortFunc(p.dirty, func(a, b *prefix) int { return strings.Compare(a.text, b.text) })
	for i, x := range p.dirty {
		p.dirty[i] = nil
		x.broadcast(&p.server.tracking)
	}
	p.dirty = p.dirty[:0]
	p.server.clientMemory.check(p.server) // no batch ends after this, which would look
}

// keptKeys is the number of keys for which a prefix keeps the memory.
const keptKeys = 64

func (x *prefix) broadcast(t *tracking) {
	keys := slices.Sorted(maps.Keys(x.keys))
	t.changed(func(r *resp.Reply) { appendKeys(r, keys) })
	var own []*client // that may have changed some of the keys and want no messages of that
	for _, c := range x.clients {
		if c.tracks.noloop {
			own = append(own, c)
		} else {
			t.tell(c)
		}
	}
	for _, c := range own {
		if others := x.without(c, keys); len(others) > 0 {
			t.changed(func(r *resp.Reply) { appendKeys(r, others) })
			t.tell(c)
		}
	}
	t.shrink()
	if len(keys) > keptKeys {
		x.keys = nil
	} else {
		clear(x.keys)
	}
}

// without returns the keys that a client has not changed.
func (x *prefix) without(c *client, keys []string) (others []string) {
	for _, key := range keys {
		if x.keys[key] != c {
			others = append(others, key)
		}
	}
	return others
}

func appendKeys(r *resp.Reply, keys []string) {
	r.Array(len(keys))
	for _, key := range keys {
		r.BulkString(key)
	}
}
