package redis

import (
	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
)

// broker holds all subscriptions.
type broker struct {
	channels topics
	patterns topics
	shards   topics // shard channels, a namespace of their own
	// encoded holds the message being published, once in RESP2 and once in
	// RESP3, so that it is not encoded for each subscriber.
	encoded [2]resp.Reply
	// held says that the message belongs to a change of a key: the running command's reply
	// may be incomplete.
	held bool
}

// topics is the set of channels, or of patterns, that have subscribers.
type topics struct {
	byName map[string]*topic
	list   []*topic
}

// topicKind is what the members of a set of topics are.
type topicKind uint8

const (
	ofChannels topicKind = iota
	ofPatterns
	ofShards
)

// verb returns a word for the kind: psubscribe for subscribe, say.
func (k topicKind) verb(word string) string { return [...]string{"", "p", "s"}[k] + word }

func (b *broker) topics(k topicKind) *topics {
	return [...]*topics{&b.channels, &b.patterns, &b.shards}[k]
}

// topic is a channel or a pattern.
type topic struct {
	name string
	at   int // in topics.list
	subs []*subscription
}

// get returns the topic of a name. It creates a missing one.
func (ts *topics) get(name []byte) *topic {
	t := ts.byName[string(name)]
	if t == nil {
		t = &topic{name: string(name), at: len(ts.list)}
		ts.byName[t.name] = t
		ts.list = append(ts.list, t)
	}
	return t
}

// remove deletes a topic. The last topic of the list takes its place.
func (ts *topics) remove(t *topic) {
	last := len(ts.list) - 1
	ts.list[t.at] = ts.list[last]
	ts.list[t.at].at = t.at
	ts.list[last] = nil
	ts.list = ts.list[:last]
	delete(ts.byName, t.name)
}

// subscription joins a client and a topic. It stores its index in the lists of
// both, so that ending a subscription takes constant time.
type subscription struct {
	topic   *topic
	client  *client
	atTopic int
	atSet   int
}

// subscriptionSet is a client's set of subscriptions to channels, or to
// patterns.
type subscriptionSet struct {
	byName map[string]*subscription
	list   []*subscription // in the order they were made, until one has ended
}

// subscriptions holds all subscriptions of a client.
type subscriptions struct {
	channels, patterns, shards subscriptionSet
}

func (s *subscriptions) set(k topicKind) *subscriptionSet {
	return [...]*subscriptionSet{&s.channels, &s.patterns, &s.shards}[k]
}

// count returns the number that confirmations tell: of shard channels, or of all others.
func (s *subscriptions) count(k topicKind) int {
	switch {
	case s == nil:
		return 0
	case k == ofShards:
		return len(s.shards.list)
	}
	return len(s.channels.list) + len(s.patterns.list)
}

// total returns the number of all subscriptions.
func (s *subscriptions) total() int { return s.count(ofChannels) + s.count(ofShards) }

func (b *broker) init() {
	b.channels.byName = make(map[string]*topic)
	b.patterns.byName = make(map[string]*topic)
	b.shards.byName = make(map[string]*topic)
	b.encoded[1].Proto = 3
}

// subscribe adds a client to a topic, unless it is already subscribed.
func (set *subscriptionSet) subscribe(c *client, ts *topics, name []byte) {
	if set.byName[string(name)] != nil {
		return
	}
	t := ts.get(name)
	sub := &subscription{topic: t, client: c, atTopic: len(t.subs), atSet: len(set.list)}
	t.subs = append(t.subs, sub)
	set.list = append(set.list, sub)
	if set.byName == nil {
		set.byName = make(map[string]*subscription)
	}
	set.byName[t.name] = sub
}

// end removes a subscription from both lists. The last one of each list takes
// its place.
func (set *subscriptionSet) end(ts *topics, sub *subscription) {
	t := sub.topic
	last := t.subs[len(t.subs)-1]
	t.subs[sub.atTopic] = last
	last.atTopic = sub.atTopic
	t.subs[len(t.subs)-1] = nil
	if t.subs = t.subs[:len(t.subs)-1]; len(t.subs) == 0 {
		ts.remove(t)
	}
	delete(set.byName, t.name)
	last = set.list[len(set.list)-1]
	set.list[sub.atSet] = last
	last.atSet = sub.atSet
	set.list[len(set.list)-1] = nil
	set.list = set.list[:len(set.list)-1]
}

