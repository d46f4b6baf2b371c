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
// a millisecond. More of them follow with the next commands, and in pauses.
const evictAtOnce = 64

// makeRoom evicts keys while maxmemory is exceeded. It reports whether commands
// that need memory may run: they may also while more keys are being evicted.
func (s *Server) makeRoom() bool {
	if s.pause.on || !s.memoryFull() {
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
		db, it := s.space.store.Victim(s.config.eviction.policy, int(s.config.eviction.samples))
		if !it.Exists() {
			return false
		}
		s.evicted = append(s.evicted[:0], it.Key()...)
		db.Delete(it)
		s.stats.evicted++
		from := &s.space.dbs[db.Index()]
		from.touched(s.evicted, false)
		from.notify(eventEvicted, "evicted", s.evicted)
	}
	if s.memoryFull() {
		s.tidying.start()
	}
	return true
}
