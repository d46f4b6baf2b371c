package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/proxy"
)

type proxyCommand struct {
	Config         string   `help:"Take listeners, pools and targets from this file (TOML; docs/proxy.md explains it), in place of flags. SIGHUP reads it again." placeholder:"FILE"`
	Check          bool     `help:"Only check the flags, or the file of --config with the files that it names, and print what is wrong."`
	Listen         []string `help:"Address at which clients connect: tcp://host:port, or host:port, or unix:///path. May be given several times." placeholder:"ADDR" sep:"none"`
	To             []string `help:"Address of a target, a server to which clients are passed on, in the same forms. May be given several times." placeholder:"ADDR" sep:"none"`
	Choose         string   `help:"How the target of a client is chosen: ${enum}. sourcehash chooses the same one for the same client address." enum:"roundrobin,leastconns,sourcehash" default:"roundrobin" placeholder:"HOW"`
	ConnectTimeout duration `help:"How long a target may take to accept a connection." default:"5s" placeholder:"TIME"`
	Tries          int      `help:"How many targets are tried for a client. Then it is reset." default:"3" placeholder:"N"`
	EjectAfter     int      `help:"After how many failures in a row a target gets no clients for a while, if others can serve them. 0: never." default:"3" placeholder:"N"`
	EjectTime      duration `help:"How long that is." default:"10s" placeholder:"TIME"`
	Health         string   `help:"How targets are checked: ${enum}. tcp: it accepts a connection; tls: and completes a handshake; http: and answers a GET request with status 200 to 399; redis: and answers PING." enum:"off,tcp,tls,http,redis" default:"off" placeholder:"HOW"`
	HealthInterval duration `help:"Time between two checks of a target." default:"2s" placeholder:"TIME"`
	HealthTimeout  duration `help:"How long a check may take." default:"2s" placeholder:"TIME"`
	HealthPath     string   `help:"With --health http: the path of the request." default:"/" placeholder:"PATH"`
	HealthHost     string   `help:"With --health http: the Host field. Default: the target's address." placeholder:"HOST"`
	Rise           int      `help:"How many checks in a row must succeed until a target that is down gets clients." default:"2" placeholder:"N"`
	Fall           int      `help:"How many checks in a row must fail until a target is down." default:"3" placeholder:"N"`
	TargetConns    int      `help:"Number of connections to a target at once. 0: no limit." default:"0" placeholder:"N"`
	Idle           duration `help:"Reset connections in which no byte has moved for this long, as in 300 or 5m. 0: never." default:"0" placeholder:"TIME"`
	Limit          duration `help:"Reset connections after this long. 0: never." default:"0" placeholder:"TIME"`
	Maxclients     int      `help:"Number of clients served at once. More are closed." default:"10000" placeholder:"N"`
	MaxPerAddress  int      `help:"Number of clients of one address, or of one IPv6 network of 64 bits, served at once. More are closed. 0: no limit." default:"0" placeholder:"N"`
	Queue          int      `help:"Number of clients that may wait when no target can serve them, because of --target-conns or since all are down. 0: such clients are reset at once." default:"0" placeholder:"N"`
	QueueTime      duration `help:"How long a client may wait." default:"5s" placeholder:"TIME"`
	SlowStart      duration `help:"How long a target that comes back gets fewer clients than others, a tenth at first. 0: no time." default:"0" placeholder:"TIME"`
	Resolve        duration `help:"How often names of targets are looked up. Each address of a name is a target. 0: only at the start." default:"30s" placeholder:"TIME"`
	AcceptRate     int      `help:"Number of clients accepted in a second. More are closed. 0: no limit." default:"0" placeholder:"N"`
	AccessLog      string   `help:"A line for each connection that has ended, on standard output: ${enum}." enum:"text,json,off" default:"text" placeholder:"FORMAT"`
	Stats          string   `help:"Address at which to show the counters, as JSON over HTTP: tcp://host:port, or host:port, or unix:///path." placeholder:"ADDR"`
	TLSALPN        []string `name:"tls-alpn" help:"With --tls-cert: a protocol to agree on with clients, as in h2 or http/1.1. May be given several times." placeholder:"NAME" sep:"none"`
	ToTLS          bool     `name:"to-tls" help:"Connect to the targets with TLS."`
	ToTLSCA        string   `name:"to-tls-ca" help:"With --to-tls: certificates of the authorities that may sign the targets' certificates (PEM). Default: the system's." placeholder:"FILE"`
	ToTLSName      string   `name:"to-tls-name" help:"With --to-tls: the name that the targets' certificates must be for. Default: the host of the address." placeholder:"NAME"`
	ToTLSInsecure  bool     `name:"to-tls-insecure" help:"With --to-tls: do not verify the targets' certificates."`
	AcceptProxy    []string `help:"Expect a PROXY header, version 1 or 2, from each client; its address is then the client's. Only peers of this network may connect, as in 10.0.0.0/8; any: all peers. May be given several times." placeholder:"NETWORK" sep:"none"`
	SendProxy      int      `help:"Send the targets a PROXY header of version 1 or 2, with the client's address. 0: none." default:"0" placeholder:"VERSION"`
	Loops          int      `help:"Number of event loops; 0: one for each processor." default:"0" placeholder:"N"`
	upgradeFlags
	stayFlag
	tlsFlags
	loopFlags

	serving proxy.Config // applied last
}

