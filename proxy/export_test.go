package proxy

import "net/netip"

// A Chooser chooses among a pool's targets as one loop does.
type Chooser struct {
	pool   *pool
	roster *roster
}

// NewChooser makes a Chooser.
func NewChooser(p Pool) *Chooser {
	q := &pool{}
	return &Chooser{q, q.roster(&p, nil, 1)}
}

// Choose returns the number of the chosen target, whose place is kept; -1: there is none.
func (c *Chooser) Choose(client string) int {
	ip, _ := netip.ParseAddr(client)
	m, err := c.roster.choose(0, ip, nil, 0)
	if err != nil {
		return -1
	}
	for i := range c.roster.members {
		if c.roster.members[i] == m {
			return i
		}
	}
	panic("no member was chosen")
}

// Leave gives a place back.
func (c *Chooser) Leave(i int) { c.roster.members[i].leave() }

// ServerName is serverName.
func ServerName(in []byte) (name string, want int, err error) { return serverName(in) }
