// Command bench compares rondo with other event-loop libraries, with package
// net, with redis-server, and with the limit: echo servers in C that only make
// system calls. It also compares rondo with itself at another commit. It runs
// on Linux, on the loopback interface, and needs gcc; the Redis suites need
// redis-server, and the suite proxy leaves out haproxy and nginx if they are missing.
//
//	cd bench && go run . --help
//
// docs/benchmarks.md says what is measured and how to read the figures.
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
	Run     runCommand     `cmd:"" default:"withargs" help:"Measure suites: each server beside its base (the default command)."`
	Compare compareCommand `cmd:"" help:"Measure rondo at two commits, or two server programs, side by side."`
	Page    pageCommand    `cmd:"" help:"Measure what the page of --admin costs while it is open."`
	List    listCommand    `cmd:"" help:"List suites with their servers and workloads."`
	Costs   costsCommand   `cmd:"" help:"Measure what processors share: locks, descriptors, posts, the collector."`
	Report  reportCommand  `cmd:"" help:"Write the figures of results files into the documents, and the charts."`
}

const description = `Measures servers in pairs, on the loopback interface.

Both servers of a pair stay alive and take turns: a slice of load for one, then for the
other. The figure is the median of the ratios of neighbouring slices, with its 95%
confidence interval.

Examples:

  go run . --quick
      Compare rondo with its peers in two minutes.

  go run . peers
      Measure one suite; the results go to out/peers.json.

  go run . peers --append --for 4m
      Continue for four minutes, if the machine is quiet only for a while.

  go run . compare 310dc32 HEAD --suite peers --workloads 'echo-64-*'
      Show what a change did to rondo: requests, CPU time, instructions, system calls.

  go run . report
      Put the figures of docs/benchmarks/*.json into the documents.`

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