// Help is the end of "rondo proxy --help".
func (*proxyCommand) Help() string {
	return `Clients of --listen are passed on to the targets of --to. A target that does not accept costs a client nothing but time: the next one is tried, and gets what the client has sent.

Examples:

  rondo proxy --listen :8080 --to 127.0.0.1:9000
      Pass clients of port 8080 on to a server of this host.

  rondo proxy --listen :6379 --to 10.0.0.7:6379 --to 10.0.0.8:6379 --choose leastconns
      Share clients among two servers; the one with fewer gets the next.

  rondo proxy --listen :80 --to 10.0.0.7:80 --to 10.0.0.8:80 --health http --health-path /up
      Ask both servers every two seconds whether they can serve; one that cannot gets no clients.

  rondo proxy --listen :443 --tls-cert site.crt --tls-key site.key --tls-alpn http/1.1 --to 127.0.0.1:8080 --send-proxy 2
      End the clients' TLS, and tell the server their addresses.

  rondo proxy --listen tcp://:80 --listen unix:///run/front.sock --to unix:///run/app.sock --idle 10m
      Two front doors, and a server on a unix socket; connections end after ten silent minutes.

  rondo proxy --config proxy.toml --check && rondo proxy --config proxy.toml
      Serve what a file says, such as several pools, weights, or routes by the names of TLS servers:

      [[listener]]
      address = "tcp://:443"
      [[listener.route]]
      names = ["a.example", "*.b.example"]
      pool = "web"

      [[pool]]
      name = "web"
      health = { check = "tcp" }
      [[pool.target]]
      address = "10.0.0.7:443"
      weight = 2

  rondo proxy --config proxy.toml --control /run/proxy.sock --upgrade
      Replace the process that was started with that --control: its connections go on here.

  rondo proxy --listen :8080 --to 127.0.0.1:9000 --stats 127.0.0.1:9100
      Show the counters. Try: curl http://127.0.0.1:9100/

A connection is reset if one of its sides fails, so that nobody takes a part of a stream for the whole. The log says who ended it, and why.

SIGINT and SIGTERM stop it: it stops listening, waits for the connections to end for as long as --shutdown-timeout, and resets the rest. SIGUSR2 starts the program anew, which takes over listeners and connections: nobody notices. SIGHUP reads the file of --config and those of certificates again: what stays keeps its connections, and a file with a mistake changes nothing.`
}

var chooses = map[string]proxy.Balance{
	"roundrobin": proxy.RoundRobin,
	"leastconns": proxy.LeastConns,
	"sourcehash": proxy.SourceHash,
}

