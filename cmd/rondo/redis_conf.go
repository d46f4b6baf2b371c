package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis"
)

// asDirective names the directives that say what flags of rondo redis say without a redis.conf.
var asDirective = map[string]string{
	"addr": "bind, port, tls-port or unixsocket", "loops": "io-threads", "maxclients": "maxclients", "timeout": "timeout",
	"requirepass": "requirepass", "protected-mode": "protected-mode", "enable-debug-command": "enable-debug-command",
	"maxmemory": "maxmemory", "pidfile": "pidfile", "log-level": "loglevel", "tls-cert": "tls-cert-file",
	"tls-key": "tls-key-file", "tls-ca": "tls-ca-cert-file", "tls-auth-clients": "tls-auth-clients",
	"user": "user", "aclfile": "aclfile", "acl-pubsub-default": "acl-pubsub-default",
}

// readConf reads a redis.conf, and what follows its name. The command's flags get the values.
func (r *redisCommand) readConf(set []string) error {
	for _, flag := range set {
		if d := asDirective[flag]; d != "" {
			return usagef("--%s goes without a redis.conf: give the directive %s, in the file or behind its name", flag, d)
		}
	}
	args := r.Conf
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	c, err := redis.LoadConfig(args, os.Stdin)
	if err != nil {
		return err
	}
	r.config = c
	r.Loops, r.Maxclients = number(c, "io-threads"), number(c, "maxclients")
	r.LogLevel = confLevels[c.Get("loglevel")]
	if err := r.enterDir(c); err != nil {
		return err
	}
	if err := r.openLog(c.Get("logfile")); err != nil {
		return err
	}
	if c.Get("tls-port") != "0" {
		if err := r.readTLS(c); err != nil {
			return err
		}
	}
	r.endpoints, err = confEndpoints(c)
	return err
}

// confLevels are Redis's levels of the log as slog's.
var confLevels = map[string]string{"debug": "debug", "verbose": "debug+2", "notice": "info", "warning": "warn"}

// number is a parameter that is one.
func number(c *redis.Config, name string) int {
	n, _ := strconv.ParseInt(c.Get(name), 10, 64)
	return int(min(n, math.MaxInt))
}

// enterDir makes the names of files relative to the directive dir.
func (r *redisCommand) enterDir(c *redis.Config) error {
	if !c.Given("dir") {
		return nil
	}
	var err error
	if startDir, err = os.Getwd(); err != nil {
		return err
	}
	return os.Chdir(c.Get("dir"))
}

// startDir is the directory in which the program was started, if it has left that.
var startDir string

// openLog makes the log go to a file.
func (r *redisCommand) openLog(name string) error {
	if name == "" {
		return nil
	}
	f, err := openAppending(name)
	if err != nil {
		return fmt.Errorf("can't open the log file: %w", err)
	}
	f.Close()
	r.logTo = &logFile{name}
	return nil
}

// A logFile appends to a file, which may be renamed at any time.
type logFile struct{ name string }

func openAppending(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
}

// Write appends a line. If that fails standard error gets it.
func (l *logFile) Write(p []byte) (int, error) {
	f, err := openAppending(l.name)
	if err != nil {
		return os.Stderr.Write(p)
	}
	defer f.Close()
	return f.Write(p)
}

