package redis

import (
	"strings"

	"github.com/rondo-go/rondo/redis/store"
)

// eventClass is a set of classes of keyspace events, as notify-keyspace-events chooses them.
type eventClass uint16

const (
	eventGeneric eventClass = 1 << iota
	eventString
	eventList
	eventSet
	eventHash
	eventZset
	eventExpired
	eventEvicted
	eventStream
	eventModule
	eventNew
	toKeyspace // the channel of the key gets the event
	toKeyevent // the channel of the event gets the key
	eventMiss

	allEvents = eventNew - 1
)

// eventLetters are the letters of the classes, in the order of a normal form.
const eventLetters = "g$lshzxetdnKEm"

func parseEvents(s string) (classes eventClass, ok bool) {
	for _, letter := range []byte(s) {
		if letter == 'A' {
			classes |= allEvents
			continue
		}
		i := strings.IndexByte(eventLetters, letter)
		if i < 0 {
			return 0, false
		}
		classes |= 1 << i
	}
	return classes, true
}

// String returns the letters in their normal form. It leaves out n beside A, as Redis does.
func (e eventClass) String() string {
	text := ""
	if e&allEvents == allEvents {
		text = "A"
		e &^= allEvents | eventNew
	}
	for i := range eventLetters {
		if e&(1<<i) != 0 {
			text += eventLetters[i : i+1]
		}
	}
	return text
}

func eventsParam(name string) *param {
	return &param{
		name: name,
		form: formText,
		get:  func(c *config) string { return c.events.String() },
		set: func(c *config, v string) string {
			events, ok := parseEvents(v)
			if !ok {
				return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
			}
			c.events = events
			return ""
		},
		apply: applyEvents,
	}
}

// applyEvents tells the keyspace which events to publish: none if there is no channel for
// them.
func applyEvents(s *Server) {
	wanted := s.config.events
	if wanted&(toKeyspace|toKeyevent) == 0 {
		wanted = 0
	}
	k := &s.space
	k.events.classes, k.events.broker = wanted, &s.broker
	k.store.OnInsert = nil
	if wanted&eventNew != 0 {
		k.store.OnInsert = func(db *store.DB, key []byte) { k.dbs[db.Index()].notify(eventNew, "new", key) }
	}
}

// events publishes what happens to keys.
type events struct {
	classes eventClass // 0: nobody wants to know
	broker  *broker
	channel []byte // scratch
}

// notify publishes an event if its class is wanted. Messages for the running client wait
// until its reply is complete.
func (db *database) notify(class eventClass, event string, key []byte) {
	if e := &db.space.events; e.classes&class != 0 {
		e.publish(db.keys.Index(), event, key)
	}
}

func (e *events) publish(db int, event string, key []byte) {
	name := []byte(event)
	b := e.broker
	held := b.held
	b.held = true
	if e.classes&toKeyspace != 0 {
		b.publish(append(e.channelOf("__keyspace@", db), key...), name)
	}
	if e.classes&toKeyevent != 0 {
		b.publish(append(e.channelOf("__keyevent@", db), name...), key)
	}
	b.held = held
}

func (e *events) channelOf(kind string, db int) []byte {
	e.channel = appendInt(append(e.channel[:0], kind...), int64(db))
	e.channel = append(e.channel, "__:"...)
	return e.channel
}

func (c *client) notify(class eventClass, event string, key []byte) { c.db.notify(class, event, key) }

// notifyTaken is notify for a command that has removed elements of a value. The key is
// deleted if none are left.
func (c *client) notifyTaken(class eventClass, event string, key []byte) {
	if c.db.space.events.classes == 0 {
		return
	}
	c.notify(class, event, key)
	if !c.db.keys.Peek(key).Exists() {
		c.notify(eventGeneric, "del", key)
	}
}
