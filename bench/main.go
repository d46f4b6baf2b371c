// Command bench compares rondo with other event-loop libraries, with package net,
// with redis-server, and with the limit: echo servers in C that are nothing but
// system calls. It also compares rondo with itself at another commit. It runs on
// Linux, on the loopback interface, and needs gcc; the Redis suites need redis-server.
//
//	cd bench && go run . --help
//
// docs/benchmarks.md tells what is measured and how to read it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type program struct {
	Run     runCommand     `cmd:"" default:"withargs" help:"Measure suites: servers beside the one they are compared with (the default command)."`
	Compare compareCommand `cmd:"" help:"Measure rondo at two commits, or two server programs, beside each other."`
	List    listCommand    `cmd:"" help:"List suites with their servers and workloads."`
	Report  reportCommand  `cmd:"" help:"Write the figures of results files into the documents, and the charts."`
}

const description = `Measures servers in pairs, on the loopback interface.

Both servers of a pair are kept alive and take turns: 30 ms of load for one, then for
the other. The figure is the median of the ratios of neighbours, with the interval in
which it lies with 95% confidence.

Examples:

  go run . --quick
      A look at rondo and its peers within two minutes.

  go run . peers
      One suite, ten repetitions of each pair; results in out/peers.json.

  go run . peers --append --for 4m
      Goes on with it for four minutes, where the machine is quiet for a while only.

  go run . compare 310dc32 HEAD --suite peers --workloads 'echo-64-*'
      What a change did to rondo: requests, CPU time, instructions and system calls.

  go run . report
      Puts docs/benchmarks/*.json into the documents.`

func main() {
	var p program
	parser, err := kong.New(&p,
		kong.Name("bench"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		fail(err)
	}
	ctx, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx.BindTo(interrupted, (*context.Context)(nil))
	if err := ctx.Run(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	if errors.Is(err, errUnfinished) {
		os.Exit(3)
	}
	os.Exit(1)
}