var checkKinds = map[string]proxy.CheckKind{
	"off":   proxy.NoCheck,
	"tcp":   proxy.CheckTCP,
	"tls":   proxy.CheckTLS,
	"http":  proxy.CheckHTTP,
	"redis": proxy.CheckRedis,
}

// check returns an error for flags without meaning. set are those that were given.
func (p *proxyCommand) check(set []string) error {
	has := func(flag string) bool { return slices.Contains(set, flag) }
	switch {
	case p.Config != "":
		return p.checkWithFile(set)
	case len(p.Listen) == 0:
		return usagef("there is no address to listen on: give one with --listen, or a file with --config")
	case p.Health != "http" && (p.HealthPath != "/" || p.HealthHost != ""):
		return usagef("--health-path and --health-host are for requests: give --health http too")
	case p.Health == "off" && (has("health-interval") || has("health-timeout") || has("rise") || has("fall")):
		return usagef("--health-interval, --health-timeout, --rise and --fall are for checks: give --health tcp, or another kind, too")
	case has("queue-time") && p.Queue == 0:
		return usagef("--queue-time is for clients that wait: give --queue too")
	case has("eject-time") && p.EjectAfter == 0:
		return usagef("--eject-time is for targets that fail, and --eject-after is 0")
	case len(p.To) == 0:
		return usagef("there is no target: give one with --to")
	}
	return cmp.Or(
		p.checkLimits(),
		p.checkTLS(has("tls-auth-clients")),
		checkNumber("--send-proxy", p.SendProxy, 0, 2),
		checkNumber("--tries", p.Tries, 1, math.MaxInt32),
		checkNumber("--rise", p.Rise, 1, math.MaxInt32),
		checkNumber("--fall", p.Fall, 1, math.MaxInt32),
		checkNumber("--eject-after", p.EjectAfter, 0, math.MaxInt32),
		checkNumber("--queue", p.Queue, 0, math.MaxInt32),
		checkNumber("--target-conns", p.TargetConns, 0, math.MaxInt32),
	)
}

// checkLimits checks the flags that hold for all listeners.
func (p *proxyCommand) checkLimits() error {
	if p.Stats != "" {
		if _, _, err := parseStream("--stats", p.Stats); err != nil {
			return err
		}
	}
	return cmp.Or(
		p.upgradeFlags.check(),
		p.adminFlags.check(),
		checkNumber("--maxclients", p.Maxclients, 1, math.MaxInt32),
		checkNumber("--max-per-address", p.MaxPerAddress, 0, math.MaxInt32),
		checkNumber("--accept-rate", p.AcceptRate, 0, math.MaxInt32),
	)
}

// withFile are the flags of this command that --config may have beside it. The others say what
// the file says.
var withFile = []string{"config", "check", "maxclients", "max-per-address", "accept-rate", "access-log", "stats", "loops",
	"control", "upgrade", "upgrade-timeout", "stay-timeout"}

// checkWithFile returns an error if the command line has flags that the file replaces.
func (p *proxyCommand) checkWithFile(set []string) error {
	own := reflect.TypeFor[loopFlags]()
	for _, flag := range set {
		isLoops := slices.ContainsFunc(reflect.VisibleFields(own), func(f reflect.StructField) bool {
			return strings.EqualFold(f.Name, strings.ReplaceAll(flag, "-", ""))
		})
		if !isLoops && !slices.Contains(withFile, flag) {
			return usagef("--%s and --config exclude each other: write it into the file", flag)
		}
	}
	return p.checkLimits()
}

// given returns the flags on the command line.
func given(ctx *kong.Context) (set []string) {
	for _, part := range ctx.Path {
		if part.Flag != nil {
			set = append(set, part.Flag.Name)
		}
	}
	return set
}

// parseStream splits the address of a flag.
func parseStream(flag, addr string) (network, address string, err error) {
	network, address, err = rondo.ParseAddress(addr)
	if err == nil && strings.HasPrefix(network, "u") && network != "unix" {
		err = fmt.Errorf("address %q: the network is %s: want tcp, tcp4, tcp6 or unix", addr, network)
	}
	if err != nil {
		return "", "", usagef("%s: %w", flag, err)
	}
	return network, address, nil
}

