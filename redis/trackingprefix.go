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
	byText  map[string]*prefix
	lengths []int          // of prefixes, ascending: a key is looked up by its beginnings
	count   map[int]int    // prefixes of a length
	dirty   []*prefix      // with changed keys
	waiting bool           // soon will call broadcast
	soon    func(f func()) // calls f at the end of the turn
}

// prefix is a beginning of keys that clients want to know of.
type prefix struct {
	text    string
	clients []*client
	index   map[*client]int    // in clients
	keys    map[string]*client // changed in this turn; who changed the key last, nil: nobody
}

func (p *prefixTable) init(s *Server) {
	p.server = s
	p.byText = make(map[string]*prefix)
	p.count = make(map[int]int)
	if p.soon == nil {
		p.soon = func(f func()) { s.loop.Defer(f) }
	}
}

func (p *prefixTable) any() bool { return len(p.byText) > 0 }

// add gives a client the changed keys with a prefix.
func (p *prefixTable) add(c *client, text []byte) {
	x := p.byText[string(text)]
	if x == nil {
		x = &prefix{text: string(text), index: make(map[*client]int)}
		p.byText[x.text] = x
		n := len(x.text)
		if p.count[n]++; p.count[n] == 1 {
			at, _ := slices.BinarySearch(p.lengths, n)
			p.lengths = slices.Insert(p.lengths, at, n)
		}
	}
	if _, has := x.index[c]; has {
		return
	}
	x.index[c] = len(x.clients)
	x.clients = append(x.clients, c)
	at, _ := slices.BinarySearch(c.tracks.prefixes, x.text)
	c.tracks.prefixes = slices.Insert(c.tracks.prefixes, at, x.text)
}

// remove ends all prefixes of a client. The last client of a prefix takes its place.
func (p *prefixTable) remove(c *client) {
	for _, text := range c.tracks.prefixes {
		x := p.byText[text]
		at, last := x.index[c], len(x.clients)-1
		x.clients[at] = x.clients[last]
		x.index[x.clients[at]] = at
		x.clients[last] = nil
		x.clients = x.clients[:last]
		delete(x.index, c)
		if last > 0 {
			continue
		}
		delete(p.byText, text)
		n := len(text)
		if p.count[n]--; p.count[n] == 0 {
			delete(p.count, n)
			at, _ := slices.BinarySearch(p.lengths, n)
			p.lengths = slices.Delete(p.lengths, at, at+1)
		}
	}
}

// note keeps a changed key until the end of the turn. by has changed it; nil: nobody.
func (p *prefixTable) note(key []byte, by *client) {
	var name string
	for _, n := range p.lengths {
		if n > len(key) {
			break
		}
		x := p.byText[string(key[:n])]
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
