package redis

import (
	"math"
	"strings"
	"time"

	"github.com/rondo-go/rondo/redis/store"
)

// policyNames are the values of maxmemory-policy.
var policyNames = [...]string{
	store.NoEviction:     "noeviction",
	store.AllKeysLRU:     "allkeys-lru",
	store.AllKeysLFU:     "allkeys-lfu",
	store.AllKeysRandom:  "allkeys-random",
	store.VolatileLRU:    "volatile-lru",
	store.VolatileLFU:    "volatile-lfu",
	store.VolatileRandom: "volatile-random",
	store.VolatileTTL:    "volatile-ttl",
}

// eviction is the part of the config that says which keys make room.
type eviction struct {
	policy    store.Policy
	samples   int64
	logFactor int64
	decayTime int64 // minutes
}

func (e *eviction) init() {
	*e = eviction{samples: 5, logFactor: int64(store.DefaultLFU.LogFactor), decayTime: int64(store.DefaultLFU.DecayTime)}
}

// rangeParam is a parameter that is a number.
func rangeParam(name string, field func(*config) *int64, least int64, apply func(*Server)) *param {
	return &param{name: name, get: getInt(field), apply: apply, set: func(c *config, v string) string {
		return parseRange(v, least, math.MaxInt32, field(c))
	}}
}

func setPolicy(c *config, v string) string {
	for p, name := range policyNames {
		if strings.EqualFold(name, v) {
			c.eviction.policy = store.Policy(p)
			return ""
		}
	}
	return "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, " +
		"allkeys-lru, allkeys-lfu, allkeys-random, noeviction"
}

// applyEviction makes the store note what the policy compares. Without such a
// policy keys take 4 bytes less.
func applyEviction(s *Server) {
	e := &s.config.eviction
	s.space.store.Track(e.policy.Tracking())
	s.space.store.SetLFU(store.LFU{LogFactor: int(e.logFactor), DecayTime: int(e.decayTime)})
}

// evictAtOnce bounds the keys that make room for one command, to about a tenth of
// a millisecond, and evictInMilli those of a millisecond, unless the memory has grown in it.
// More of them follow with the next commands, and in pauses.
const (
	evictAtOnce  = 64
	evictInMilli = 192
)

// evicting is what the present millisecond has evicted: many clients may have commands in it.
type evicting struct {
	now   int64
	keys  int
	began int64  // the memory when it began
	last  []byte // the last evicted key
}

// begin is called when the time may have moved on.
func (e *evicting) begin(s *Server) {
	if s.config.maxMemory > 0 && e.now != s.space.now {
		e.now, e.keys, e.began = s.space.now, 0, s.usedMemory()
	}
}

// enough reports whether the millisecond has had its share.
func (e *evicting) enough(s *Server) bool {
	return e.keys >= evictInMilli && s.usedMemory() <= e.began
}

// makeRoom is Server.makeRoom before a command of the client. Messages about the keys that go
// stand before the command's reply: the command may make such a key anew.
func (c *client) makeRoom() bool {
	ok := c.server.makeRoom()
	if c.late != nil && !c.executing {
		c.deliverLate()
	}
	return ok
}

// makeRoom evicts keys while maxmemory is exceeded. It reports whether commands
// that need memory may run: they may also while more keys are being evicted, and while
// CLIENT PAUSE, or a script that is suspended, keeps all keys.
func (s *Server) makeRoom() bool {
	if s.space.paused || s.scripts.busy || !s.memoryFull() {
		return true
	}
	if s.latency.limit >= 0 {
		start := time.Now()
		defer func() { s.latency.add(eventEviction, time.Since(start), s.space.now) }()
	}
	for range evictAtOnce {
		if !s.memoryFull() {
			return true
		}
		if s.evicting.enough(s) {
			break
		}
		db, it := s.space.store.Victim(s.config.eviction.policy, int(s.config.eviction.samples))
		if !it.Exists() {
			return false
		}
		key := append(s.evicting.last[:0], it.Key()...)
		s.evicting.last = key
		s.evicting.keys++
		db.Delete(it)
		s.stats.evicted++
		from := &s.space.dbs[db.Index()]
		s.tracking.evicting = true
		from.touched(key, false)
		from.notify(eventEvicted, "evicted", key)
		s.tracking.evicting = false
	}
	if s.memoryFull() {
		s.tidying.start()
	}
	return true
}
