package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// engineFlags are the flags of servers that answer requests.
type engineFlags struct {
	HighWater size `help:"Bytes of output waiting for a client at which the server stops reading its requests." default:"256KiB" placeholder:"SIZE"`
	loopFlags
}

// engine is loopFlags.engine.
func (f *engineFlags) engine(loops int) (*rondo.Engine, *slog.Logger, *slog.LevelVar, error) {
	if err := f.check(loops); err != nil {
		return nil, nil, nil, err
	}
	e, log, level, err := f.loopFlags.engine(loops)
	if err == nil {
		e.HighWater, e.LowWater = int(f.HighWater), int(f.HighWater)/4
	}
	return e, log, level, err
}

func (f *engineFlags) check(loops int) error {
	return cmp.Or(
		f.loopFlags.check(loops),
		checkNumber("--high-water", f.HighWater, 1, rondo.DefaultMaxOutput),
	)
}

// loopFlags are the flags of all servers.
type loopFlags struct {
	Backend         string   `help:"Backend for I/O: epoll (the kernel's event queue, Linux), uring (io_uring, Linux 6.1), kqueue (the event queue of macOS and the BSDs), poll (asks about every connection each time), std (Go's net package, a goroutine per connection). Several names, separated by commas, are tried in order." default:"${backend}" placeholder:"NAME"`
	ReceiveBuffers  int      `help:"On uring: maximum number of 17 KiB buffers that a loop's connections share to receive short messages. 0: 256." default:"0" placeholder:"N"`
	MaxBuffers      size     `help:"Memory that the clients' unread input and unsent output may take together, as in 256MiB. Beyond it those that hold most for longest are cut off, and new clients refused, until a quarter is free. 0: no limit." default:"0" placeholder:"SIZE"`
	Balance         string   `help:"How connections are distributed among loops: ${enum}." enum:"roundrobin,leastconns,sourcehash,random,reuseport" default:"roundrobin" placeholder:"NAME"`
	Spin            duration `help:"How long an idle loop looks for work before it sleeps. About 50us halves the latency if each loop has a free core, and wastes CPU time otherwise." default:"0" placeholder:"TIME"`
	SlowCallback    duration `help:"Log callbacks that keep a loop from its other clients for longer than this, with the line of code. 0: none." default:"100ms" placeholder:"TIME"`
	ShutdownTimeout duration `help:"How long clients have to read their pending output when a signal stops the program." default:"10s" placeholder:"TIME"`
	LogLevel        string   `help:"Lowest level to log: ${enum}." enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL"`
	LogFormat       string   `help:"Format of the log on standard error: ${enum}, with an object in each line." enum:"text,json" default:"text" placeholder:"FORMAT"`
	Pidfile         string   `help:"Write the number of this process into this file when it serves, and remove the file at the end. The file is locked meanwhile: a second server with it is refused." placeholder:"FILE"`

	adminFlags

	replaces bool          // another process, which has the pidfile until then
	logTo    io.Writer     // nil: standard error
	asked    chan struct{} // closed when a client has called SHUTDOWN; nil: none can
}

var balances = map[string]rondo.Balance{
	"roundrobin": rondo.RoundRobin,
	"leastconns": rondo.LeastConns,
	"sourcehash": rondo.SourceHash,
	"random":     rondo.Random,
	"reuseport":  rondo.ReusePort,
}

const (
	// maxLoops is more than the number of processors of any machine.
	maxLoops = 1024
	// maxReceiveBuffers is the limit of io_uring.
	maxReceiveBuffers = 1 << 15
)

// check returns an error for a flag with a meaningless value. loops is the
// value of --loops.
func (f *loopFlags) check(loops int) error {
	return cmp.Or(
		checkNumber("--loops", loops, 0, maxLoops),
		checkNumber("--receive-buffers", f.ReceiveBuffers, 0, maxReceiveBuffers),
		checkNumber("--max-buffers", f.MaxBuffers, 0, math.MaxInt),
		checkBackend(f.Backend, f.ReceiveBuffers),
		f.adminFlags.check(),
	)
}

// checkBackend returns an error for an unknown backend, and for receive buffers
// that none of the backends has.
func checkBackend(names string, receiveBuffers int) error {
	candidates, err := pick.Choose(names, pick.Options{})
	if err != nil {
		return usagef("--backend: %w", err)
	}
	if receiveBuffers > 0 && !slices.ContainsFunc(candidates, func(c pick.Candidate) bool { return c.Buffers }) {
		return usagef("--receive-buffers is %d, and backend %s has none: leave the flag out, or choose --backend uring", receiveBuffers, names)
	}
	return nil
}

// engine makes an engine, its logger, and the logger's level.
func (f *loopFlags) engine(loops int) (*rondo.Engine, *slog.Logger, *slog.LevelVar, error) {
	if err := f.check(loops); err != nil {
		return nil, nil, nil, err
	}
	if f.Pidfile != "" && !f.replaces {
		if err := pid.lock(f.Pidfile); err != nil {
			return nil, nil, nil, err
		}
	}
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, nil, nil, err
	}
	if f.logTo == nil {
		f.logTo = os.Stderr
	}
	log := newLogger(f.logTo, f.LogFormat, level)
	slog.SetDefault(log) // for package log, and packages without a Logger
	return &rondo.Engine{
		SpareProcessor: loops == 1,
		NumLoops:       loops,
		Backend:        f.Backend,
		ReceiveBuffers: f.ReceiveBuffers,
		MaxBufferBytes: int(f.MaxBuffers),
		Balance:        balances[f.Balance],
		Spin:           time.Duration(f.Spin),
		Logger:         log,
	}, log, level, nil
}

