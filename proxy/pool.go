package proxy

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/rtls"
)

// A pool is a Pool that serves, as long as Configs have one of that name.
type pool struct {
	server *Server
	name   string
	now    atomic.Pointer[roster]

	mu       sync.Mutex // for set
	addrs    addrs
	resolver *resolver
	retired  atomic.Bool // no Config has it any more

	queue queue

	// Counters; see PoolStats.
	retries, refused, waited, waitedInVain atomic.Uint64
}

// target returns the target with a key, or nil.
func (r *roster) target(key string) *target {
	if r == nil {
		return nil
	}
	for _, m := range r.members {
		if m.key == key {
			return m.target
		}
	}
	return nil
}

// former returns the target with a key, also if it has left; nil if there is none.
func (r *roster) former(key string) *target {
	t := r.target(key)
	if r != nil && t == nil {
		if i := slices.IndexFunc(r.left, func(t *target) bool { return t.key == key }); i >= 0 {
			t = r.left[i]
			t.since.Store(soon)
		}
	}
	return t
}

// leaving returns the targets that old has, or had, and next has not, as long as they have
// connections: these count for the limits if the targets come back.
func (next *roster) leaving(old *roster) (left []*target) {
	if old == nil {
		return nil
	}
	left = slices.Clone(old.left)
	for _, m := range old.members {
		left = append(left, m.target)
	}
	return slices.DeleteFunc(left, func(t *target) bool { return t.open.Load() == 0 || next.target(t.key) != nil })
}

// roster makes a roster for settings. Targets that the pool had before keep their state.
func (p *pool) roster(settings *Pool, found addrs, loops int) *roster {
	var members []*member
	old := p.now.Load()
	seen := make(map[string]bool)
	for i := range settings.Targets {
		s := &settings.Targets[i]
		list := []string{s.Address}
		if s.isName() {
			list = found[s.key()]
		}
		var secure rondo.FilterOpenFunc
		if settings.TLS != nil {
			secure = s.client(settings)
		}
		for _, address := range list {
			key := s.Network + "://" + address
			if seen[key] {
				continue // another Target's name has this address too
			}
			seen[key] = true
			t := old.former(key)
			if t == nil {
				t = &target{pool: p, key: key, hash: hashOf(key)}
				if old != nil {
					t.since.Store(soon)
				}
			}
			members = append(members, &member{target: t, settings: s, address: address, group: settings,
				secure: secure, weight: orDefault(s.Weight, 1)})
		}
	}
	r := newRoster(settings, members, loops)
	r.left = r.leaving(old)
	return r
}

// client returns the filter of TLS to the target.
func (t *Target) client(p *Pool) rondo.FilterOpenFunc {
	config := p.TLS
	if config.ServerName == "" && t.host() != "" {
		config = config.Clone()
		config.ServerName = t.host()
	}
	o := &rtls.Options{HandshakeTimeout: orDefault(p.ConnectTimeout, DefaultConnectTimeout)}
	return o.Client(config)
}

// filters returns the filters of a connection to the target, on behalf of a client; nil: of
// the proxy itself.
func (m *member) filters(s *session) (all []rondo.FilterOpenFunc) {
	if m.group.SendProxy != 0 {
		h := filter.ProxyHeader{Version: m.group.SendProxy}
		if s != nil {
			h = s.header(h.Version)
		}
		all = append(all, filter.SendProxy(h))
	}
	if m.secure != nil {
		all = append(all, m.secure)
	}
	return all
}

// set gives the pool settings, and the addresses of names. p.mu is locked.
func (p *pool) set(settings *Pool, found addrs) {
	r := p.roster(settings, found, len(p.server.loops))
	old := p.now.Swap(r)
	p.addrs = found
	for _, m := range old.members {
		if r.target(m.key) == nil {
			m.member.Store(nil)
		}
	}
	for _, m := range r.members {
		m.member.Store(m)
		m.check(p.server.loops)
	}
	if p.queue.waiting.Load() > 0 {
		l := p.server.loops[0]
		l.Post(func() { p.serveQueue(l) })
	}
}

