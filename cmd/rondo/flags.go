package main

import (
	"cmp"
	"errors"
	"fmt"
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

// engineFlags are what all servers take.
type engineFlags struct {
	Backend         string   `help:"What moves the bytes: epoll (the kernel's event queue, Linux), uring (io_uring, Linux 6.1), kqueue (the event queue of macOS and the BSDs), poll (asks about every connection each time), std (Go's net package, a goroutine per connection); several with commas between are tried in that order." default:"${backend}" placeholder:"NAME"`
	ReceiveBuffers  int      `help:"On uring: how many buffers of 17 KiB a loop's connections share at most to receive short messages into. 0: 256." default:"0" placeholder:"N"`
	Balance         string   `help:"How connections are given to loops: ${enum}." enum:"roundrobin,leastconns,sourcehash,random,reuseport" default:"roundrobin" placeholder:"NAME"`
	Spin            duration `help:"How long a loop that has run out of work looks for more before it sleeps. 50us or so halves latency where a core is free for each loop, and wastes it otherwise." default:"0" placeholder:"TIME"`
	HighWater       size     `help:"Output waiting for a client that stops the reading of its requests." default:"256KiB" placeholder:"SIZE"`
	ShutdownTimeout duration `help:"How long clients have to take what they are owed when a signal stops the program." default:"10s" placeholder:"TIME"`
	LogLevel        string   `help:"Least level of what is logged: ${enum}." enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL"`
}

var balances = map[string]rondo.Balance{
	"roundrobin": rondo.RoundRobin,
	"leastconns": rondo.LeastConns,
	"sourcehash": rondo.SourceHash,
	"random":     rondo.Random,
	"reuseport":  rondo.ReusePort,
}

const (
	// maxLoops is more than any machine has processors.
	maxLoops = 1024
	// maxReceiveBuffers is what io_uring can have.
	maxReceiveBuffers = 1 << 15
)

// check finds what makes no sense. loops is the flag of that name.
func (f *engineFlags) check(loops int) error {
	return cmp.Or(
		checkNumber("--loops", loops, 0, maxLoops),
		checkNumber("--receive-buffers", f.ReceiveBuffers, 0, maxReceiveBuffers),
		checkNumber("--high-water", f.HighWater, 1, rondo.DefaultMaxOutput),
		checkBackend(f.Backend, f.ReceiveBuffers),
	)
}

// checkBackend finds names that are no backend's, and receive buffers that none of the
// backends has.
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

// engine makes an engine, and the logger it uses with that logger's level.
func (f *engineFlags) engine(loops int) (*rondo.Engine, *slog.Logger, *slog.LevelVar, error) {
	if err := f.check(loops); err != nil {
		return nil, nil, nil, err
	}
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	return &rondo.Engine{
		SpareProcessor: loops == 1,
		NumLoops:       loops,
		Backend:        f.Backend,
		ReceiveBuffers: f.ReceiveBuffers,
		Balance:        balances[f.Balance],
		HighWater:      int(f.HighWater),
		LowWater:       int(f.HighWater) / 4,
		Spin:           time.Duration(f.Spin),
		Logger:         log,
	}, log, level, nil
}

// loopsOf is how many loops a running engine has.
func loopsOf(e *rondo.Engine) int { return len(e.Stats().Loops) }

// Networks of addresses.
var (
	streams           = []string{"tcp", "tcp4", "tcp6", "unix"}
	streamsAndPackets = append(slices.Clip(streams), "udp", "udp4", "udp6", "unixgram")
)

// parseAddress splits an address that --addr was given, which must be of one of some
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

// An endpoint is what an address of --addr says.
type endpoint struct{ given, network, address string }

// parseAddresses is parseAddress of several.
func parseAddresses(addrs, networks []string) (endpoints []endpoint, err error) {
	for _, a := range addrs {
		network, address, err := parseAddress(a, networks)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, endpoint{a, network, address})
	}
	return endpoints, nil
}

// listen listens on every endpoint, and returns the addresses as they turned out.
func listen(endpoints []endpoint, on func(network, address string) (listening, error)) ([]string, error) {
	var got []string
	for _, e := range endpoints {
		ln, err := on(e.network, e.address)
		if err != nil {
			return nil, e.notListening(err, len(got) > 0)
		}
		got = append(got, e.network+"://"+ln.Addr().String())
	}
	return got, nil
}

// notListening says why an address cannot be listened on. others tells whether the program
// listens on other ones already.
func (e *endpoint) notListening(err error, others bool) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // the address is named once
	}
	var wrong *net.AddrError
	switch {
	case errors.As(err, &wrong):
		return usagef("--addr %s: %s", e.given, wrong.Err)
	case errors.Is(err, syscall.EADDRINUSE) && e.isTaken():
		return fmt.Errorf("cannot listen on %s: there is a file of that name, which is no socket; remove it, or choose another address with --addr", e.given)
	case errors.Is(err, syscall.EADDRINUSE) && others:
		return fmt.Errorf("cannot listen on %s: another program, or another --addr, has that address; stop that program, or choose another address", e.given)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: another program has that address; stop it, or choose another address with --addr", e.given)
	}
	return fmt.Errorf("cannot listen on %s: %w", e.given, err)
}

// isTaken reports whether the path of a unix socket is that of something else.
func (e *endpoint) isTaken() bool {
	if !strings.HasPrefix(e.network, "unix") {
		return false
	}
	info, err := os.Lstat(e.address)
	return err == nil && info.Mode().Type() != os.ModeSocket
}

// listening is a *rondo.Listener, or like one.
type listening interface{ Addr() net.Addr }

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
		return fmt.Errorf("%q is no size: give bytes, as in 65536 or 64KiB or 1GiB", text)
	}
	*s = size(n * unit)
	return nil
}

// duration is a time, given with a unit, as in 90s or 5m, or in seconds.
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
		return fmt.Errorf("%q is no duration: give seconds, or a unit, as in 90s or 5m", text)
	}
	if v > maxDuration {
		return fmt.Errorf("%q is too long: want %v or less", text, maxDuration)
	}
	*d = duration(v)
	return nil
}
