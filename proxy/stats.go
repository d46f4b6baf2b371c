package proxy

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
	Refused          uint64 // above MaxConns; the Engine's Stats count those above its limits
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
	State            string // "up", "down", "ejected" or "draining"
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
			Network: l.settings.Network, Address: l.all[0].Addr().String(),
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
	for _, m := range p.now.Load().members {
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
		checkError := ""
		if text := m.checkError.Load(); text != nil {
			checkError = *text
		}
		all.Targets = append(all.Targets, TargetStats{
			Network: m.settings.Network, Address: m.address, Name: name, State: state,
			Open: m.open.Load(), Conns: m.conns.Load(), DialsFailed: m.dialsFailed.Load(),
			Broken: m.broken.Load(), Ejections: m.ejections.Load(),
			FromClients: m.fromClients.Load(), FromTarget: m.fromTarget.Load(),
			Checks: m.checks.Load(), ChecksFailed: m.checksFailed.Load(), CheckError: checkError,
		})
	}
	return all
}
