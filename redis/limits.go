package redis

import "fmt"

// outputLimit is the client-output-buffer-limit of a class.
type outputLimit struct {
	hard    int64 // bytes that cut a client off at once; 0: none
	soft    int64 // bytes that cut it off if they wait for seconds; 0: none
	seconds int64
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
