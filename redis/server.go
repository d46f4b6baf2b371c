package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
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
	DebugLocal DebugAccess = iota // clients on the loopback interface or a unix socket
	DebugNo                       // nobody, the default of Redis
	DebugYes                      // everybody
)

// A Server serves clients of Redis. The zero Server is ready for use; its
// fields are read at the first call of Listen, and not to be changed
// afterwards. Its methods may be called from any goroutine but a loop's.
type Server struct {
	// Engine moves the bytes. The keys belong to its first loop. nil: an
	// Engine of one loop, since commands run on one only: further loops take
	// over reading and writing, which pays if there are cores to spare.
	Engine *rondo.Engine
	// Password is what clients have to give with AUTH, the parameter
	// requirepass. "": none.
	Password string
	// MaxClients is how many clients are served at once; others are told and
	// closed. 0: DefaultMaxClients.
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

	mu        sync.Mutex
	started   bool
	closed    bool         // by Shutdown or Close
	own       bool         // Engine was made by Listen
	unready   atomic.Int64 // connections whose filters are not ready
	listeners []*rondo.Listener
	idle      chan struct{} // once closed is set: closed when the last connection has gone

	// The rest belongs to loop.

	loop       *rondo.Loop
	clock      func() time.Time // of loop
	highWater  int              // output that stops a client's requests, as of Engine
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
	outgoing   []*remote // with output to hand over at the end of the batch
}

// Listen serves clients on an address; see rondo.Engine.Listen. It may be
// called for several. Clients of an address with filters, such as rtls.Server,
// are served when these are ready; MaxClients bounds those that are not yet.
func (s *Server) Listen(network, address string, so rondo.Socket, filters ...rondo.FilterOpener) (*rondo.Listener, error) {
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
	if s.Engine == nil {
		s.Engine = &rondo.Engine{Loops: 1, Logger: s.Logger}
		s.own = true
	}
	if err := s.Engine.Start(); err != nil {
		return err
	}
	for s.loop = range s.Engine.All() {
		break
	}
	if s.highWater = s.Engine.HighWater; s.highWater == 0 {
		s.highWater = rondo.DefaultHighWater
	}
	s.clock = s.loop.Now
	s.init()
	s.started = true
	return s.loop.Post(func() { s.since = s.clock() })
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
// what it is owed, and waits for that. When ctx ends first it cuts off who is
// left, and returns ctx's error. An Engine that was given goes on.
func (s *Server) Shutdown(ctx context.Context) error {
	idle := s.stop((*client).close)
	if idle == nil {
		return nil
	}
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, s.Close())
}

// Close stops listening and cuts off every client. An Engine that was given
// goes on.
func (s *Server) Close() error {
	idle := s.stop(func(c *client) { c.abort(rondo.ErrClosed) })
	if idle == nil {
		return nil
	}
	<-idle
	if s.own {
		return s.Engine.Close()
	}
	return nil
}

// stop stops listening and has end called for every client. The channel it
// returns is closed when they are gone; nil: there was nothing to stop.
func (s *Server) stop(end func(*client)) <-chan struct{} {
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
		s.clients.end(end, idle)
		s.handOver()
		s.expiry.stop()
		s.upkeep.stop()
	})
	if err != nil {
		return nil // the engine is closed, and all connections with it
	}
	return idle
}
