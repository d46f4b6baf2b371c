// Command tlsload is limit/load.c for servers of TLS: a closed-loop load generator
// for echo servers on 127.0.0.1, where each connection has one message under way,
// and every byte that comes back is compared. It takes the same arguments and says
// the same lines; see there. Its connections are rondo's, with rtls: it needs about
// the CPU time of the best server, so that compare CPU times rather than rates where
// it is busy.
//
// Handshakes are full ones, with X25519, which every server knows; certificates are
// not verified, their signatures are.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

type options struct {
	port, conns, bytes, threads, pid int
	warmup, measured, counted        time.Duration
	kind                             string
}

func parse() (o options, err error) {
	seconds := func(name string, d *time.Duration) {
		flag.Func(name, "seconds", func(s string) error {
			v, err := time.ParseDuration(s + "s")
			*d = v
			return err
		})
	}
	flag.IntVar(&o.port, "p", 0, "port")
	flag.IntVar(&o.conns, "c", 1, "connections")
	flag.IntVar(&o.bytes, "b", 64, "bytes of a message")
	flag.IntVar(&o.threads, "t", 1, "event loops")
	flag.IntVar(&o.pid, "P", 0, "the server's process")
	o.warmup, o.measured = 200*time.Millisecond, time.Second
	seconds("w", &o.warmup)
	seconds("s", &o.measured)
	seconds("n", &o.counted)
	flag.Parse()
	o.kind = flag.Arg(0)
	switch {
	case o.port == 0 || o.conns < 1 || o.bytes < 1 || o.threads < 1:
		return o, errors.New("a port is needed, and connections, bytes and threads of at least 1")
	case flag.NArg() != 1 || !slices.Contains([]string{"echo", "rate", "idle"}, o.kind):
		return o, errors.New("want one of echo, rate and idle")
	}
	return o, nil
}

// result is what load.c says.
type result struct {
	Seconds          float64 `json:"seconds"`
	Messages         int     `json:"messages"`
	Stalled          int     `json:"stalled"`
	CPUSeconds       float64 `json:"cpu_seconds"`
	ServerCPUSeconds float64 `json:"server_cpu_seconds"`
	CountedSeconds   float64 `json:"counted_seconds"`
	Counted          int     `json:"counted"`
	P50              int64   `json:"p50_ns"`
	P90              int64   `json:"p90_ns"`
	P99              int64   `json:"p99_ns"`
	P999             int64   `json:"p999_ns"`
	Max              int64   `json:"max_ns"`
}

func main() {
	o, err := parse()
	var res result
	stdin := bufio.NewReader(os.Stdin)
	if err == nil {
		res, err = run(o, stdin)
	}
	out := json.NewEncoder(os.Stdout)
	if err != nil {
		out.Encode(map[string]string{"error": err.Error()})
		return
	}
	out.Encode(res)
	stdin.WriteTo(discard{}) // the connections stay until it ends
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// stage announces one, and waits until it may go on.
func stage(name string, stdin *bufio.Reader) error {
	fmt.Println("@" + name)
	_, err := stdin.ReadString('\n')
	return err
}

// run makes the load.
func run(o options, stdin *bufio.Reader) (res result, err error) {
	l, err := newLoad(o)
	if err != nil {
		return res, err
	}
	defer func() {
		if err == nil {
			err = l.failure()
		}
	}()
	if o.kind == "idle" {
		if err := l.connectAll(false); err != nil {
			return res, err
		}
		if err := stage("connected", stdin); err != nil {
			return res, err
		}
		return result{Messages: o.conns}, l.echoEach()
	}
	if err := l.connectAll(true); err != nil {
		return res, err
	}
	time.Sleep(o.warmup)
	fmt.Println("@measuring")
	took, messages, times, cpu, server := l.measure(o.measured)
	res = result{Seconds: took.Seconds(), Messages: messages, CPUSeconds: cpu.Seconds(), ServerCPUSeconds: server.Seconds()}
	if o.counted > 0 {
		if err := stage("count", stdin); err != nil {
			return res, err
		}
		took, counted, _, _, _ := l.measure(o.counted)
		res.CountedSeconds, res.Counted = took.Seconds(), counted
		if err := stage("counted", stdin); err != nil {
			return res, err
		}
	}
	res.Stalled = l.stop()
	slices.Sort(times)
	res.P50, res.P90, res.P99 = at(times, 0.5), at(times, 0.9), at(times, 0.99)
	res.P999, res.Max = at(times, 0.999), at(times, 1)
	return res, nil
}

// at is a quantile.
func at(sorted []time.Duration, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return int64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))])
}

// cpuTime is that of a process; 0 is this one.
func cpuTime(pid int) time.Duration {
	clock := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if pid != 0 {
		clock = int32(^pid<<3 | 2) // clock_getcpuclockid(3)
	}
	var t unix.Timespec
	if unix.ClockGettime(clock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func config() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}}
}
