package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/upgrade"
)

// A Server is a proxy. Set its fields before the first Apply, and do not change them
// afterwards. Any goroutine may call its methods, except the loops'.
type Server struct {
	// Engine runs the connections. Its fields MaxConns, MaxConnsPerAddr and AcceptRate bound
	// the clients of all Listeners. nil: Apply makes one.
	Engine *rondo.Engine
	// Logger gets what happens to targets. nil: the Engine's, or slog.Default().
	Logger *slog.Logger
	// AccessLog gets a line for each connection when it has ended, at level info. Its Handler
	// runs on the loops and must not wait, as for a slow disk. nil: there is no such log.
	AccessLog *slog.Logger
	// Inherited returns a socket that listens at a Listener's address already, as one that the
	// service manager has passed, or nil: then Apply makes one. Apply calls it for each
	// Listener that it opens, and closes the socket if it fails. nil: there are no such
	// sockets.
	Inherited func(network, address string) net.Listener

	began     time.Time // a loop's
	mu        sync.Mutex
	started   bool
	closed    bool
	ended     atomic.Bool // closed, for the loops
	loops     []*rondo.Loop
	listeners []*listener
	pools     []*pool
	now       atomic.Pointer[current] // listeners and pools, for the loops
	old       upgrade.Old
	from      *upgrade.Taking // during TakeOver: passes the listeners of the first Apply

	unserved atomic.Int64  // clients without a target
	leaves   atomic.Bool   // Shutdown was called
	settled  chan struct{} // has an element when unserved becomes 0 then
}

// current is the configuration in the eyes of the loops, which cannot wait for Server.mu.
type current struct {
	listeners []*listener
	pools     []*pool
}

// time returns the server's time on a loop, in nanoseconds. It is the same on all loops, and
// more than 0.
func (s *Server) time(l *rondo.Loop) int64 { return int64(l.Now().Sub(s.began)) + 1 }

// log returns the logger.
func (s *Server) log() *slog.Logger {
	switch {
	case s.Logger != nil:
		return s.Logger
	case s.Engine.Logger != nil:
		return s.Engine.Logger
	}
	return slog.Default()
}

// Apply makes c the configuration. The first call starts the Server. Later ones change it:
// listeners and targets that both configurations have keep their sockets, connections and
// counts; other listeners are opened and closed. Connections go on as they were begun, also
// those to targets that c lacks. If Apply returns an error, nothing has changed.
//
// A Listener is the same if its Network and Address are; a Pool, if its Name is; and a
// Target, if its Pool, Network and Address are.
func (s *Server) Apply(c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	c = c.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("proxy: apply: %w", rondo.ErrClosed)
	case s.old.IsBusy():
		return fmt.Errorf("proxy: apply: %w", upgrade.ErrHanding)
	}
	if err := s.start(); err != nil {
		return err
	}
	next, found, failed := s.build(c.Pools)
	listeners, err := s.listen(c.Listeners, next)
	if err != nil {
		return err
	}
	for i, p := range next {
		p.apply(&c.Pools[i], found[i], failed[i])
	}
	for _, p := range s.pools {
		if !slices.Contains(next, p) {
			p.retire()
		}
	}
	for i, l := range listeners {
		l.rules.Store(newRules(&c.Listeners[i], next))
	}
	for _, l := range s.listeners {
		if !slices.Contains(listeners, l) {
			l.close()
		}
	}
	s.listeners, s.pools = listeners, next
	s.now.Store(&current{listeners, next})
	return nil
}

// start starts the Engine.
func (s *Server) start() error {
	if s.started {
		return nil
	}
	if s.Engine == nil {
		s.Engine = new(rondo.Engine)
	}
	if err := s.Engine.Start(); err != nil {
		return err
	}
	s.loops = slices.Collect(s.Engine.Loops())
	s.settled = make(chan struct{}, 1)
	now := make(chan time.Time, 1)
	if err := s.loops[0].Post(func() { now <- s.loops[0].Now() }); err != nil {
		return fmt.Errorf("proxy: apply: engine: %w", err)
	}
	s.began = <-now
	s.started = true
	return nil
}

