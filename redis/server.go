package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// Version is the version of Redis that the server behaves like, and tells to
// clients that ask.
const Version = "7.0.15"

// DefaultMaxClients is the number of clients served at once if
// Server.MaxClients is 0.
const DefaultMaxClients = 10000

// DebugAccess says who may use the DEBUG command.
type DebugAccess uint8

const (
	DebugNo    DebugAccess = iota // nobody, the default as in Redis
	DebugLocal                    // clients on the loopback interface or a unix socket
	DebugYes                      // everybody
)

// closingTime is the Linger of the Server's own Engine.
const closingTime = 250 * time.Millisecond

// A Server serves clients of Redis. The zero Server is ready for use; its
// fields are read at the first call of Listen, and not to be changed
// afterwards. Its methods may be called from any goroutine but a loop's.
type Server struct {
	// Engine moves the bytes. The keys belong to its first loop. nil: an
	// Engine of one loop, since commands run on one only: further loops take
	// over reading and writing, which pays if there are cores to spare.
	//
	// A connection that the Server closes is first sent all it is owed. Then its
	// client has the Engine's Linger to close its side, so Shutdown takes that
	// long if a client does not. The Linger of the Engine that nil stands for is
	// a quarter of a second.
	Engine *rondo.Engine
	// Password is what clients have to give with AUTH, the parameter
	// requirepass. "": none.
	Password string
	// MaxClients is how many clients are served at once; others are told and
	// closed. 0: DefaultMaxClients. Where the process may not have so many
	// descriptors open, and ReservedFiles beside, it is lowered, which is logged.
	MaxClients int
	// Timeout closes clients that send nothing and are sent nothing for so
	// long, in whole seconds; not those that are subscribed. 0: never.
	Timeout time.Duration
	// MaxMemory is how many bytes keys and values may take before commands
	// that add to them are refused. 0: no limit.
	MaxMemory int64
	// NoProtectedMode lets clients from other hosts in even if there is no
	// Password.
	NoProtectedMode bool
	// Debug says who may use DEBUG.
	Debug DebugAccess
	// Logger is told of what no client hears of. nil: slog.Default().
	Logger *slog.Logger
	// Level is changed by CONFIG SET loglevel. It should be that of Logger.
	// nil: loglevel cannot be set.
	Level *slog.LevelVar

	mu         sync.Mutex
	started    bool
	closed     bool         // by Shutdown or Close
	own        bool         // Engine was made by Listen
	maxUnready int          // how many unready may be
	unready    atomic.Int64 // connections whose filters are not ready
	listeners  []*rondo.Listener
	idle       chan struct{} // once closed is set: closed when the last connection has gone

	// The rest belongs to loop.

	loop       *rondo.Loop
	clock      func() time.Time // of loop
	since      time.Time
	baseMemory int64 // what the program uses without keys
	runID      string
	commands   *commandTable
	config     config
	space      keyspace
	broker     broker
	stats      stats
	clients    clients
	expiry     expiryTimer
	upkeep     upkeep
	args       [][]byte  // of the request that is being read
	current    *client   // whose batch runs
	completed  bool      // that batch has not ended by a panic
	outgoing   []*remote // with output to hand over at the end of the batch
}

// Listen serves clients on an address; see rondo.Engine.Listen. It may be
// called for several. Clients of an address with filters, such as rtls.Server,
// are served when these are ready; MaxClients bounds those that are not yet.
func (s *Server) Listen(network, address string, so rondo.SocketOptions, filters ...rondo.FilterOpenFunc) (*rondo.Listener, error) {
	for i, f := range filters {
		if f == nil {
			return nil, fmt.Errorf("redis: filter %d is nil: want a rondo.FilterOpenFunc", i)
		}
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	open := s.open
	if len(filters) > 0 {
		open = s.filtered(filters)
	}
	ln, err := s.Engine.Listen(network, address, so, open)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ln.Close()
		return nil, &net.OpError{Op: "listen", Net: network, Addr: ln.Addr(), Err: rondo.ErrClosed}
	}
	s.listeners = append(s.listeners, ln)
	port := 0
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		port = a.Port
	}
	s.loop.Post(func() { s.config.listening(network, ln.Addr().String(), port) })
	return ln, nil
}

