package redis

import "fmt"

// outputLimit is the client-output-buffer-limit of a class.
type outputLimit struct {
	hard    int64 // bytes that cut a client off at once; 0: none
	soft    int64 // bytes that cut it off if they wait for seconds; 0: none
	seconds int64
}

// strictLimit is the largest hard limit that holds for all output of a batch. Such a
// client's output waits for the batch's end, as in Redis, and a batch with too much output
// is not answered at all. A larger limit is for output that the system does not take.
const strictLimit = 1 << 20

// freeOutput is the output that Redis keeps outside the memory that it limits.
const freeOutput = 16 << 10

// strict returns the client's hard limit if it is a strict one, or 0.
func (c *client) strict() int {
	if hard := c.server.config.outputLimits[c.class()].hard; hard <= strictLimit {
		return int(hard)
	}
	return 0
}

// send passes output to the transport. If that is more than a strict limit allows it
// condemns the client, and drops the output.
func (c *client) send(p, more []byte) {
	if c.condemned != nil {
		return
	}
	if hard := c.strict(); hard > 0 {
		size := c.transport.pending() + len(p) + len(more)
		if size >= hard && size > freeOutput {
			c.server.condemn(c, fmt.Errorf("redis: %d bytes of output: client-output-buffer-limit of class %s is %d", size, classNames[c.class()], hard))
			return
		}
	}
	c.stall.written += int64(len(p) + len(more))
	if len(p) > 0 {
		c.transport.write(p)
	}
	if len(more) > 0 {
		c.transport.write(more)
	}
	c.server.checkOutput(c)
	if c != c.server.current && !c.server.tracking.evicting { // messages about keys that make room take none
		c.server.clientMemory.note(c)
	}
}

// checkOutput condemns a client whose output exceeds its limit. It is called
// after each write, and by upkeep while output is above a soft limit.
func (s *Server) checkOutput(c *client) {
	limit := &s.config.outputLimits[c.class()]
	if limit.hard == 0 && limit.soft == 0 || c.closing {
		return
	}
	pending := int64(c.transport.pending())
	if limit.hard > 0 && pending >= limit.hard {
		s.condemn(c, fmt.Errorf("redis: %d bytes of output wait: client-output-buffer-limit of class %s is %d", pending, classNames[c.class()], limit.hard))
		return
	}
	if limit.soft == 0 || pending < limit.soft {
		if c.softSince != 0 {
			s.upkeep.forget(c)
		}
		return
	}
	now := s.space.now
	if c.softSince == 0 {
		s.upkeep.watch(c, now)
		return
	}
	if now-c.softSince > 1000*limit.seconds {
		s.condemn(c, fmt.Errorf("redis: %d bytes of output have waited for over %d s: soft client-output-buffer-limit of class %s is %d", pending, limit.seconds, classNames[c.class()], limit.soft))
	}
}
