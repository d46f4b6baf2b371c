package proxy

import "strings"

// Stats are the counts of a Server, since it started. Those of connections are complete
// once the connections have ended. It marshals to JSON.
type Stats struct {
	Listeners []ListenerStats
	Pools     []PoolStats
}

// ListenerStats are the counts of a Listener.
type ListenerStats struct {
	Network, Address string // Address has the port that the system chose
	Open             int64  // clients now
	Accepted         uint64
	Refused          uint64 // above MaxConns, or with no way to a Pool; the Engine's Stats count those above its limits
}

// PoolStats are the counts of a Pool.
type PoolStats struct {
	Name    string
	Retries uint64 // dials of another target, after a failure
	Refused uint64 // clients for which there was no target
	Waiting int64  // clients in the queue
	Waited  uint64 // clients that have been there
	InVain  uint64 // clients of these for which no target came in time
	Targets []TargetStats
}

// TargetStats are the counts of a Target.
type TargetStats struct {
	Network, Address string
	Name             string // that the Target has in place of Address; "": none
	State            string // "up", "down", "ejected", "draining" or "removed": it has only its last connections
	Open             int64  // connections now, also those being dialed
	Conns            uint64 // connections that it has accepted
	DialsFailed      uint64
	Broken           uint64 // connections that it broke before it sent anything
	Ejections        uint64
	FromClients      uint64 // bytes of connections that have ended
	FromTarget       uint64
	Checks           uint64
	ChecksFailed     uint64
	CheckError       string // of the last check; "": it succeeded, or there was none
}

// Stats returns the counts.
func (s *Server) Stats() (all Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		return all
	}
	for _, l := range s.listeners {
		all.Listeners = append(all.Listeners, ListenerStats{
			Network: l.settings.Network, Address: l.socket.Addr().String(),
			Open: l.open.Load(), Accepted: l.total.Load(), Refused: l.refused.Load(),
		})
	}
	for _, p := range s.pools {
		all.Pools = append(all.Pools, p.stats())
	}
	return all
}

func (p *pool) stats() PoolStats {
	all := PoolStats{Name: p.name, Retries: p.retries.Load(), Refused: p.refused.Load(),
		Waiting: p.queue.waiting.Load(), Waited: p.waited.Load(), InVain: p.waitedInVain.Load()}
	r := p.now.Load()
	for _, m := range r.members {
		state := "up"
		switch {
		case m.settings.Drain:
			state = "draining"
		case m.down.Load():
			state = "down"
		case m.ejected.Load():
			state = "ejected"
		}
		name := ""
		if m.settings.isName() {
			name = m.settings.Address
		}
		t := m.stats()
		t.Network, t.Address, t.Name, t.State = m.settings.Network, m.address, name, state
		all.Targets = append(all.Targets, t)
	}
	for _, left := range r.left {
		if t := left.stats(); t.Open > 0 {
			t.Network, t.Address, _ = strings.Cut(left.key, "://")
			t.State = "removed"
			all.Targets = append(all.Targets, t)
		}
	}
	return all
}

// stats are the target's counts.
func (t *target) stats() TargetStats {
	checkError := ""
	if text := t.checkError.Load(); text != nil {
		checkError = *text
	}
	return TargetStats{
		Open: t.open.Load(), Conns: t.conns.Load(), DialsFailed: t.dialsFailed.Load(),
		Broken: t.broken.Load(), Ejections: t.ejections.Load(),
		FromClients: t.fromClients.Load(), FromTarget: t.fromTarget.Load(),
		Checks: t.checks.Load(), ChecksFailed: t.checksFailed.Load(), CheckError: checkError,
	}
}
