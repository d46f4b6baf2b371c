package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/load"
	"github.com/rondo-go/rondo/rtls"
)

type benchCommand struct {
	Echo  benchEchoCommand  `cmd:"" help:"Measure an echo server." set:"payload=of messages"`
	HTTP  benchHTTPCommand  `cmd:"" help:"Measure an HTTP server." set:"payload=of the bodies of --post"`
	Redis benchRedisCommand `cmd:"" help:"Measure a Redis server." set:"payload=of values"`
}

// benchFlags are the flags of all loads.
type benchFlags struct {
	Conns    int      `help:"Number of connections. All are open before the first request." default:"50" short:"c" placeholder:"N"`
	Size     size     `help:"Size ${payload}, as in 64 or 4KiB." default:"64" placeholder:"SIZE"`
	Pipeline int      `help:"Number of requests that each connection keeps in flight. Requests that may go at once share one write." default:"1" short:"P" placeholder:"N"`
	Duration duration `help:"How long to measure, as in 10s or 2m." default:"10s" placeholder:"TIME"`
	Count    int64    `help:"Measure this many requests instead, for any time. 0: measure for --duration." short:"n" default:"0" placeholder:"N"`
	Warmup   duration `help:"How long the load runs before it is measured." default:"1s" placeholder:"TIME"`
	Rate     float64  `help:"Requests per second over all connections, due at even intervals, whether the server keeps up or not (open loop). A latency counts from the time the request was due, so it includes any wait for a slow server. 0: as many as the server takes; a reply makes room for the next request (closed loop)." default:"0" placeholder:"N"`
	Spin     bool     `help:"With --rate above 1000: keep a core busy, so that requests leave within microseconds of their due time. Otherwise they may leave a millisecond late, which counts as latency." default:"true" negatable:""`
	Timeout  duration `help:"Give up when the server sends nothing for this long while replies are due." default:"10s" placeholder:"TIME"`
	Loops    int      `help:"Number of event loops that generate the load. More than one pays if cores are free and the server takes more load than one loop can generate." default:"1" placeholder:"N"`
	Backend  string   `help:"Backend for I/O: epoll, uring, kqueue, poll or std." default:"${backend}" placeholder:"NAME"`
	tlsClientFlags
	JSON bool `help:"Print the results as JSON, with times in microseconds, and no progress unless standard error is a terminal."`
}

const benchHelp = "Every byte of the replies is verified. " + benchEnds

const benchEnds = `A wrong byte, or a lost connection, ends the program with exit code 1. Ctrl-C ends it early: it prints the measurements so far.

Progress goes to standard error once a second, results go to standard output. Latencies are those of requests sent (with --rate: due) after the warm-up; a latency ends when the reply is received.`

// rondo bench allocates memory for so many at the start.
const (
	// maxConns is how many descriptors Linux lets a process have open.
	maxConns    = 1 << 20
	maxPipeline = 1 << 20
)

// bench generates loads, and prints their results.
type bench struct {
	command  string // of rondo that would serve it: "echo"
	addr     string // as given
	flags    *benchFlags
	size     int
	keyspace int // for redis
	zipf     float64
	network  string
	address  string
	tls      *tls.Config // nil: no TLS
	filters  []rondo.FilterOpenFunc
	ctx      context.Context // ends at a signal
	results  []benchResult
}

// newBench checks the flags that all loads share. The caller must call stop at
// the end.
func newBench(command, addr string, f *benchFlags) (b *bench, stop func(), err error) {
	network, address, err := parseAddress(addr, streams)
	if err != nil {
		return nil, nil, err
	}
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if network == "unix" || err != nil {
		host = ""
	} else if host == "" {
		host = "localhost"
		address = net.JoinHostPort(host, port)
	}
	config, err := f.config(host)
	if err != nil {
		return nil, nil, err
	}
	var filters []rondo.FilterOpenFunc
	if config != nil {
		filters = append(filters, rtls.Client(config))
	}
	ctx, stop := benchContext()
	return &bench{command: command, addr: addr, flags: f, size: int(f.Size), network: network, address: address, tls: config, filters: filters, ctx: ctx}, stop, nil
}