// build returns the pools of a configuration, with the addresses of their names, and whether
// some of these could not be looked up. Pools that exist are not changed yet.
func (s *Server) build(settings []Pool) (next []*pool, found []addrs, failed []bool) {
	found, failed = make([]addrs, len(settings)), make([]bool, len(settings))
	var all sync.WaitGroup
	for i := range settings {
		p := poolNamed(s.pools, settings[i].Name)
		if p == nil {
			p = &pool{server: s, name: settings[i].Name}
		}
		next = append(next, p)
		all.Add(1)
		go func() {
			defer all.Done()
			p.mu.Lock()
			old := p.addrs
			p.mu.Unlock()
			found[i], failed[i] = s.lookUp(&settings[i], old)
		}()
	}
	all.Wait()
	for i, p := range next {
		if p.now.Load() == nil {
			p.now.Store(p.roster(&settings[i], found[i], len(s.loops)))
		}
	}
	return next, found, failed
}

// poolNamed returns the pool of a name, or nil.
func poolNamed(pools []*pool, name string) *pool {
	for _, p := range pools {
		if p.name == name {
			return p
		}
	}
	return nil
}

// listen returns a listener for each of the settings: one that exists, or a new one. After an
// error there is no new one.
func (s *Server) listen(settings []Listener, pools []*pool) (all []*listener, err error) {
	var opened []*listener
	for i := range settings {
		set := &settings[i]
		l := s.listening(set, all)
		if l == nil {
			l = &listener{server: s, settings: *set}
			l.rules.Store(newRules(set, pools))
			if err = l.listen(); err != nil {
				for _, l := range opened {
					l.close()
				}
				return nil, err
			}
			opened = append(opened, l)
		}
		all = append(all, l)
	}
	return all, nil
}

// listening returns the listener that exists for settings and is not taken; nil: there is
// none.
func (s *Server) listening(set *Listener, taken []*listener) *listener {
	for _, l := range s.listeners {
		if l.settings.key() == set.key() && !slices.Contains(taken, l) {
			return l
		}
	}
	return nil
}

// Addrs returns the addresses of the listeners, in the order of the Config, with the ports
// that the system chose.
func (s *Server) Addrs() (addrs []net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		addrs = append(addrs, l.socket.Addr())
	}
	return addrs
}

// Close stops listening and checking. Connections go on: Engine.Shutdown waits for their ends, and
// Engine.Close ends them. Apply fails from now on. Stats still counts.
func (s *Server) Close() error {
	s.stop()
	s.ended.Store(true)
	return nil
}

// Shutdown is Close, and waits for the connections to end. Clients that have come are served as
// before, also those that wait in a queue, whose TLS begins, or whose target is dialed. When each
// of them has a target, or has ended, Shutdown calls Engine.Shutdown. If ctx ends first, it
// resets all connections and returns ctx's error.
//
// Engine.Shutdown alone resets the clients that have no target yet, since nothing can be dialed
// any more.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	if s.Engine == nil {
		return nil
	}
	s.settle(ctx)
	s.ended.Store(true)
	return s.Engine.Shutdown(ctx)
}

// stop closes the Server, when HandOver is not under way. Targets are still checked.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old.Await(&s.mu)
	if s.closed {
		return
	}
	s.closed = true
	for _, l := range s.listeners {
		l.close()
	}
}

// settle waits until each client has a target or has ended, or ctx ends.
func (s *Server) settle(ctx context.Context) {
	s.leaves.Store(true)
	for _, l := range s.loops {
		done := make(chan struct{}) // closed behind clients that are on their way from the listener's loop
		if l.Post(func() { close(done) }) == nil {
			<-done
		}
	}
	for s.unserved.Load() > 0 {
		select {
		case <-s.settled:
			s.tellSettled() // another call of Shutdown may wait, too
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) tellSettled() {
	select {
	case s.settled <- struct{}{}:
	default:
	}
}

// served is called when a client has got a target, or has ended.
func (s *Server) served() {
	if s.unserved.Add(-1) == 0 && s.leaves.Load() {
		s.tellSettled()
	}
}