// apply is set, for Apply. It also begins to look up names again; failed is whether one could
// not be looked up.
func (p *pool) apply(settings *Pool, found addrs, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(settings, found)
	if len(found) == 0 {
		return
	}
	if p.resolver == nil {
		loops := p.server.loops
		p.resolver = &resolver{pool: p, loop: loops[hashOf(p.name)%uint64(len(loops))]}
	}
	p.resolver.loop.Post(func() { p.resolver.start(failed) })
}

// retire ends the checks of a pool that no Config has any more. Clients that are about to be
// connected still use its roster.
func (p *pool) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired.Store(true)
	for _, m := range p.now.Load().members {
		m.member.Store(nil)
	}
}

// check begins to check the target, if that is wanted.
func (m *member) check(loops []*rondo.Loop) {
	if m.group.Check.Kind == NoCheck {
		m.down.Store(false)
		return
	}
	if m.checker == nil {
		m.checker = &checker{target: m.target, loop: loops[m.hash%uint64(len(loops))]}
	}
	m.checker.loop.Post(m.checker.start)
}

// A target is a Target that serves. All loops use it.
type target struct {
	pool *pool
	key  string // network://address
	hash uint64

	open     atomic.Int64 // connections, also those being dialed
	failures atomic.Int32 // in a row
	failed   atomic.Int64 // when the last one was
	ejected  atomic.Bool
	down     atomic.Bool  // by its checks
	since    atomic.Int64 // when it came back, or soon; 0: it has its whole share

	member  atomic.Pointer[member] // in the pool's roster; nil: it has left
	checker *checker               // nil: never checked; Apply sets it

	// Counters; see TargetStats.
	conns, dialsFailed, broken, ejections atomic.Uint64
	fromClients, fromTarget               atomic.Uint64
	checks, checksFailed                  atomic.Uint64
	checkError                            atomic.Pointer[string] // of the last check; nil: there was none
}

// shareUnit is what a weight of 1 counts as.
const shareUnit = 100

// soon is a target.since that the next choice sets to its time.
const soon = -1

// share is the member's part of the connections. It grows for the time of SlowStart, from a
// tenth of the weight on.
func (m *member) share(now int64) int {
	whole := m.weight * shareUnit
	slow := int64(m.group.SlowStart)
	since := m.since.Load()
	if since == 0 || slow == 0 {
		return whole
	}
	if since == soon {
		m.since.CompareAndSwap(soon, now)
		since = now
	}
	if now-since >= slow {
		m.since.CompareAndSwap(since, 0)
		return whole
	}
	return max(1, whole/10, int(float64(whole)*float64(now-since)/float64(slow)))
}

func (m *member) isFull() bool {
	return m.settings.MaxConns > 0 && m.open.Load() >= int64(m.settings.MaxConns)
}

// enter takes a place for a connection, if there is one.
func (m *member) enter() bool {
	most := int64(m.settings.MaxConns)
	for {
		n := m.open.Load()
		if most > 0 && n >= most {
			return false
		}
		if m.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave gives the place back, perhaps to a client that waits.
func (t *target) leave(l *rondo.Loop) {
	t.open.Add(-1)
	t.pool.serveQueue(l)
}

// worked ends the row of failures.
func (t *target) worked() {
	if t.failures.Load() != 0 {
		t.failures.Store(0)
	}
}

// fail counts a failure, on a loop, and may eject the target.
func (t *target) fail(l *rondo.Loop, err error) {
	now := t.pool.server.time(l)
	r := t.pool.now.Load()
	after, rest := orDefault(r.settings.EjectAfter, DefaultEjectAfter), orDefault(r.settings.EjectTime, DefaultEjectTime)
	if last := t.failed.Swap(now); last > 0 && now-last > int64(rest) {
		t.failures.Store(0)
	}
	if n := t.failures.Add(1); after < 0 || int(n) < after || t.ejected.Swap(true) {
		return
	}
	t.failures.Store(0)
	l.AfterFunc(rest, func() {
		t.since.CompareAndSwap(0, t.pool.server.time(l))
		t.ejected.Store(false)
		t.pool.serveQueue(l)
	})
	t.ejections.Add(1)
	t.pool.server.log().Warn("proxy: a target failed too often, others get its clients for a while",
		"pool", t.pool.name, "target", t.key, "for", rest, "error", err)
}
