package main

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/redis"
)

// closingTime is how long a client has to close its side after it has been sent
// everything.
const closingTime = 250 * time.Millisecond

type redisCommand struct {
	Addr               []string `help:"Address to serve: tcp://host:port, or host:port, or unix:///path. May be given several times." default:"tcp://127.0.0.1:6379" placeholder:"ADDR" sep:"none"`
	Loops              int      `help:"Number of event loops. 0: one for each processor. Commands run on the first loop only, so that they need no locks. Further loops take over reading, parsing and writing, which pays if cores are free and many clients send large requests." default:"1" placeholder:"N"`
	Maxclients         int      `help:"Number of clients served at once. More get an error and are closed. The number is lowered if the limit of open files (ulimit -n) is too low for it." default:"10000" placeholder:"N"`
	Timeout            duration `help:"Close clients, other than subscribers, that are silent for this long, as in 300 or 5m. 0: never." default:"0" placeholder:"TIME"`
	Requirepass        string   `help:"Password that clients must give with AUTH." placeholder:"PASSWORD"`
	ProtectedMode      bool     `help:"Refuse clients from other hosts while no password is set." default:"true" negatable:""`
	EnableDebugCommand string   `help:"Who may use DEBUG: ${enum}; local means clients on this host." enum:"no,local,yes" default:"no" placeholder:"WHO"`
	Maxmemory          size     `help:"Memory for keys, values and clients, as in 512MiB. Above it, commands that add data are refused, or keys are evicted: CONFIG SET maxmemory-policy. 0: no limit." default:"0" placeholder:"SIZE"`
	tlsFlags
	engineFlags
}

var debugAccess = map[string]redis.DebugAccess{"no": redis.DebugNo, "local": redis.DebugLocal, "yes": redis.DebugYes}

// Help is the end of "rondo redis --help".
func (*redisCommand) Help() string {
	return `All keys are in memory only: they are lost when the program ends.

Examples:

  rondo redis
      Serve 127.0.0.1:6379. Try: redis-cli ping

  rondo redis --addr :7000 --requirepass secret --timeout 5m
      Serve on all interfaces, port 7000, with a password; close clients that are silent for five minutes.

  rondo redis --addr unix:///tmp/redis.sock
      Serve a unix socket. Try: redis-cli -s /tmp/redis.sock ping

  rondo redis --tls-cert redis.crt --tls-key redis.key --tls-ca ca.crt
      Serve TLS to clients with a certificate of that authority. Try: redis-cli --tls --cert client.crt --key client.key --cacert ca.crt ping

  rondo redis --backend std
      The same server on Go's net package, with a goroutine per connection.

SIGINT and SIGTERM stop it: it sends clients their pending output, then closes them.`
}

// raiseOpenFiles asks the system for enough descriptors for so many clients. If
// the system refuses, the server logs that and makes do with fewer.
func raiseOpenFiles(clients int, log *slog.Logger) {
	files := uint64(max(clients, 0)) + redis.ReservedFiles
	if err := sys.RaiseOpenFiles(files); err != nil {
		log.Warn(fmt.Sprintf("Server can't set maximum open files to %d because of OS error: %v.", files, err))
	}
}

// Run serves until a signal.
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
	if err := r.showAdmin("rondo redis", engine, log, redisSection(server, r.AdminToken != "")); err != nil {
		engine.Close()
		return err
	}
	defer r.admin.close()
	signals := notify()
	addrs, err := listen(endpoints, log, func(network, address string, already net.Listener) (listening, error) {
		if already != nil {
			return server.AttachListener(already, rondo.SocketOptions{}, filtersFor(network, filters)...)
		}
		return server.Listen(network, address, rondo.SocketOptions{}, filtersFor(network, filters)...)
	})
	if err != nil {
		server.Close()
		engine.Close()
		return err
	}
	log.Info("rondo redis is ready", "addresses", addrs, "backend", engine.BackendName(), "loops", loopsOf(engine))
	defer engine.Close()
	go returnMemory(log, func() uint64 { return engine.Stats().Turns })
	return r.serve(engine, log, signals, server.Shutdown)
}
