package proxy

import (
	"net/netip"
	"time"

	"github.com/rondo-go/rondo/internal/upgrade"
)

// A Chooser chooses among a pool's targets as one loop does.
type Chooser struct {
	pool   *pool
	roster *roster
	Now    int64 // the server's time
}

// NewChooser makes a Chooser.
func NewChooser(p Pool) *Chooser {
	q := &pool{}
	return &Chooser{pool: q, roster: q.roster(&p, nil, 1)}
}

// Choose returns the number of the chosen target, whose place is kept; -1: there is none.
func (c *Chooser) Choose(client string) int {
	ip, _ := netip.ParseAddr(client)
	m, err := c.roster.choose(0, addrKey(ip), nil, c.Now)
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
func (c *Chooser) Leave(i int) { c.roster.members[i].open.Add(-1) }

// ComesBack makes a target one that has just come back.
func (c *Chooser) ComesBack(i int) { c.roster.members[i].since.Store(soon) }

// ServerName is serverName.
func ServerName(in []byte) (name string, want int, err error) { return serverName(in) }

// EndCheck ends a check of the only target with an error.
func EndCheck(s *Server, err error) {
	k := s.pools[0].now.Load().members[0].checker
	k.loop.Post(func() { k.ended(err) })
}

// SetPatience sets how long the processes of an upgrade wait for each other, until the test ends.
func SetPatience(t interface{ Cleanup(func()) }, d time.Duration) {
	old := upgrade.Patience
	upgrade.Patience = d
	t.Cleanup(func() { upgrade.Patience = old })
}