// start makes the server's state, once.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return rondo.ErrClosed
	}
	if s.started {
		return nil
	}
	if err := s.checkFields(); err != nil {
		return err
	}
	if s.Engine == nil {
		s.Engine = &rondo.Engine{NumLoops: 1, Linger: closingTime, Logger: s.Logger}
		s.own = true
	}
	if err := s.Engine.Start(); err != nil {
		return err
	}
	for s.loop = range s.Engine.Loops() {
		break
	}
	s.clock = s.loop.Now
	s.init()
	if err := s.fitMaxClients(); err != nil {
		return err
	}
	s.maxUnready = s.config.maxClients
	s.started = true
	return s.loop.Post(func() {
		s.since = s.clock()
		s.loop.OnClose(s.clients.engineEnds)
	})
}

// checkFields finds meaningless values.
func (s *Server) checkFields() error {
	switch {
	case s.MaxClients < 0:
		return fmt.Errorf("redis: Server.MaxClients is %d: want 0, for %d, or more", s.MaxClients, DefaultMaxClients)
	case s.Timeout < 0:
		return fmt.Errorf("redis: Server.Timeout is %v: want 0, for never, or more", s.Timeout)
	case s.MaxMemory < 0:
		return fmt.Errorf("redis: Server.MaxMemory is %d: want 0, for no limit, or more", s.MaxMemory)
	case s.Debug > DebugYes:
		return fmt.Errorf("redis: Server.Debug is %d: want DebugNo, DebugLocal or DebugYes", s.Debug)
	}
	return nil
}

// init makes what does not need the engine.
func (s *Server) init() {
	s.config.init(s)
	s.space.init()
	s.broker.init()
	s.stats.init()
	s.clients.init(s)
	s.expiry.server, s.expiry.at = s, never
	s.upkeep.server = s
	s.baseMemory = usedMemory()
	s.commands = newCommandTable(
		connectionCommands(), clientCommands(), serverCommands(), configCommands(),
		tableCommands(), keyCommands(), expiryCommands(), stringCommands(),
		transactionCommands(), pubsubCommands(),
	)
	var id [20]byte
	rand.Read(id[:])
	s.runID = hex.EncodeToString(id[:])
}

func (s *Server) log() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}

// Shutdown stops listening, closes every client as soon as it has been sent
// what it is owed, and waits for that; it logs which clients make it wait. When
// ctx ends first it cuts off those that are left, and returns an error that
// names them and wraps ctx's. An Engine that was given goes on.
func (s *Server) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return errors.New("redis: Server.Shutdown: ctx is nil: want a context, such as context.Background()")
	}
	idle := s.stop(func() {
		s.clients.end((*client).close)
		s.clients.reportLeaving()
	})
	if idle == nil {
		return nil
	}
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = s.unfinished(ctx.Err())
	}
	return errors.Join(err, s.Close())
}

// unfinished is err with the clients that have not taken what they are owed.
func (s *Server) unfinished(err error) error {
	said := make(chan error, 1)
	tell := func() {
		said <- fmt.Errorf("redis: shutdown: %s: %w", cmp.Or(s.clients.owed(), "clients have not closed their connections"), err)
	}
	if s.loop.Post(tell) != nil {
		return err
	}
	return <-said
}

// Close stops listening and cuts off every client. An Engine that was given
// goes on.
func (s *Server) Close() error {
	idle := s.stop(func() {
		s.clients.end(func(c *client) { c.abort(rondo.ErrClosed) })
	})
	if idle == nil {
		return nil
	}
	<-idle
	if s.own {
		return s.Engine.Close()
	}
	return nil
}

// stop stops listening and has end called on the loop, to end every client. The
// channel it returns is closed when they are gone; nil: there was nothing to
// stop.
func (s *Server) stop(end func()) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if !s.started {
		return nil
	}
	for _, ln := range s.listeners {
		ln.Close()
	}
	s.listeners = nil
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	err := s.loop.Post(func() {
		s.clients.stop(idle)
		end()
		s.handOver()
		s.expiry.stop()
		s.upkeep.stop()
		s.clients.checkIdle()
	})
	if err != nil {
		return nil // the engine is closed, and all connections with it
	}
	return idle
}
