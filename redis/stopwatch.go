package redis

import "time"

// stopwatch measures commands while the slow log or the latency monitor asks for it.
// Reading the clock costs as much as a GET, so commands that are brief (see
// flagBrief) are measured in groups of consecutive ones of one client. A group
// that takes too long is counted as its last command: a command with much output
// ends its group, so that is the slow one, unless the whole program had to wait.
type stopwatch struct {
	on      bool
	precise bool      // the limits are so low that every command is measured
	mark    time.Time // when the group began
	group   int       // commands since mark
}

// brief are the commands besides those with flagFast that take no longer than to
// copy their arguments and their replies.
var brief = map[string]bool{
	"set": true, "setbit": true, "setex": true, "psetex": true, "mset": true, "mget": true, "getrange": true,
	"lrange": true, "hgetall": true, "hkeys": true, "hvals": true, "smembers": true, "zrange": true,
}

// lengthy are the commands with flagFast that are not brief: they may look at much more than
// they reply.
var lengthy = map[string]bool{"xautoclaim": true}

const (
	// maxGroup is the number of commands in a group.
	maxGroup = 16
	// preciseBelow is the limit below which each command is measured.
	preciseBelow = time.Millisecond
)

// set is called when the limits change. limits are negative for none.
func (w *stopwatch) set(limits ...time.Duration) {
	w.on, w.precise = false, false
	for _, limit := range limits {
		w.on = w.on || limit >= 0
		w.precise = w.precise || limit >= 0 && limit < preciseBelow
	}
	w.restart()
}

// restart begins a group.
func (w *stopwatch) restart() {
	if w.on {
		w.mark, w.group = time.Now(), 0
	}
}

// single reports whether a call must be measured by itself.
func (w *stopwatch) single(c *client, cmd *command) bool {
	return w.on && (w.precise || cmd.flags&flagBrief == 0 || c.owned || c.executing && !c.briefInScript(cmd))
}

// briefInScript reports whether a script calls a command that has little output, too. The script
// is measured as a whole.
func (c *client) briefInScript(cmd *command) bool {
	return c == c.server.scripts.caller && cmd.flags&(flagFast|flagDenyOOM) != 0
}

// start returns when a call begins that is measured by itself.
func (w *stopwatch) start(c *client) time.Time {
	if w.on && w.group == 0 && !c.local {
		return w.mark // when the call before it ended
	}
	return time.Now()
}

// stop returns how long a call has taken that began at start.
func (w *stopwatch) stop(start time.Time) time.Duration {
	d := time.Since(start)
	w.mark, w.group = start.Add(d), 0
	return d
}

// endGroup measures the commands since mark, of which args are the last one's.
func (s *Server) endGroup(c *client, args [][]byte) {
	began := s.watch.mark
	if d := s.watch.stop(began); d >= preciseBelow && c.lastCmd != nil {
		s.spent(c, c.lastCmd, args, d)
	}
}

// spent records how long a command has taken.
func (s *Server) spent(c *client, cmd *command, args [][]byte, d time.Duration) {
	if s.latency.limit >= 0 {
		event := eventCommand
		if cmd.flags&flagFast != 0 {
			event = eventFastCommand
		}
		s.latency.add(event, d, s.space.now)
	}
	if s.slowlog.limit >= 0 && d >= s.slowlog.limit && c.wait == nil {
		s.slowlog.add(c, cmd, args, d)
	}
}

// applyLimits is called when a parameter of the slow log or the latency monitor
// has changed.
func applyLimits(s *Server) {
	cfg := &s.config
	s.slowlog.limit, s.latency.limit = -1, -1
	if cfg.slowerThan >= 0 {
		s.slowlog.limit = time.Duration(min(cfg.slowerThan, 1<<50)) * time.Microsecond
	}
	if cfg.latencyLimit > 0 {
		s.latency.limit = time.Duration(min(cfg.latencyLimit, 1<<40)) * time.Millisecond
	}
	s.slowlog.most = int(min(cfg.slowlogLen, 1<<30))
	s.watch.set(s.slowlog.limit, s.latency.limit)
}