// tlsVersions are the values of tls-protocols. The server refuses others.
var tlsVersions = map[string]uint16{"tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13}

func (r *redisCommand) readTLS(c *redis.Config) error {
	r.TLSCert, r.TLSKey = c.Get("tls-cert-file"), c.Get("tls-key-file")
	r.TLSCA, r.TLSAuthClients = c.Get("tls-ca-cert-file"), c.Get("tls-auth-clients")
	switch {
	case r.TLSCert == "":
		return errors.New("tls-port needs a certificate: give it with tls-cert-file")
	case r.TLSCA == "" && r.TLSAuthClients != "no":
		return fmt.Errorf("tls-auth-clients %s needs the clients' authorities: give them with tls-ca-cert-file, or set tls-auth-clients no", r.TLSAuthClients)
	}
	for _, name := range strings.Fields(c.Get("tls-protocols")) {
		v := tlsVersions[strings.ToLower(name)]
		if r.tlsMin == 0 || v < r.tlsMin {
			r.tlsMin = v
		}
		r.tlsMax = max(v, r.tlsMax)
	}
	return nil
}

// confEndpoints are the addresses of a redis.conf.
func confEndpoints(c *redis.Config) (all []endpoint, err error) {
	keepAlive := time.Duration(min(number(c, "tcp-keepalive"), math.MaxInt32)) * time.Second
	if keepAlive == 0 {
		keepAlive = -1 // no probes
	}
	for _, name := range []string{"port", "tls-port"} {
		port := c.Get(name)
		for _, host := range strings.Fields(c.Get("bind")) {
			e, ok := bindTo(host, port)
			if port == "0" || !ok {
				continue
			}
			e.plain, e.from = name == "port", name+" or bind"
			e.options.KeepAlive = keepAlive
			all = append(all, e)
		}
	}
	if path := c.Get("unixsocket"); path != "" {
		mode, err := strconv.ParseUint(c.Get("unixsocketperm"), 8, 32)
		if err != nil {
			return nil, err
		}
		all = append(all, endpoint{given: "unix://" + path, network: "unix", address: path, plain: true, from: "unixsocket",
			options: rondo.SocketOptions{UnixMode: fs.FileMode(mode)}})
	}
	if len(all) == 0 {
		return nil, errors.New("there is no address to listen on: give port, tls-port or unixsocket, and bind")
	}
	return all, nil
}

// bindTo is an address of the directive bind. ok is false for one that may be missing, and is.
func bindTo(host, port string) (e endpoint, ok bool) {
	host, optional := strings.CutPrefix(host, "-")
	e.network = "tcp4"
	switch {
	case host == "*":
		host = "0.0.0.0"
	case host == "::*":
		e.network, host = "tcp6", "::"
	case strings.Contains(host, ":"):
		e.network = "tcp6"
	case net.ParseIP(host) == nil:
		e.network = "tcp"
	}
	e.address = net.JoinHostPort(host, port)
	e.given = e.network + "://" + e.address
	if optional {
		ln, err := net.Listen(e.network, net.JoinHostPort(host, "0"))
		if err != nil {
			return e, false
		}
		ln.Close()
	}
	return e, true
}

// lockPidfile takes the pidfile. As in Redis the server starts without one that it cannot write.
func (r *redisCommand) lockPidfile(log *slog.Logger) error {
	path := r.config.Get("pidfile")
	if path == "" {
		return nil
	}
	err := error(nil)
	if !r.replaces {
		err = pid.lock(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		log.Warn("the pidfile cannot be written", "error", err)
	case err != nil:
		return err
	default:
		r.Pidfile = path
	}
	return nil
}

// tellConf logs which directives have no effect, once.
func (r *redisCommand) tellConf(log *slog.Logger) {
	if !r.config.Given("save") {
		log.Warn("all keys are in memory only: there is no save \"\" in the configuration, and nothing is saved")
	}
	if names := r.config.Ignored(); len(names) > 0 {
		log.Info("directives of the configuration have no effect: see docs/redis-conf.md", "directives", names)
	}
}

// serverFor makes the server of flags, or of a redis.conf.
func (r *redisCommand) serverFor(engine *rondo.Engine, log *slog.Logger, level *slog.LevelVar) *redis.Server {
	r.asked = make(chan struct{})
	onShutdown := func() { close(r.asked) }
	if r.config != nil {
		return &redis.Server{Engine: engine, Config: r.config, OnShutdown: onShutdown, Logger: log, Level: level}
	}
	return &redis.Server{
		Engine:          engine,
		Password:        r.Requirepass,
		Users:           r.users,
		ACLFile:         r.Aclfile,
		AllChannels:     r.ACLPubsubDefault == "allchannels",
		MaxClients:      r.Maxclients,
		Timeout:         time.Duration(r.Timeout),
		MaxMemory:       int64(r.Maxmemory),
		NoProtectedMode: !r.ProtectedMode,
		Debug:           debugAccess[r.EnableDebugCommand],
		OnShutdown:      onShutdown,
		Logger:          log,
		Level:           level,
	}
}

// optionsFor returns the options and the filters of the listener at an address.
func (r *redisCommand) optionsFor(network, address string, filters []rondo.FilterOpenFunc) (rondo.SocketOptions, []rondo.FilterOpenFunc) {
	i := slices.IndexFunc(r.endpoints, func(e endpoint) bool { return e.network == network && e.address == address })
	if r.config == nil || i < 0 {
		return rondo.SocketOptions{}, filtersFor(network, filters)
	}
	if r.endpoints[i].plain {
		filters = nil
	}
	return r.endpoints[i].options, filters
}