// publish sends a message to the subscribers of a channel, and of the patterns
// that match the channel. It returns the number of receivers.
func (b *broker) publish(channel, message []byte) (receivers int) {
	receivers = b.publishTo(ofChannels, channel, message)
	for _, t := range b.patterns.list {
		if !glob(t.name, channel, false) {
			continue
		}
		b.encode(func(r *resp.Reply) {
			r.Push(4)
			r.BulkString("pmessage")
			r.BulkString(t.name)
			r.Bulk(channel)
			r.Bulk(message)
		})
		receivers += b.deliver(t)
	}
	b.shrink()
	return receivers
}

// publishShard sends a message to the subscribers of a shard channel.
func (b *broker) publishShard(channel, message []byte) (receivers int) {
	receivers = b.publishTo(ofShards, channel, message)
	b.shrink()
	return receivers
}

// publishTo sends a message to the subscribers of one channel.
func (b *broker) publishTo(k topicKind, channel, message []byte) (receivers int) {
	t := b.topics(k).byName[string(channel)]
	if t == nil {
		return 0
	}
	b.encode(func(r *resp.Reply) {
		r.Push(3)
		r.BulkString(k.verb("message"))
		r.Bulk(channel)
		r.Bulk(message)
	})
	return b.deliver(t)
}

// shrink drops the memory of a large message.
func (b *broker) shrink() {
	for i := range b.encoded {
		if cap(b.encoded[i].B) > spillSize {
			b.encoded[i].B = nil
		}
	}
}

func (b *broker) encode(message func(*resp.Reply)) {
	for i := range b.encoded {
		b.encoded[i].B = b.encoded[i].B[:0]
		message(&b.encoded[i])
	}
}

// deliver passes the encoded message to the subscribers of a topic.
func (b *broker) deliver(t *topic) (receivers int) {
	for _, sub := range t.subs {
		message := b.encoded[0].B
		if sub.client.Proto == 3 {
			message = b.encoded[1].B
		}
		if sub.client.deliver(message) {
			receivers++
		}
	}
	return receivers
}

// deliver sends the client a copy of a published message. It reports whether
// the client can take one.
//
// A publisher does not wait for a subscriber that does not read: the messages
// collect until client-output-buffer-limit closes the subscriber. That happens
// at the end of the batch, since publish is walking the list of subscribers
// now.
func (c *client) deliver(message []byte) bool {
	switch {
	case c.closing:
		return false
	case c.executing, c.server.current == c && c.server.broker.held:
		return c.delay(message)
	case c.server.current == c:
		c.push(message)
	default:
		c.send(message, nil)
	}
	return true
}

// delay holds a message back until the running command's reply is complete: a push must not
// stand in the middle of EXEC's array, or another reply.
func (c *client) delay(message []byte) bool {
	if len(c.late)+len(message) > maxOutput {
		c.server.condemn(c, rondo.ErrOutputFull)
		return false
	}
	c.late = append(c.late, message...)
	return true
}

// deliverLate adds the messages that were held back to the output of the batch.
func (c *client) deliverLate() {
	late := c.late
	c.late = nil
	c.base = len(c.B) // the reply is complete
	c.push(late)
}

// push adds b to the output of the batch. CLIENT REPLY OFF does not silence it.
func (c *client) push(b []byte) {
	c.unsilenced(func() { c.B = append(c.B, b...) })
}

// unsilenced calls add, whose output CLIENT REPLY OFF does not silence.
func (c *client) unsilenced(add func()) {
	if c.silent() {
		c.B = c.B[:c.base]
	}
	add()
	c.spillPush()
}

func (c *client) spillPush() {
	if c.isMuch() {
		c.flush()
	}
	c.base = len(c.B)
}