// config is the configuration of the flags, or the file.
func (p *proxyCommand) config() (c proxy.Config, err error) {
	if p.Config != "" {
		c, err = readProxyFile(p.Config)
	} else {
		c, err = p.flagsConfig()
	}
	keepTickets(&p.serving, &c)
	return c, err
}

// flagsConfig is the configuration of the flags.
func (p *proxyCommand) flagsConfig() (c proxy.Config, err error) {
	accept, err := p.acceptProxy()
	if err != nil {
		return c, err
	}
	secure, err := p.serverTLS()
	if err != nil {
		return c, err
	}
	for _, addr := range p.Listen {
		l := proxy.Listener{TLS: secure, AcceptProxy: accept}
		if l.Network, l.Address, err = parseStream("--listen", addr); err != nil {
			return c, err
		}
		c.Listeners = append(c.Listeners, l)
	}
	pool := proxy.Pool{
		Name:           "default",
		Balance:        chooses[p.Choose],
		ConnectTimeout: time.Duration(p.ConnectTimeout),
		Tries:          p.Tries,
		EjectAfter:     p.EjectAfter,
		EjectTime:      time.Duration(p.EjectTime),
		Check: proxy.Check{
			Kind:     checkKinds[p.Health],
			Interval: time.Duration(p.HealthInterval),
			Timeout:  time.Duration(p.HealthTimeout),
			Path:     p.HealthPath,
			Host:     p.HealthHost,
			Rise:     p.Rise,
			Fall:     p.Fall,
		},
		SendProxy: p.SendProxy,
		Resolve:   time.Duration(p.Resolve),
		Idle:      time.Duration(p.Idle),
		Limit:     time.Duration(p.Limit),
	}
	pool.SlowStart, pool.Queue, pool.QueueTime = time.Duration(p.SlowStart), p.Queue, time.Duration(p.QueueTime)
	if pool.EjectAfter == 0 {
		pool.EjectAfter = -1
	}
	if pool.Resolve == 0 {
		pool.Resolve = -1
	}
	if pool.TLS, err = p.clientTLS(); err != nil {
		return c, err
	}
	for _, addr := range p.To {
		t := proxy.Target{MaxConns: p.TargetConns}
		if t.Network, t.Address, err = parseStream("--to", addr); err != nil {
			return c, err
		}
		pool.Targets = append(pool.Targets, t)
	}
	c.Pools = []proxy.Pool{pool}
	if err := c.Check(); err != nil {
		return c, usageError{inWordsOf(flagWords, err)}
	}
	return c, nil
}

// Run serves until a signal.
func (p *proxyCommand) Run(ctx *kong.Context) error {
	if err := p.check(given(ctx)); err != nil {
		return err
	}
	config, err := p.config()
	if err != nil {
		return err
	}
	if p.Check {
		fmt.Printf("there are no mistakes: %d listeners, %d pools\n", len(config.Listeners), len(config.Pools))
		return nil
	}
	p.replaces = p.isHeir()
	engine, log, _, err := p.engine(p.Loops)
	if err != nil {
		return err
	}
	engine.MaxConns, engine.MaxConnsPerAddr, engine.AcceptRate = p.Maxclients, p.MaxPerAddress, p.AcceptRate
	logFailures(engine, log)
	inherited := passedSockets(log)
	server := &proxy.Server{Engine: engine, Logger: log, Inherited: inherited.take}
	defer p.logAccess(server, log)()
	signals, hangups, upgrades := notify(), notifyHangup(), notifyUpgrade()
	// What can fail comes before begin: after it, connections may be here that have no other process.
	others := 64 + p.adminFiles() // descriptors, beside two for each client
	if p.Stats != "" {
		others += sideFiles
	}
	tooLow := sys.RaiseOpenFiles(2*uint64(p.Maxclients) + uint64(others))
	control, err := p.control(server, log)
	if err != nil {
		return err
	}
	defer control.close()
	showing, err := p.showStats(server, log)
	if err != nil {
		return err
	}
	defer showing.close()
	if err := p.showAdmin("rondo proxy", engine, log, proxySection(server)); err != nil {
		return err
	}
	defer p.admin.close()
	if err := p.begin(server, config); err != nil {
		p.stayer(server).giveUp(engine, log, signals)
		return notServing(err)
	}
	if tooLow != nil {
		log.Warn("the limit of open files is too low for --maxclients: each client needs two", "maxclients", p.Maxclients, "error", tooLow)
	}
	p.serving = config
	go showing.later()
	go p.admin.later()
	inherited.tellOthers()
	p.takePidfile(p.Pidfile, log)
	control.wait(upgrades)
	go p.reload(server, hangups, log)
	return p.serve(server, log, signals, control, showing)
}

