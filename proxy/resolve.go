package proxy

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

// DefaultResolve is the default of Pool.Resolve.
const DefaultResolve = 30 * time.Second

const (
	// lookUpTime is how long a lookup may take.
	lookUpTime = 5 * time.Second
	// lookUpAgain is how long after a failure the next lookup is made, at the latest.
	lookUpAgain = 5 * time.Second
)

// isName reports whether the target's address has a name that must be looked up.
func (t *Target) isName() bool {
	host := t.host()
	if host == "" {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err != nil
}

// addrs are the addresses of targets with names, by the targets' keys.
type addrs map[string][]string

// lookUp looks up the names of a pool. old has the addresses of those that cannot be looked
// up now. It waits: it must not be called on a loop.
func (s *Server) lookUp(p *Pool, old addrs) (found addrs, failed bool) {
	found = make(addrs)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range p.Targets {
		t := &p.Targets[i]
		if !t.isName() {
			continue
		}
		all.Add(1)
		go func() {
			defer all.Done()
			list, err := s.lookUpOne(t)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				list, failed = old[t.key()], true
				s.log().Warn("proxy: cannot look up the name of a target", "pool", p.Name, "target", t.key(), "addresses", list, "error", err)
			}
			found[t.key()] = list
		}()
	}
	all.Wait()
	return found, failed
}

// lookUpOne looks up one name. If it has addresses of both families, those of IPv4 are
// taken: a host that has both should not be two targets.
func (s *Server) lookUpOne(t *Target) (list []string, err error) {
	defer func() { // the Resolver may be the user's
		if v := recover(); v != nil {
			list, err = nil, &rondo.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime)
	defer cancel()
	var r rondo.Resolver = net.DefaultResolver
	if s.Engine.Resolver != nil {
		r = s.Engine.Resolver
	}
	host, port, _ := net.SplitHostPort(t.Address)
	ips, err := r.LookupNetIP(ctx, "ip"+t.Network[len("tcp"):], host)
	if err != nil {
		return nil, err
	}
	var families [2][]string
	for _, ip := range ips {
		ip = ip.Unmap()
		family := 0
		if ip.Is6() {
			family = 1
		}
		families[family] = append(families[family], net.JoinHostPort(ip.String(), port))
	}
	for _, list := range families {
		if len(list) > 0 {
			slices.Sort(list)
			return slices.Compact(list), nil
		}
	}
	return nil, fmt.Errorf("proxy: %s has no addresses", host)
}

// A resolver looks up the names of a pool again and again, by a timer of one loop.
type resolver struct {
	pool    *pool
	loop    *rondo.Loop
	timer   *rondo.Timer
	running bool
}

// start begins, if the pool has names. It is posted after each Apply; soon is whether a
// lookup of Apply has failed.
func (r *resolver) start(soon bool) {
	if r.running {
		return
	}
	r.running = true
	r.wait(soon)
}

// wait sets the timer, or ends.
func (r *resolver) wait(soon bool) {
	settings := r.pool.now.Load().settings
	every := orDefault(settings.Resolve, DefaultResolve)
	switch {
	case every < 0 && !soon, r.pool.server.ended.Load(), r.pool.retired.Load(), !slices.ContainsFunc(settings.Targets, func(t Target) bool { return t.isName() }):
		r.running = false
		return
	case soon && (every < 0 || every > lookUpAgain):
		every = lookUpAgain
	}
	if r.timer == nil {
		r.timer = r.loop.AfterFunc(every, r.look)
	} else {
		r.timer.Reset(every)
	}
}

// look looks up the names on another goroutine.
func (r *resolver) look() {
	p := r.pool
	p.mu.Lock()
	settings, old := p.now.Load().settings, p.addrs
	p.mu.Unlock()
	go func() {
		found, failed := p.server.lookUp(settings, old)
		r.loop.Post(func() {
			p.found(settings, found)
			r.wait(failed)
		})
	}()
}

// found replaces the addresses of names, unless the settings have changed meanwhile, or the pool
// has gone.
func (p *pool) found(settings *Pool, found addrs) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired.Load() || p.now.Load().settings != settings || maps.EqualFunc(p.addrs, found, slices.Equal) {
		return
	}
	for key, list := range found {
		if old := p.addrs[key]; !slices.Equal(old, list) {
			p.server.log().Info("proxy: the addresses of a target have changed", "pool", p.name, "target", key, "before", old, "now", list)
		}
	}
	p.set(settings, found)
}
