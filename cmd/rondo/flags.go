package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

// engineFlags are what all servers take.
type engineFlags struct {
	Backend         string        `help:"What moves the bytes: epoll (the kernel's event queue, Linux), uring (io_uring, Linux 6.1), kqueue (the event queue of macOS and the BSDs), poll (asks about every connection each time), std (Go's net package, a goroutine per connection); several with commas between are tried in that order. Default: the platform's best." placeholder:"NAME"`
	ReceiveBuffers  int           `help:"On uring: how many buffers of 17 KiB a loop's connections share at most to receive short messages into. 0: 256." default:"0" placeholder:"N"`
	Balance         string        `help:"How connections are given to loops: ${enum}." enum:"roundrobin,leastconns,sourcehash,random,reuseport" default:"roundrobin"`
	Spin            time.Duration `help:"How long a loop that has run out of work looks for more before it sleeps. 50us or so halves latency where a core is free for each loop, and wastes it otherwise." default:"0" placeholder:"TIME"`
	HighWater       size          `help:"Output waiting for a client that stops the reading of its requests." default:"256KiB" placeholder:"SIZE"`
	ShutdownTimeout duration      `help:"How long clients have to take what they are owed when a signal stops the program." default:"10s" placeholder:"TIME"`
	LogLevel        string        `help:"Least level of what is logged: ${enum}." enum:"debug,info,warn,error" default:"info"`
}

var balances = map[string]rondo.Balance{
	"roundrobin": rondo.RoundRobin,
	"leastconns": rondo.LeastConns,
	"sourcehash": rondo.SourceHash,
	"random":     rondo.Random,
	"reuseport":  rondo.ReusePort,
}

// engine makes an engine, and the logger it uses with that logger's level.
func (f *engineFlags) engine(loops int) (*rondo.Engine, *slog.Logger, *slog.LevelVar, error) {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	highWater := int(min(f.HighWater, math.MaxInt))
	return &rondo.Engine{
		SpareProcessor: loops == 1,
		Loops:          loops,
		Backend:        f.Backend,
		ReceiveBuffers: f.ReceiveBuffers,
		Balance:        balances[f.Balance],
		HighWater:      highWater,
		Spin:           f.Spin,
		LowWater:       highWater / 4,
		Logger:         log,
	}, log, level, nil
}

// listen listens on every address, and returns them as they turned out.
func listen(addrs []string, on func(network, address string) (listening, error)) ([]string, error) {
	var got []string
	for _, a := range addrs {
		network, address, err := rondo.ParseAddress(a)
		if err != nil {
			return nil, fmt.Errorf("--addr: %w", err)
		}
		ln, err := on(network, address)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("cannot listen on %s: another program has that address; stop it, or choose another address with --addr", a)
		case err != nil:
			return nil, fmt.Errorf("cannot listen on %s: %w", a, err)
		}
		got = append(got, network+"://"+ln.Addr().String())
	}
	return got, nil
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
	*d = duration(v)
	return nil
}
