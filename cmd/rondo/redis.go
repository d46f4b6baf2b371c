package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/alecthomas/kong"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/internal/upgrade"
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
	User               []string `help:"A user and its rules, as ACL SETUSER takes them: --user 'alice on >secret ~app:* +@read'. May be given several times." placeholder:"USER" sep:"none"`
	Aclfile            string   `help:"File with users, a line each, which ACL LOAD reads anew and ACL SAVE writes. Not together with --user or --requirepass." placeholder:"FILE"`
	ACLPubsubDefault   string   `name:"acl-pubsub-default" help:"Whether new users may use all channels, until a rule says otherwise: ${enum}." enum:"resetchannels,allchannels" default:"resetchannels" placeholder:"RULE"`
	ProtectedMode      bool     `help:"Refuse clients from other hosts while no password is set." default:"true" negatable:""`
	EnableDebugCommand string   `help:"Who may use DEBUG: ${enum}; local means clients on this host." enum:"no,local,yes" default:"no" placeholder:"WHO"`
	Maxmemory          size     `help:"Memory for keys, values and clients, as in 512MiB. Above it, commands that add data are refused, or keys are evicted: CONFIG SET maxmemory-policy. 0: no limit." default:"0" placeholder:"SIZE"`
	LoseKeys           bool     `help:"Let another process take over the listeners, by SIGUSR2 or --upgrade, although the keys are in memory only: it begins without any. For caches."`
	upgradeFlags
	Check bool `help:"Only read the redis.conf, and print what is wrong."`
	tlsFlags
	engineFlags

	Conf []string `arg:"" optional:"" passthrough:"partial" help:"A redis.conf, or - for standard input, and behind it directives as redis-server takes them: --port 7000. Flags stand before it. With -- in place of a file there are only directives." placeholder:"FILE"`

	config    *redis.Config // nil: there is no redis.conf
	users     []redis.User  // of User
	endpoints []endpoint    // of Addr, or of the redis.conf
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

  rondo redis --requirepass secret --user 'app on >app-secret ~app:* +@all -@dangerous'
      The user app may use keys that begin with app:, and no dangerous commands. Try: redis-cli --user app --pass app-secret get app:1

  rondo redis --addr unix:///tmp/redis.sock
      Serve a unix socket. Try: redis-cli -s /tmp/redis.sock ping

  rondo redis --tls-cert redis.crt --tls-key redis.key --tls-ca ca.crt
      Serve TLS to clients with a certificate of that authority. Try: redis-cli --tls --cert client.crt --key client.key --cacert ca.crt ping

  rondo redis redis.conf --port 7000 --maxmemory 64mb
      Serve as a redis.conf says, read as redis-server reads it, but for two directives. docs/redis-conf.md tells what each does here.

  rondo redis --backend uring -- --bind 127.0.0.1 --io-threads 2
      Directives without a file.

  rondo redis --backend std
      The same server on Go's net package, with a goroutine per connection.

SIGINT, SIGTERM and the command SHUTDOWN stop it: it sends clients their pending output, then closes them. SIGUSR2 is refused, since a new process would have no keys; with --lose-keys it starts the program anew, which takes over the listeners.`
}

// raiseOpenFiles asks the system for enough descriptors for so many clients, and others. If
// the system refuses, the server logs that and makes do with fewer.
func raiseOpenFiles(clients, others int, log *slog.Logger) {
	files := uint64(max(clients, 0)+others) + redis.ReservedFiles
	if err := sys.RaiseOpenFiles(files); err != nil {
		log.Warn(fmt.Sprintf("Server can't set maximum open files to %d because of OS error: %v.", files, err))
	}
}

// Run serves until a signal, or SHUTDOWN.
func (r *redisCommand) Run(ctx *kong.Context) error {
	if err := r.read(given(ctx)); err != nil || r.Check {
		return err
	}
	r.replaces = r.isHeir()
	engine, log, level, err := r.engine(r.Loops)
	if err != nil {
		return err
	}
	if r.config != nil {
		if err := r.lockPidfile(log); err != nil {
			return err
		}
		r.tellConf(log)
	}
	engine.Linger = closingTime
	filters, err := r.filters(log)
	if err != nil {
		return err
	}
	if len(filters) > 0 {
		logFailures(engine, log)
	}
	server := r.serverFor(engine, log, level)
	raiseOpenFiles(r.Maxclients, r.adminFiles(), log)
	if err := engine.Start(); err != nil {
		return err
	}
	if err := r.showAdmin("rondo redis", engine, log, redisSection(server, r.AdminToken != "")); err != nil {
		engine.Close()
		return err
	}
	defer r.admin.close()
	up := r.upgradable(server, engine, log)
	addrs, err := up.listen(r.endpoints, func(network, address string, already net.Listener) (net.Addr, error) {
		return up.Listen(network, address, already, func(ln net.Listener) (*rondo.Listener, error) {
			options, filters := r.optionsFor(network, address, filters)
			if ln != nil {
				return server.AttachListener(ln, options, filters...)
			}
			return server.Listen(network, address, options, filters...)
		})
	})
	if err != nil {
		return err
	}
	log.Info("rondo redis is ready", "addresses", addrs, "backend", engine.BackendName(), "loops", loopsOf(engine))
	defer engine.Close()
	go returnMemory(log, func() uint64 { return engine.Stats().Turns })
	return up.serve()
}

// readUsers reads the users of --user.
func (r *redisCommand) readUsers() error {
	if len(r.User) > 0 && r.Aclfile != "" {
		return usagef("--user and --aclfile are both given: want users either as flags or in a file")
	}
	if r.Requirepass != "" && r.Aclfile != "" {
		return usagef("--requirepass and --aclfile are both given: the file decides which password the default user has, as in the line 'user default on >secret ~* &* +@all'")
	}
	for _, line := range r.User {
		u, err := redis.ParseUser(line)
		if err != nil {
			return usagef("--user is %q: want a name and rules", line)
		}
		r.users = append(r.users, u)
	}
	return nil
}

// read reads the redis.conf, or the addresses of the flags.
func (r *redisCommand) read(set []string) error {
	if len(r.Conf) > 0 {
		if err := r.readConf(set); err != nil {
			return err
		}
		if r.Check {
			fmt.Printf("there are no mistakes: %d addresses\n", len(r.endpoints))
		}
		return r.check()
	}
	if r.Check {
		return usagef("--check is for a redis.conf: give its name behind the flags")
	}
	var err error
	if r.endpoints, err = parseAddresses(r.Addr, streams); err != nil {
		return err
	}
	return r.check()
}

// check returns an error for flags that do not go together.
func (r *redisCommand) check() error {
	if (r.Control != "" || r.Upgrade) && !r.LoseKeys {
		return usagef("--control and --upgrade let an empty server take the place of this one, whose keys are in memory only: give --lose-keys too if that may be")
	}
	return cmp.Or(r.readUsers(), r.upgradeFlags.check(), checkNumber("--maxclients", r.Maxclients, 1, math.MaxInt))
}

// upgradable returns the server as one whose listeners another process can take over, if the user
// has said that the keys may be lost. Its connections end: what their clients wrote later would
// be lost, too, and they would see other keys than new clients.
func (r *redisCommand) upgradable(s *redis.Server, on *rondo.Engine, log *slog.Logger) *engineServer {
	return &engineServer{Server: &upgrade.Server{Engine: on, Name: "rondo redis", Logger: log},
		flags: &r.upgradeFlags, loops: &r.loopFlags, log: log, shutdown: s.Shutdown, refuses: !r.LoseKeys,
		stayer: stayer{time.Duration(r.ShutdownTimeout), s.Shutdown}}
}
