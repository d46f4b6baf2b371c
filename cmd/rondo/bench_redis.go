package main

import (
	"strings"

	"github.com/rondo-go/rondo/internal/load"
)

type benchRedisCommand struct {
	Addr     string   `help:"Address of the server: tcp://host:port, or host:port, or unix:///path." default:"tcp://127.0.0.1:6379" placeholder:"ADDR"`
	Tests    []string `help:"What to measure, one after the other: ping, set, get, incr, mset." default:"ping,set,get,incr,mset" short:"t" placeholder:"TEST"`
	Keyspace int      `help:"Number of keys. Each request takes a random one (mset: ten)." default:"1" short:"r" placeholder:"N"`
	Zipf     float64  `help:"Choose keys by Zipf's law with this exponent, above 1 and at most 10: a few keys are asked for most of the time. 0: all equally often." default:"0" placeholder:"S"`
	Password string   `help:"Password, for AUTH." short:"a" placeholder:"PASSWORD"`
	benchFlags
}

// maxKeyspace bounds the memory for the counters of incr, of which each takes 8 bytes.
const maxKeyspace = 1e9

// Help is the end of "rondo bench redis --help".
func (*benchRedisCommand) Help() string {
	return `It overwrites the keys key:<12 digits> and counter:<12 digits> of database 0: do not use it on a server whose data matters.

Examples:

  rondo bench redis
      50 connections to 127.0.0.1:6379, each with one request in flight; each test for 10 seconds.

  rondo bench redis -t set,get -P 32 -n 2000000
      Two million SETs, then as many GETs, 32 in flight on each connection.

  rondo bench redis -t get -r 100000 --size 1KiB --rate 50000
      50,000 GETs per second, of 100,000 keys with values of 1 KiB, which the program sets first.

  rondo bench redis -t set,get -r 1000000 --zipf 1.01 -P 32
      A million keys, of which some are asked for much more often than others, as in most caches.

` + benchHelp
}

// Run measures one test after the other, until the end or a signal.
func (r *benchRedisCommand) Run() error {
	b, stop, err := newBench("redis", r.Addr, &r.benchFlags)
	if err != nil {
		return err
	}
	defer stop()
	if err := checkNumber("--keyspace", r.Keyspace, 1, maxKeyspace); err != nil {
		return err
	}
	if r.Zipf != 0 && !(r.Zipf > 1 && r.Zipf <= 10) {
		return usagef("--zipf is %v: want a number above 1 and at most 10, or 0", r.Zipf)
	}
	b.keyspace, b.zipf = r.Keyspace, r.Zipf
	var loads []load.Workload
	for _, test := range r.Tests {
		w, err := load.Redis(strings.ToLower(strings.TrimSpace(test)), load.RedisOptions{
			Conns:    r.Conns,
			Pipeline: r.Pipeline,
			Size:     b.size,
			Keyspace: r.Keyspace,
			Zipf:     r.Zipf,
			Password: r.Password,
		})
		if err != nil {
			return usagef("--tests: %w", err)
		}
		loads = append(loads, w)
	}
	for _, w := range loads {
		if more, err := b.run(w); err != nil {
			return err
		} else if !more {
			break
		}
	}
	return b.end()
}
