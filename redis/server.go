package redis

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis/acl"
	"github.com/rondo-go/rondo/redis/rdb"
	"github.com/rondo-go/rondo/redis/zset"
)

// Version is the version of Redis that the server imitates and reports to
// clients.
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

// closingTime is the Linger of the Engine that Listen makes if Server.Engine is
// nil.
const closingTime = 250 * time.Millisecond

// A Server serves Redis clients. The zero Server is ready to use. The first
// Listen reads the fields; do not change them afterwards. Call the methods from
// any goroutine except a loop's.
type Server struct {
	// Engine runs the connections. The keys belong to its first loop. Commands
	// run on that loop only; further loops take over reading and writing, which
	// pays if there are spare cores. nil means an Engine with one loop and a
	// Linger of 250 ms.
	//
	// The Server sends all pending replies before it closes a connection. Then
	// the client has the Engine's Linger to close its side. A client that does
	// not makes Shutdown wait that long.
	Engine *rondo.Engine
	// Password is the password of the default user, which clients must give with AUTH: the
	// parameter requirepass. Empty means none.
	Password string
	// Users are the users beside the default one, with what they may do. The default user
	// may be among them.
	Users []User
	// ACLFile is the name of a file with users, which Listen reads, ACL LOAD reads anew and
	// ACL SAVE writes; the parameter aclfile. With it, Users must be empty.
	ACLFile string
	// AllChannels lets new users publish and subscribe to all channels, until a rule says
	// otherwise: acl-pubsub-default allchannels.
	AllChannels bool
	// MaxClients is the number of clients served at once. A client beyond it
	// gets an error reply and is closed. 0 means DefaultMaxClients. If the
	// process may not open MaxClients + ReservedFiles descriptors, Listen
	// lowers the number and logs that.
	MaxClients int
	// Timeout closes clients that neither send nor receive for this long,
	// rounded up to whole seconds. Subscribed clients are exempt. 0 means
	// never.
	Timeout time.Duration
	// MaxMemory is the number of bytes that keys and values may take, with what
	// connections hold. Above it the server refuses commands that need memory,
	// unless maxmemory-policy, set by CONFIG SET, names keys that make room. 0
	// means no limit.
	MaxMemory int64
	// NoProtectedMode admits clients from other hosts even without a Password.
	NoProtectedMode bool
	// Debug says who may use DEBUG.
	Debug DebugAccess
	// Config is what LoadConfig has read. With it, Password, Users, ACLFile, AllChannels,
	// MaxClients, Timeout, MaxMemory, NoProtectedMode and Debug must be zero. The program listens on the
	// addresses that it names. nil means Redis's defaults, and no CONFIG REWRITE.
	Config *Config
	// OnShutdown makes the command SHUTDOWN available. When a client calls that, which
	// needs the permission +shutdown, the Server calls OnShutdown on a goroutine of its own,
	// once. The function ends the Server, by Shutdown, or makes the program do so. The client waits
	// until its connection closes. nil means that clients can't end the Server.
	OnShutdown func()
	// Commands are the program's own commands, in addition to Redis's.
	Commands []Command
	// Seed decides all that is random: the order of SCAN, SRANDMEMBER, which keys
	// are evicted. 0 means a random secret, so that clients cannot choose keys
	// that collide. Use another number only in tests.
	Seed uint64
	// Logger logs events that no reply reports. nil means slog.Default().
	Logger *slog.Logger
	// Level is the level that CONFIG SET loglevel changes. It should be the
	// Logger's. With nil, CONFIG SET loglevel has no effect on the log.
	Level *slog.LevelVar

	mu         sync.Mutex
	started    bool
	closed     bool         // by Shutdown or Close
	own        bool         // Listen made Engine
	maxUnready int          // limit of unready
	unready    atomic.Int64 // connections whose filters are not ready
	listeners  []*rondo.Listener
	idle       chan struct{} // once closed is set: closed after the last connection has gone

	// The rest belongs to loop.

	loop       *rondo.Loop
	clock      func() time.Time // of loop
	since      time.Time
	baseMemory int64 // bytes that the server used before it had keys
	runID      string
	commands   *commandTable
	config     config
	users      *acl.Users
	outside    map[string]string // lines of users, by their names; see noteOutside
	denials    acl.Log
	space      keyspace
	zsets      zset.Sets
	encoder    rdb.Encoder // for DUMP
	broker     broker
	tracking   tracking
	stats      stats
	watch      stopwatch
	slowlog    slowlog
	latency    latency
	monitors   monitors

	permissions  permissions
	clientMemory clientMemory
	pause        pause
	clients      clients
	expiry       expiryTimer
	blocking     blocking
	upkeep       upkeep
	scripts      scripts
	tidying      tidyTimer
	evicting     evicting
	stalls       stalls
	random       *rand.Rand
	args         [][]byte  // arguments of the request being read
	ahead        lookahead // of the client whose batch runs
	current      *client   // the client whose batch runs
	answering    *client   // a blocked client that gets its reply now
	completed    bool      // the batch ended without a panic
	asked        bool      // OnShutdown has been called
	outgoing     []*remote // remotes with output to hand over at the end of the batch
}

