package redis

import (
	"time"

	"github.com/rondo-go/rondo"
)

// expiryTimer fires when the first key expires.
type expiryTimer struct {
	server *Server
	timer  *rondo.Timer
	at     int64 // when the timer fires, in milliseconds since 1970; never: not set
	off    bool  // turned off by DEBUG SET-ACTIVE-EXPIRE
	behind int   // how many times in a row fire has left expired keys
	before int64 // keyspace.dirty when the batch began
}

const (
	// fire deletes expirePerTurn keys and then leaves the loop to others for
	// expirePause, which takes about a tenth of the loop's time. While that is too
	// slow the number doubles, at most maxBehind times. Then expiry takes about a
	// quarter of the time, and deletes more keys a second than a loop can set.
	expirePerTurn = 200
	expirePause   = time.Millisecond
	maxBehind     = 3
)

// set makes the timer fire at the keyspace's soonest deadline.
func (t *expiryTimer) set() {
	if t.off || t.server.space.paused || t.server.clients.stopping || t.server.scripts.busy {
		return
	}
	t.at = t.server.space.soonest()
	// Even an expired key waits for expirePause, so that expiry cannot run for ever
	// within a turn. A distant deadline is looked at again every 24 hours.
	wait := time.Duration(min(t.at-t.server.space.now, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	wait = max(wait, expirePause)
	if t.timer == nil {
		t.timer = t.server.loop.AfterFunc(wait, t.fire)
	} else {
		t.timer.Reset(wait)
	}
}

// enable turns the deletion of expired keys that no command asks for on or off.
func (t *expiryTimer) enable(on bool) {
	t.off = !on
	t.restart()
}

// restart sets the timer anew after something has allowed or forbidden it.
func (t *expiryTimer) restart() {
	t.stop()
	if t.server.space.soonest() != never {
		t.set()
	}
}

func (t *expiryTimer) fire() {
	s := t.server
	t.at = never
	s.tick()
	defer s.published()
	s.measured(eventExpiry, func() { s.space.expire(expirePerTurn << t.behind) })
	if s.space.soonest() <= s.space.now {
		t.behind = min(t.behind+1, maxBehind)
	} else {
		t.behind = 0
	}
	if s.space.soonest() != never {
		t.set()
	}
}

// published finishes a turn of a timer in which keys may have expired, or been evicted, and
// subscribers have got messages about it.
func (s *Server) published() {
	defer s.handOver() // also if the log panics
	if len(s.space.ready) > 0 && !s.scripts.busy {
		s.serveBlocked() // clients whose stream has gone
	}
	if len(s.clients.condemned) > 0 {
		s.clients.carryOut()
	}
}

// assist deletes more expired keys than the batch can have added, while fire
// does not keep up with the clients.
func (t *expiryTimer) assist() {
	s := t.server
	if !t.off && !s.space.paused && !s.scripts.busy && s.space.soonest() <= s.space.now {
		s.space.expire(int(min(16+2*(s.space.dirty-t.before), expirePerTurn<<maxBehind)))
	}
}

func (t *expiryTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.at = never
}

const (
	// tidyWork is the budget of the store's own work: about 100 microseconds, then
	// tidyPause for others.
	tidyWork  = 4000
	tidyPause = time.Millisecond
)

// tidyTimer gives the store time while it has memory to free or to move, and
// while maxmemory is exceeded. upkeep and makeRoom start it.
type tidyTimer struct {
	server  *Server
	timer   *rondo.Timer
	running bool
}

func (t *tidyTimer) start() {
	if t.running || t.server.clients.stopping {
		return
	}
	t.running = true
	if t.timer == nil {
		t.timer = t.server.loop.AfterFunc(tidyPause, t.fire)
	} else {
		t.timer.Reset(tidyPause)
	}
}

func (t *tidyTimer) fire() {
	t.running = false
	s := t.server
	if s.config.maxMemory > 0 {
		defer s.published()
		s.tick()
		s.evicting.begin(s)
		s.makeRoom()
	}
	if s.tracking.full() {
		defer s.published()
		s.tracking.limit()
	}
	if s.tidy() {
		t.start()
	}
}

// tidy gives the stores time, and reports whether there is more to do.
func (s *Server) tidy() (more bool) {
	more = s.tracking.table.tick(tidyWork)
	return s.space.store.Tick(tidyWork) || more
}

func (t *tidyTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.running = false
}

// upkeep runs hz times a second while the server is busy. It measures the rates
// that INFO reports, and checks output above a soft limit. It sets no timer
// while the server is idle.
type upkeep struct {
	server   *Server
	timer    *rondo.Timer
	running  bool
	quiet    int       // ticks in a row without a command
	overSoft []*client // see client.softSince
}

func (u *upkeep) start() {
	s := u.server
	if s.clients.stopping {
		return
	}
	u.running, u.quiet = true, 0
	s.stats.sample(s) // starts the first interval
	if u.timer == nil {
		u.timer = s.loop.AfterFunc(u.interval(), u.tick)
	} else {
		u.timer.Reset(u.interval())
	}
}

func (u *upkeep) interval() time.Duration {
	return time.Second / time.Duration(u.server.config.hz)
}

func (u *upkeep) tick() {
	s := u.server
	s.tick()
	if s.tidy() {
		s.tidying.start()
	}
	if s.stats.sample(s) {
		u.quiet = 0
	} else {
		u.quiet++
	}
	if u.quiet >= rateSamples && len(u.overSoft) == 0 {
		u.running = false
		return
	}
	u.timer.Reset(u.interval()) // before check, since the log may panic
	u.check()
}

// check cuts off the clients whose output has exceeded a soft limit for too
// long.
func (u *upkeep) check() {
	s := u.server
	defer s.handOver() // also if the log panics
	s.tick()
	for i := len(u.overSoft) - 1; i >= 0; i-- { // checkOutput may remove the i-th
		c := u.overSoft[i]
		c.transport.refresh() // for the next check
		s.checkOutput(c)
	}
	s.clientMemory.check(s)
	s.clients.carryOut()
}

func (u *upkeep) stop() {
	if u.timer != nil {
		u.timer.Stop()
	}
	u.running = false
}

// watch makes upkeep check a client's output until the output falls below the
// soft limit.
func (u *upkeep) watch(c *client, now int64) {
	c.softSince = now
	u.overSoft = append(u.overSoft, c)
	if !u.running {
		u.start()
	}
}

// forget ends watch.
func (u *upkeep) forget(c *client) {
	if c.softSince == 0 {
		return
	}
	c.softSince = 0
	for i, x := range u.overSoft {
		if x == c {
			last := len(u.overSoft) - 1
			u.overSoft[i] = u.overSoft[last]
			u.overSoft[last] = nil
			u.overSoft = u.overSoft[:last]
			return
		}
	}
}
