package main

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/redis"
)

// closingTime is how long a client that was sent everything has to close its side.
const closingTime = 250 * time.Millisecond

type redisCommand struct {
	Addr               []string `help:"Address to serve: tcp://host:port, or host:port, or unix:///path. May be given several times." default:"tcp://127.0.0.1:6379" placeholder:"ADDR" sep:"none"`
	Loops              int      `help:"Number of event loops; 0: one for each processor. Commands run on the first one only, so that they need no locks; further ones take over reading, parsing and writing, which pays where cores are free and many clients send large requests." default:"1" placeholder:"N"`
	Maxclients         int      `help:"Clients served at once; more are told so and closed. It is lowered if the program may not have as many descriptors open (ulimit -n)." default:"10000" placeholder:"N"`
	Timeout            duration `help:"Close clients that are silent for so long, subscribers excepted, as in 300 or 5m. 0: never." default:"0" placeholder:"TIME"`
	Requirepass        string   `help:"Password that clients must give with AUTH." placeholder:"PASSWORD"`
	ProtectedMode      bool     `help:"Refuse clients of other hosts while there is no password." default:"true" negatable:""`
	EnableDebugCommand string   `help:"Who may use DEBUG: ${enum}; local is clients of this host." enum:"no,local,yes" default:"no" placeholder:"WHO"`
	Maxmemory          size     `help:"Bytes that keys and values may take, as in 512MiB; commands that add more are refused. 0: no limit." default:"0" placeholder:"SIZE"`
	tlsFlags
	engineFlags
}

var debugAccess = map[string]redis.DebugAccess{"no": redis.DebugNo, "local": redis.DebugLocal, "yes": redis.DebugYes}

// Help is the end of "rondo redis --help".
func (*redisCommand) Help() string {
	return `All keys are in memory and gone when the program ends.

Examples:

  rondo redis
      Serve 127.0.0.1:6379. Try: redis-cli ping

  rondo redis --addr :7000 --requirepass secret --timeout 5m
      Serve every interface on port 7000, with a password; close clients that are silent for five minutes.

  rondo redis --addr unix:///tmp/redis.sock
      Serve a unix socket. Try: redis-cli -s /tmp/redis.sock ping

  rondo redis --tls-cert redis.crt --tls-key redis.key --tls-ca ca.crt
      Serve TLS to clients with a certificate of that authority. Try: redis-cli --tls --cert client.crt --key client.key --cacert ca.crt ping

  rondo redis --backend std
      The same server on Go's net package, with a goroutine per connection.

SIGINT and SIGTERM stop it: clients are sent what they are owed, and closed.`
}

// raiseOpenFiles asks the system for as many descriptors as so many clients need.
// The server makes do with what there is, and says so.
func raiseOpenFiles(clients int, log *slog.Logger) {
	files := uint64(max(clients, 0)) + redis.ReservedFiles
	if err := sys.RaiseOpenFiles(files); err != nil {
		log.Warn(fmt.Sprintf("Server can't set maximum open files to %d because of OS error: %v.", files, err))
	}
}

// Run serves until a signal comes.
func (r *redisCommand) Run() error {
	endpoints, err := parseAddresses(r.Addr, streams)
	if err != nil {
		return err
	}
	if err := checkNumber("--maxclients", r.Maxclients, 1, math.MaxInt); err != nil {
		return err
	}
	engine, log, level, err := r.engine(r.Loops)
	if err != nil {
		return err
	}
	engine.Linger = closingTime
	filters, err := r.filters(log)
	if err != nil {
		return err
	}
	if len(filters) > 0 {
		logFailures(engine, log)
	}
	server := &redis.Server{
		Engine:          engine,
		Password:        r.Requirepass,
		MaxClients:      r.Maxclients,
		Timeout:         time.Duration(r.Timeout),
		MaxMemory:       int64(r.Maxmemory),
		NoProtectedMode: !r.ProtectedMode,
		Debug:           debugAccess[r.EnableDebugCommand],
		Logger:          log,
		Level:           level,
	}
	raiseOpenFiles(r.Maxclients, log)
	if err := engine.Start(); err != nil {
		return err
	}
	signals := notify()
	addrs, err := listen(endpoints, func(network, address string) (listening, error) {
		return server.Listen(network, address, rondo.SocketOptions{}, filtersFor(network, filters)...)
	})
	if err != nil {
		server.Close()
		engine.Close()
		return err
	}
	log.Info("rondo redis is ready", "addresses", addrs, "backend", engine.BackendName(), "loops", loopsOf(engine))
	defer engine.Close()
	go returnMemory(func() uint64 { return engine.Stats().Turns })
	return wait(signals, log, time.Duration(r.ShutdownTimeout), server.Shutdown)
}