// Listen serves clients on an address; see rondo.Engine.Listen. It may be
// called for several addresses. With filters, such as rtls.Server, a client is
// served once its filters are ready; MaxClients also bounds the connections
// whose filters are not.
func (s *Server) Listen(network, address string, so rondo.SocketOptions, filters ...rondo.FilterOpenFunc) (*rondo.Listener, error) {
	open, err := s.opening(filters)
	if err != nil {
		return nil, err
	}
	ln, err := s.Engine.Listen(network, address, so, open)
	if err != nil {
		return nil, err
	}
	if err := s.listening(network, ln); err != nil {
		return nil, err
	}
	return ln, nil
}

// AttachListener is Listen with a socket that listens already; see
// rondo.Engine.AttachListener. On an error it closes the socket.
func (s *Server) AttachListener(already net.Listener, so rondo.SocketOptions, filters ...rondo.FilterOpenFunc) (*rondo.Listener, error) {
	open, err := s.opening(filters)
	if err != nil {
		if already != nil {
			already.Close()
		}
		return nil, err
	}
	ln, err := s.Engine.AttachListener(already, so, open)
	if err != nil {
		return nil, err
	}
	if err := s.listening(ln.Addr().Network(), ln); err != nil {
		return nil, err
	}
	return ln, nil
}

// opening returns the OpenFunc of clients with filters, and sets up the server's state.
func (s *Server) opening(filters []rondo.FilterOpenFunc) (rondo.OpenFunc, error) {
	for i, f := range filters {
		if f == nil {
			return nil, fmt.Errorf("redis: filter %d is nil: want a rondo.FilterOpenFunc", i)
		}
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	if len(filters) > 0 {
		return s.filtered(filters), nil
	}
	return s.open, nil
}

// listening notes a listener. If the server has been closed, it closes the listener.
func (s *Server) listening(network string, ln *rondo.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ln.Close()
		return &net.OpError{Op: "listen", Net: network, Addr: ln.Addr(), Err: rondo.ErrClosed}
	}
	s.listeners = append(s.listeners, ln)
	port := 0
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		port = a.Port
	}
	s.loop.Post(func() { s.config.listening(network, ln.Addr().String(), port) })
	return nil
}

// start sets up the server's state. Only the first call does anything.
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
	engine, own := s.Engine, s.Engine == nil
	if own {
		engine = &rondo.Engine{NumLoops: 1, Linger: closingTime, Logger: s.Logger}
	}
	if err := engine.Start(); err != nil {
		return err
	}
	if err := s.startOn(engine); err != nil {
		if own {
			engine.Close() // Close will not: there is nothing to close
		}
		return err
	}
	s.Engine, s.own, s.started = engine, own, true
	return nil
}