// loopsOf returns the number of loops of a running engine.
func loopsOf(e *rondo.Engine) int { return len(e.Stats().Loops) }

// Networks of --addr.
var (
	streams           = []string{"tcp", "tcp4", "tcp6", "unix"}
	streamsAndPackets = append(slices.Clip(streams), "udp", "udp4", "udp6", "unixgram")
)

// parseAddress splits an address of --addr. Its network must be one of
// networks.
func parseAddress(addr string, networks []string) (network, address string, err error) {
	last := len(networks) - 1
	if network, _, ok := strings.Cut(addr, "://"); ok && !slices.Contains(networks, network) {
		return "", "", usagef("--addr %s: the network is %s: want %s or %s", addr, network, strings.Join(networks[:last], ", "), networks[last])
	}
	network, address, err = rondo.ParseAddress(addr)
	if err != nil {
		return "", "", usagef("--addr: %w", err)
	}
	return network, address, nil
}

// An endpoint is a parsed address of --addr, or of a redis.conf.
type endpoint struct {
	given, network, address string

	// The rest is for a redis.conf.

	from    string // the directives; empty: --addr
	plain   bool   // without TLS
	options rondo.SocketOptions
}

// parseAddresses is parseAddress for several addresses.
func parseAddresses(addrs, networks []string) (endpoints []endpoint, err error) {
	for _, a := range addrs {
		network, address, err := parseAddress(a, networks)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, endpoint{given: a, network: network, address: address})
	}
	return endpoints, nil
}

// listen listens on every endpoint, and returns the actual addresses. If the service manager has
// passed a socket that listens at one already, on gets that as well. Endpoints that are late come
// behind the others.
func listen(endpoints []endpoint, log *slog.Logger, late func(endpoint) bool, on func(network, address string, already net.Listener) (net.Addr, error)) ([]string, error) {
	got := make([]string, len(endpoints))
	inherited := passedSockets(log)
	defer inherited.tellOthers()
	var order []int
	for i := range endpoints {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch a, b := late(endpoints[i]), late(endpoints[j]); {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	})
	for n, i := range order {
		e := &endpoints[i]
		addr, err := on(e.network, e.address, inherited.take(e.network, e.address))
		if err != nil {
			return nil, e.notListening(err, n > 0)
		}
		got[i] = e.network + "://" + addr.String()
	}
	return got, nil
}

// notListening explains why the program cannot listen on an address. others reports whether
// it listens on other addresses already.
func (e *endpoint) notListening(err error, others bool) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // so that the text names the address once
	}
	var wrong *net.AddrError
	from := cmp.Or(e.from, "--addr")
	switch {
	case errors.As(err, &wrong):
		return usagef("%s %s: %s", from, e.given, wrong.Err)
	case errors.Is(err, syscall.EADDRINUSE) && e.isTaken():
		return fmt.Errorf("cannot listen on %s: there is a file of that name, which is no socket; remove it, or choose another address with %s", e.given, from)
	case errors.Is(err, syscall.EADDRINUSE) && others:
		return fmt.Errorf("cannot listen on %s: another program, or another %s, has that address; stop that program, or choose another address", e.given, from)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: another program has that address; stop it, or choose another address with %s", e.given, from)
	}
	return fmt.Errorf("cannot listen on %s: %w", e.given, err)
}

// isTaken reports whether something other than a socket has the path of a unix socket.
func (e *endpoint) isTaken() bool {
	if !strings.HasPrefix(e.network, "unix") {
		return false
	}
	info, err := os.Lstat(e.address)
	return err == nil && info.Mode().Type() != os.ModeSocket
}

// size is a number of bytes, given as 65536, 64KiB, 64kb or 64k.
type size int64

var sizeUnits = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
}

// UnmarshalText parses a size.
func (s *size) UnmarshalText(text []byte) error {
	t := strings.ToLower(string(text))
	digits := strings.TrimRight(t, "abcdefghijklmnopqrstuvwxyz")
	unit, ok := sizeUnits[t[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size: want bytes, as in 65536 or 64KiB or 1GiB", text)
	}
	*s = size(n * unit)
	return nil
}

// duration is a duration, given with a unit, as in 90s or 5m, or in seconds.
type duration time.Duration

// maxDuration is 68 years: longer ones overflow when they are added.
const maxDuration = math.MaxInt32 * time.Second

// UnmarshalText parses a duration.
func (d *duration) UnmarshalText(text []byte) error {
	t := string(text)
	if n, err := strconv.ParseInt(t, 10, 32); err == nil {
		t = strconv.FormatInt(n, 10) + "s"
	}
	v, err := time.ParseDuration(t)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration: want seconds, or a unit, as in 90s or 5m", text)
	}
	if v > maxDuration {
		return fmt.Errorf("%q is too long: want %v or less", text, maxDuration)
	}
	*d = duration(v)
	return nil
}