func (p *proxyCommand) stayer(s *proxy.Server) *stayer {
	return &stayer{time.Duration(p.StayTimeout), s.Shutdown}
}

// begin makes the server serve config: anew, or in place of another process.
func (p *proxyCommand) begin(s *proxy.Server, config proxy.Config) error {
	old, err := p.old()
	if err != nil {
		return err
	}
	if old == nil {
		return s.Apply(config)
	}
	ctx, cancel := p.inTime()
	defer cancel()
	return s.TakeOver(ctx, old, config)
}

// serve serves until a signal comes, or another process has taken over.
func (p *proxyCommand) serve(server *proxy.Server, log *slog.Logger, signals <-chan os.Signal, control *controller, showing *side) error {
	engine := server.Engine
	var addrs []string
	for _, a := range server.Addrs() {
		addrs = append(addrs, a.Network()+"://"+a.String())
	}
	log.Info("rondo proxy is ready", "addresses", addrs, "backend", engine.BackendName(), "loops", loopsOf(engine))
	go returnMemory(log, func() uint64 { return engine.Stats().Turns })
	stopped := make(chan error, 1)
	go func() {
		stopped <- p.loopFlags.serve(engine, log, signals, func(ctx context.Context) error {
			control.close()
			return server.Shutdown(ctx)
		})
	}()
	select {
	case err := <-stopped:
		return err
	case <-control.handed:
	}
	showing.close()
	p.admin.close()
	control.ended(engine, p.stayer(server))
	return nil
}

// notServing explains why a configuration cannot be applied.
func notServing(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "listen" {
		return fmt.Errorf("cannot listen on %s://%s: %w", op.Net, op.Addr, op.Err)
	}
	return err
}

// logAccess sets the access log. flush writes its last lines.
func (p *proxyCommand) logAccess(s *proxy.Server, log *slog.Logger) (flush func()) {
	if p.AccessLog == "off" {
		return func() {}
	}
	lines := newLineWriter(os.Stdout, log)
	if p.AccessLog == "json" {
		s.AccessLog = slog.New(slog.NewJSONHandler(offering{lines}, nil))
	} else {
		s.AccessLog = slog.New(slog.NewTextHandler(offering{lines}, nil))
	}
	return lines.close
}

// offering is a lineWriter for loops, which cannot wait for a slow disk: then lines are lost.
type offering struct{ *lineWriter }

func (o offering) Write(p []byte) (int, error) {
	o.offer(p)
	return len(p), nil
}

// showStats shows the counters of --stats; nil: there are none to show.
func (p *proxyCommand) showStats(s *proxy.Server, log *slog.Logger) (*side, error) {
	if p.Stats == "" {
		return nil, nil
	}
	network, address, err := parseStream("--stats", p.Stats)
	if err != nil {
		return nil, err
	}
	counters := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		out.Encode(struct {
			Proxy  proxy.Stats
			Engine rondo.Stats
		}{s.Stats(), s.Engine.Stats()})
	})
	return p.openSide(network, address, counters, log, sideLog{
		shown: func(address string) { log.Info("the counters are shown", "address", address) },
		never: func(err error) { log.Error("upgrade: the counters are not shown", "error", err) },
	})
}