// startOn makes the state on an engine that runs.
func (s *Server) startOn(engine *rondo.Engine) error {
	for s.loop = range engine.Loops() {
		break
	}
	s.clock = s.loop.Now
	s.init()
	if err := s.addCommands(); err != nil {
		return err
	}
	s.initUsers() // anew, with the added commands
	if err := s.defineUsers(); err != nil {
		return err
	}
	if err := s.fitMaxClients(); err != nil {
		return err
	}
	s.maxUnready = s.config.maxClients
	return s.loop.Post(func() {
		s.since = s.clock()
		s.loop.OnClose(s.clients.engineEnds)
	})
}

// checkFields returns an error for a field with a meaningless value.
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
	case s.Config != nil && (s.MaxClients != 0 || s.Timeout != 0 || s.MaxMemory != 0 || s.Password != "" || s.NoProtectedMode || s.Debug != 0 || s.Users != nil || s.ACLFile != "" || s.AllChannels):
		return errors.New("redis: Server.Config has all parameters: want zero for Password, Users, ACLFile, AllChannels, MaxClients, Timeout, MaxMemory, NoProtectedMode and Debug")
	}
	return nil
}

// init sets up the state that does not need the engine.
func (s *Server) init() {
	s.config.init(s)
	s.initRandom()
	s.space.init(s.Seed, int(s.config.databases))
	s.broker.init()
	s.tracking.init(s)
	s.stats.init()
	s.clients.init(s)
	s.expiry.server, s.expiry.at = s, never
	s.blocking.init(s)
	s.upkeep.server = s
	s.tidying.server = s
	s.stalls.server = s
	s.scripts.init(s)
	s.baseMemory = min(heapMemory(), maxBase)
	s.commands = allCommands()
	s.obeyConfig()
	s.initUsers()
}

// allCommands makes a table of Redis's commands.
func allCommands() *commandTable {
	return newCommandTable(
		connectionCommands(), clientCommands(), serverCommands(), configCommands(),
		tableCommands(), slowlogCommands(), latencyCommands(), monitorCommands(), standaloneCommands(),
		keyCommands(), expiryCommands(), stringCommands(), numberCommands(), bitCommands(), hyperloglogCommands(),
		objectCommands(),
		zsetCommands(), zsetRangeCommands(), zsetPopCommands(), zsetAlgebraCommands(), geoCommands(),
		hashCommands(),
		setTypeCommands(),
		listCommands(), moveCommands(),
		streamCommands(), streamReadCommands(), streamGroupCommands(), streamPendingCommands(), streamInfoCommands(),
		sortCommands(), dumpCommands(),
		transactionCommands(), pubsubCommands(), aclCommands(), scriptCommands(), functionCommands(),
	)
}

// initRandom makes the source of random choices and the run's name.
func (s *Server) initRandom() {
	s.random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	if s.Seed != 0 {
		s.random = rand.New(rand.NewPCG(s.Seed, 1))
	}
	var id [20]byte
	for i := range id {
		id[i] = byte(s.random.Uint32())
	}
	s.runID = hex.EncodeToString(id[:])
}

func (s *Server) log() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}

// Shutdown stops listening, sends every client its pending replies, closes it,
// and waits until all connections have gone. It logs the clients that make it
// wait. If ctx ends first, Shutdown cuts off the remaining clients and returns
// an error that names them and wraps ctx's. An Engine passed in the Engine
// field keeps running.
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

// unfinished adds to err the clients that have not read their pending replies.
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

// Close stops listening and cuts off every client. An Engine passed in the
// Engine field keeps running.
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

// stop stops listening and calls end on the loop; end must end every client.
// The returned channel is closed when all clients have gone. It is nil if there
// was nothing to stop.
func (s *Server) stop(end func()) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.closed = true
		return nil
	}
	for l := range s.Engine.Loops() {
		if l.Calling() {
			panic(fmt.Sprintf("redis: Server.Shutdown or Close was called on loop %d, for which it would wait for ever: call it from another goroutine", l.ID()))
		}
	}
	s.closed = true
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
		s.tidying.stop()
		s.stalls.stop()
		s.pause.end(s)
		s.scripts.end()
		s.clients.checkIdle()
	})
	if err != nil {
		return nil // the engine is closed, and all connections with it
	}
	return idle
}
