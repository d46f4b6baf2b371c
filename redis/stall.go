package redis

import (
	"fmt"
	"slices"
	"time"

	"github.com/rondo-go/rondo"
)

// stallTime is how long a client may take none of its output before its further requests run.
const stallTime = 100 * time.Millisecond

// stalls are the clients whose requests wait since much output does. Some programs send
// all requests of a long pipeline before they read the first reply. Such a client takes no
// output until the server has taken its requests. So each time that a client has
// taken nothing for stallTime, twice the output may wait, up to its
// client-output-buffer-limit, or maxOutput. Redis lets output grow so far at once. All of
// these clients together may leave no more than one: thousands that never read must not
// exhaust the memory.
type stalls struct {
	server  *Server
	allowed int // the sum of stall.allowed
	list    []*client
	timer   *rondo.Timer
	running bool
}

// stall is what stalls knows of a client.
type stall struct {
	listed  bool
	allowed int   // output that may wait before requests do; 0: the engine's HighWater
	written int64 // to the transport, ever
	taken   int64 // of that, by the connection's socket, when tick looked last
}

// add lists a client whose output is full. It condemns one that has not given the password.
func (l *stalls) add(c *client) {
	if c.stall.listed || c.closing || l.server.clients.stopping {
		return
	}
	if c.authRequired() {
		l.server.condemn(c, fmt.Errorf("redis: %d bytes of output wait for a client that has not given the password", c.transport.pending()))
		return
	}
	c.stall.listed = true
	c.stall.taken = c.taken()
	c.transport.refresh()
	l.list = append(l.list, c)
	if !l.running {
		l.start()
	}
}

// taken returns how much of the client's output its connection's socket has taken.
func (c *client) taken() int64 { return c.stall.written - int64(c.transport.pending()) }

func (l *stalls) start() {
	l.running = true
	if l.timer == nil {
		l.timer = l.server.loop.AfterFunc(stallTime, l.tick)
	} else {
		l.timer.Reset(stallTime)
	}
}

func (l *stalls) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.running = false
}

func (l *stalls) tick() {
	s := l.server
	s.tick()
	l.list = slices.DeleteFunc(l.list, func(c *client) bool {
		c.stall.listed = !c.gone && !c.closing && l.look(c)
		return !c.stall.listed
	})
	l.running = len(l.list) > 0
	if l.running {
		l.timer.Reset(stallTime)
	}
	s.handOver()
}

// look lets a client that takes nothing leave more output. It reports whether the client
// must be looked at again.
func (l *stalls) look(c *client) bool {
	before, pending := c.stall.taken, c.transport.pending()
	c.stall.taken = c.taken()
	c.transport.refresh() // for the next look
	switch {
	case pending <= l.server.lowWater():
		c.stall.settle(c)
		return false
	case c.stall.taken != before:
		return true
	case pending <= c.stall.allowed/2:
		return false // its requests run, and it takes nothing
	}
	n := mostStalled
	if pending < maxOutput {
		n = 2 * pending
	}
	if n <= mostStalled-(l.allowed-c.stall.allowed) {
		l.set(c, n)
	}
	return true
}

// settle takes back what look has allowed, once the output has drained.
func (s *stall) settle(c *client) {
	if s.allowed == 0 {
		return
	}
	if c.transport.pending() > c.server.lowWater() {
		c.transport.refresh() // for the next batch
		return
	}
	c.server.stalls.set(c, 0)
}

// mostStalled bounds stalls.allowed. Half of what is allowed is what look wants to see
// waiting, so that one client reaches maxOutput. It fits into 32 bits.
const mostStalled = 2*maxOutput - 1

// set allows a client so much output.
func (l *stalls) set(c *client, n int) {
	l.forget(c)
	c.stall.allowed = n
	l.allowed += n
	c.transport.allow(n)
}

// forget is called when the client has gone, too.
func (l *stalls) forget(c *client) {
	l.allowed -= c.stall.allowed
	c.stall.allowed = 0
}

// highWater is the output of a connection from which on its requests wait.
func (s *Server) highWater() int {
	if n := s.Engine.HighWater; n > 0 {
		return n
	}
	return rondo.DefaultHighWater
}

// allow sets how much output may wait before a connection is full, and drained to half of
// that; 0: the engine's HighWater and LowWater.
func allow(conn *rondo.Conn, s *Server, n int) {
	l := conn.Limits()
	l.HighWater, l.LowWater = n, n/2
	if n == 0 {
		l.HighWater, l.LowWater = s.highWater(), s.lowWater()
	}
	conn.SetLimits(l)
}

func (s *Server) lowWater() int {
	if n := s.Engine.LowWater; n > 0 {
		return n
	}
	return min(rondo.DefaultLowWater, s.highWater())
}
