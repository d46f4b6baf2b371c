package proxy

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"

	"github.com/rondo-go/rondo"
)

// A roster is the targets of a pool at one time, with their settings. Only turns changes.
type roster struct {
	settings *Pool
	members  []*member
	left     []*target // that former rosters had, and that still have connections
	turns    []turn    // of each loop, and of the queue
}

// A member is a target in a roster.
type member struct {
	*target
	settings *Target
	address  string // to dial: that of settings, or one of its name's
	group    *Pool
	secure   rondo.FilterOpenFunc // of TLS to the target; nil: there is none
	weight   int                  // Target.Weight, or its default
}

// A turn is what one loop remembers for its next choice.
type turn struct {
	ahead []int // RoundRobin: how far each member is ahead of its share
	next  int   // LeastConns: where to begin, among equals
}

var (
	errNone = errors.New("proxy: no target can serve the client: they are down, draining, or have been tried")
	errFull = errors.New("proxy: all targets have as many connections as they may")
)

// newRoster makes a roster for a number of loops.
func newRoster(p *Pool, members []*member, loops int) *roster {
	r := &roster{settings: p, members: members, turns: make([]turn, loops+1)}
	for i := range r.turns {
		t := &r.turns[i]
		t.ahead = make([]int, len(members))
		if len(members) > 0 { // otherwise all loops would begin with the same target
			t.next = i
			t.ahead[i%len(members)] = 1
		}
	}
	return r
}

// choose chooses a target for a client, whose address has a key, and takes a place in it. now is the server's time.
func (r *roster) choose(loop int, client uint64, tried []*target, now int64) (*member, error) {
	t := &r.turns[loop]
	for {
		full, ejected := false, false
		m := r.best(t, client, now, func(m *member) bool {
			switch {
			case !m.takes(tried):
				return false
			case m.ejected.Load():
				ejected = true
				return false
			case m.isFull():
				full = true
				return false
			}
			return true
		})
		if m == nil && !full && ejected { // better than none
			m = r.best(t, client, now, func(m *member) bool {
				ok := m.takes(tried)
				full = full || ok && m.isFull()
				return ok && !m.isFull()
			})
		}
		switch {
		case m == nil && full:
			return nil, errFull
		case m == nil:
			return nil, errNone
		case m.enter():
			return m, nil
		}
		// Another loop has taken the last place meanwhile.
	}
}

// takes reports whether a target may get a client.
func (m *member) takes(tried []*target) bool {
	return !m.settings.Drain && !m.down.Load() && !slices.Contains(tried, m.target)
}

// best chooses among the members that are able.
func (r *roster) best(t *turn, client uint64, now int64, able func(*member) bool) *member {
	switch r.settings.Balance {
	case LeastConns:
		return r.leastConns(t, able, now)
	case SourceHash:
		return r.byHash(client, able, now)
	}
	return r.inTurn(t, able, now)
}

// inTurn is RoundRobin. Each member gets its weight, and the one that is ahead pays for all:
// so the choices of a heavy member are spread between those of the others.
func (r *roster) inTurn(t *turn, able func(*member) bool, now int64) *member {
	best, sum := -1, 0
	for i, m := range r.members {
		if !able(m) {
			continue
		}
		w := m.share(now)
		sum += w
		t.ahead[i] += w
		if best < 0 || t.ahead[i] > t.ahead[best] {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	t.ahead[best] -= sum
	return r.members[best]
}

func (r *roster) leastConns(t *turn, able func(*member) bool, now int64) (best *member) {
	var load, share int64 // of best
	first := t.next
	t.next++
	for i := range r.members {
		m := r.members[(first+i)%len(r.members)]
		if !able(m) {
			continue
		}
		n, w := int64(m.open.Load())+1, int64(m.share(now))
		if best == nil || n*share < load*w {
			best, load, share = m, n, w
		}
	}
	return best
}

// byHash is SourceHash, by weighted rendezvous: each member draws a number for the client,
// and the least one, for its weight, wins. It needs no table, and a member that goes moves
// no other member's clients.
func (r *roster) byHash(client uint64, able func(*member) bool, now int64) (best *member) {
	least := math.Inf(1)
	for _, m := range r.members {
		if !able(m) {
			continue
		}
		drawn := (float64(mix(client^m.hash)>>11) + 0.5) / (1 << 53) // between 0 and 1
		if d := -math.Log(drawn) / float64(m.share(now)); d < least {
			best, least = m, d
		}
	}
	return best
}

// addrKey is the number of a client's address: of an IPv6 network, since a host has all
// addresses of it.
func addrKey(a netip.Addr) uint64 {
	if !a.IsValid() {
		return 0
	}
	ip := a.As16()
	half := ip[:8]
	if a.Is4() || a.Is4In6() {
		half = ip[8:]
	}
	var key uint64
	for _, b := range half {
		key = key<<8 | uint64(b)
	}
	return mix(key)
}

// mix spreads the bits of a number (the finalizer of MurmurHash3). It is the same in every
// process, as the choices of SourceHash must be.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// hashOf is the number of a target's address.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// ipOf returns an address's IP; the zero Addr if it has none.
func ipOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