// check returns an error for a flag with a meaningless value.
func (f *benchFlags) check() error {
	err := cmp.Or(
		checkNumber("--conns", f.Conns, 1, maxConns),
		checkNumber("--size", f.Size, 1, math.MaxInt32),
		checkNumber("--pipeline", f.Pipeline, 1, maxPipeline),
		checkNumber("--loops", f.Loops, 1, maxLoops),
		checkNumber("--count", f.Count, 0, math.MaxInt64),
		checkBackend(f.Backend, 0),
	)
	switch {
	case err != nil:
		return err
	case f.Rate != 0 && !(f.Rate >= load.MinRate && f.Rate <= load.MaxRate):
		return usagef("--rate is %v: want 0, for as many requests as the server takes, or %v to %v", f.Rate, load.MinRate, int64(load.MaxRate))
	case f.Count == 0 && f.Duration == 0:
		return usagef("--duration and --count are both 0, so there is nothing to measure: set one of them")
	case f.Timeout == 0:
		return usagef("--timeout is 0, so every reply would be late: want more")
	}
	return nil
}

// benchContext returns a context that ends at a signal. A second signal ends
// the program.
func benchContext() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := notify()
	go func() {
		select {
		case <-signals:
			cancel()
			<-signals
			os.Exit(1)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// run generates one load. more is false if it was interrupted.
func (b *bench) run(w load.Workload) (more bool, err error) {
	f := b.flags
	if len(b.results) == 0 {
		if err := b.checkTLS(); err != nil {
			return false, err
		}
	}
	loops := min(f.Loops, f.Conns)
	engine := &rondo.Engine{SpareProcessor: loops == 1, NumLoops: loops, Backend: f.Backend}
	progress := newProgress(os.Stderr, f.JSON, w.Name, f.Conns)
	report, err := load.Run(b.ctx, engine, load.Config{
		Network:  b.network,
		Address:  b.address,
		Filters:  b.filters,
		Workload: w,
		Conns:    f.Conns,
		Pipeline: f.Pipeline,
		Rate:     f.Rate,
		Spin:     f.Spin,
		Warmup:   time.Duration(f.Warmup),
		Count:    f.Count,
		Duration: time.Duration(f.Duration),
		Timeout:  time.Duration(f.Timeout),
		Progress: progress.show,
	})
	progress.end()
	if err != nil {
		return false, b.explain(err)
	}
	result := b.result(w.Name, engine.BackendName(), report)
	b.results = append(b.results, result)
	if !f.JSON {
		var text bytes.Buffer
		result.print(&text)
		if _, err := os.Stdout.Write(text.Bytes()); err != nil {
			return false, err
		}
	}
	return !report.Interrupted, nil
}

// end prints the results of all loads, with --json.
func (b *bench) end() error {
	if b.flags.JSON {
		return printJSON(os.Stdout, b.results)
	}
	return nil
}

// explain adds to an error what to do about it.
func (b *bench) explain(err error) error {
	var wrong *load.Mismatch
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("cannot connect to %s: no server listens there; start one, such as \"rondo %s\", or give another address with --addr", b.addr, b.command)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w; choose fewer connections with --conns, or raise the limit, for instance with \"ulimit -n 20000\"", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; this host has no free ports for so many connections to one address: choose fewer with --conns, or use a unix socket", err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("%w; give the authority with --tls-ca, or skip the check with --insecure", err)
	case errors.As(err, new(x509.HostnameError)):
		return fmt.Errorf("%w; give the name with --tls-name, or skip the check with --insecure", err)
	case errors.As(err, new(tls.RecordHeaderError)):
		return b.withoutTLS()
	case errors.As(err, &wrong) && bytes.HasPrefix(wrong.Got, []byte("-NOAUTH ")):
		return fmt.Errorf("%s requires a password: give it with --password", b.addr)
	case errors.As(err, &wrong) && bytes.HasPrefix(wrong.Got, []byte("-WRONGPASS ")):
		return fmt.Errorf("%s rejected the password of --password", b.addr)
	}
	return err
}
