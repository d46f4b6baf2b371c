package redis

import (
	"cmp"
	"fmt"
	"slices"
)

// clientSize is about what a client takes that has sent nothing.
const clientSize = 1 << 10

// memory returns about how much memory a client holds besides keys. work is how
// many things had to be counted.
func (c *client) memory() (bytes int64, work int) {
	lists, work := c.lists()
	return c.buffers() + lists, work
}

// inputUnit is the unit in which a client's input counts.
const inputUnit = 1 << 10

// buffers is memory without lists. A short request that runs does not
// count, nor does a short reply: otherwise a client that asks how much memory is in use would
// change the answer. In Redis they fit in buffers that every client has.
func (c *client) buffers() int64 {
	output := max(0, c.transport.pending()-freeOutput)
	bytes := int64(clientSize + c.input&^(inputUnit-1) + output + len(c.late))
	if c.tx != nil {
		bytes += int64(c.tx.size)
	}
	return bytes
}

// lists counts subscriptions, watches, and the prefixes of keys that the client tracks.
func (c *client) lists() (bytes int64, work int) {
	const each = 96 // besides the name
	work = 1 + len(c.watching)
	if c.pubsub != nil {
		for _, set := range []*subscriptionSet{&c.pubsub.channels, &c.pubsub.patterns, &c.pubsub.shards} {
			for _, sub := range set.list {
				bytes += each + int64(len(sub.topic.name))
			}
			work += len(set.list)
		}
	}
	for id := range c.watching {
		bytes += each + int64(len(id.key))
	}
	if c.tracks != nil {
		p := &c.tracks.prefixes
		bytes += int64(prefixSize*p.count + 3*p.size) // the texts, and their parts in two trees
	}
	return bytes, work
}

// clientLimit returns the bytes that all clients may hold, or 0 for no limit.
func (s *Server) clientLimit() int64 {
	if percent := -s.config.clientMemory; percent > 0 {
		return s.config.maxMemory / 100 * percent
	}
	return s.config.clientMemory
}

// clientMemory counts the clients' memory for maxmemory. It closes the clients that hold
// the most while all together hold more than maxmemory-clients.
type clientMemory struct {
	next  int64 // when to count all clients again, in milliseconds since 1970
	held  int64 // by all clients: the sum of client.noted
	stuck bool  // they held too much at the last count, when nobody could be closed any more
}

// note counts a client's buffers anew, while there is a limit. Clients within the program
// have next to none.
func (m *clientMemory) note(c *client) {
	if config := &c.server.config; config.maxMemory == 0 && config.clientMemory == 0 || c.gone || c.local {
		return
	}
	m.set(c, c.buffers()+c.listed)
}

func (m *clientMemory) set(c *client, bytes int64) {
	m.held += bytes - c.noted
	c.noted = bytes
}

// applyClientMemory counts all clients by a new limit.
func applyClientMemory(s *Server) {
	s.clientMemory.next = 0
	s.clientMemory.check(s)
}

// minRecount is the least time between two counts in milliseconds, unless there is a client
// to close.
const minRecount = 10

// counted is a client and the memory that it holds.
type counted struct {
	client *client
	bytes  int64
}

// check is called at the end of a batch, and by upkeep. Since counting all clients takes time,
// it does so only now and then, the less often the more there is to count, and when those
// that were noted since hold too much together. Output that was sent meanwhile is known, and
// lists that have grown, when all are counted.
func (m *clientMemory) check(s *Server) {
	limit := s.clientLimit()
	if limit <= 0 && s.config.maxMemory == 0 {
		return
	}
	if full := limit > 0 && m.held > limit && !m.stuck; !full && s.space.now < m.next {
		return
	}
	var all []counted
	sum, work := int64(0), 0
	for _, c := range s.clients.list {
		if c.condemned != nil {
			continue // the end of the batch closes it
		}
		lists, w := c.lists()
		c.listed = lists
		n := c.buffers() + lists
		m.set(c, n)
		work += w
		sum += n
		if limit > 0 && !c.noEvict && !c.local && !c.closing {
			all = append(all, counted{c, n})
		}
	}
	m.next, m.stuck = s.space.now+minRecount+int64(work/100), false
	if limit <= 0 || sum <= limit {
		return
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, x := range all {
		if sum <= limit {
			break
		}
		s.stats.evictedClients++
		sum -= x.bytes
		m.set(x.client, 0)
		s.condemn(x.client, fmt.Errorf("redis: the client holds %d bytes, and all clients more than maxmemory-clients, which is %d", x.bytes, limit))
	}
	m.stuck = sum > limit
}
