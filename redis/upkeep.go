package redis

import (
	"time"

	"github.com/rondo-go/rondo"
)

// expiryTimer fires when the first key expires.
type expiryTimer struct {
	server *Server
	timer  *rondo.Timer
	at     int64 // when it fires, in milliseconds since 1970; never: it does not
	off    bool  // by DEBUG SET-ACTIVE-EXPIRE
	behind int   // how often in a row fire has left expired keys
}

const (
	// expirePerTurn is how many keys are deleted at a time, and expirePause
	// how long others have the loop then: about a tenth of it is spent so. While
	// that is not enough the number doubles, maxBehind times at most: then it is
	// about a quarter, and more keys a second than a loop can set.
	expirePerTurn = 200
	expirePause   = time.Millisecond
	maxBehind     = 3
)

// set makes the timer fire at the keyspace's soonest deadline.
func (t *expiryTimer) set() {
	if t.off || t.server.clients.stopping {
		return
	}
	t.at = t.server.space.soonest
	// A key that has expired by now waits all the same, so that this cannot
	// go on for ever within a turn. A deadline further away than a timer can
	// be set is looked at again on the way.
	wait := time.Duration(min(t.at-t.server.space.now, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	wait = max(wait, expirePause)
	if t.timer == nil {
		t.timer = t.server.loop.AfterFunc(wait, t.fire)
	} else {
		t.timer.Reset(wait)
	}
}

// enable turns the deletion of expired keys that nobody asks for on or off.
func (t *expiryTimer) enable(on bool) {
	t.stop()
	if t.off = !on; on && t.server.space.soonest != never {
		t.set()
	}
}

func (t *expiryTimer) fire() {
	s := t.server
	t.at = never
	s.tick()
	s.space.expire(expirePerTurn << t.behind)
	if s.space.soonest <= s.space.now {
		t.behind = min(t.behind+1, maxBehind)
	} else {
		t.behind = 0
	}
	if s.space.soonest != never {
		t.set()
	}
}

func (t *expiryTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.at = never
}

// upkeep is what is done some times a second (the parameter hz) while the
// server is busy: it measures the rates that INFO tells, and watches output
// that is above a soft limit. An idle server has no timer running for it.
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
	s.stats.sample(s) // the beginning of the first interval
	if u.timer == nil {
		u.timer = s.loop.AfterFunc(u.interval(), u.tick)
	} else {
		u.timer.Reset(u.interval())
	}
}

func (u *upkeep) interval() time.Duration {
	return time.Second / time.Duration(u.server.config.hz)
}

// tick is what is done each time.
func (u *upkeep) tick() {
	s := u.server
	s.tick()
	if s.stats.sample(s) {
		u.quiet = 0
	} else {
		u.quiet++
	}
	if u.quiet >= rateSamples && len(u.overSoft) == 0 {
		u.running = false
		return
	}
	u.timer.Reset(u.interval()) // before check, whose log may panic
	u.check()
}

// check cuts off those whose output was above a soft limit for too long.
func (u *upkeep) check() {
	s := u.server
	defer s.handOver() // also if the log panics
	s.tick()
	for i := len(u.overSoft) - 1; i >= 0; i-- { // checkOutput may remove the i-th
		c := u.overSoft[i]
		c.transport.refresh() // for the next look
		s.checkOutput(c)
	}
	s.clients.carryOut()
}

func (u *upkeep) stop() {
	if u.timer != nil {
		u.timer.Stop()
	}
	u.running = false
}

// watch has a client's output looked at until it has fallen.
func (u *upkeep) watch(c *client, now int64) {
	c.softSince = now
	u.overSoft = append(u.overSoft, c)
	if !u.running {
		u.start()
	}
}

// forget ends that.
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
