// Command bench compares rondo with other event-loop libraries, with package
// net, with redis-server, and with the limit: echo servers in C that are
// nothing but system calls. It runs on Linux, on the loopback interface, and
// needs gcc; the Redis workloads need redis-server and redis-benchmark.
//
//	cd bench && go run . --quick
//
// docs/benchmarks.md tells what is measured and how to read it.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

type program struct {
	Run    runCommand    `cmd:"" default:"withargs" help:"Run servers and workloads and write the results (the default command)."`
	List   listCommand   `cmd:"" help:"List suites, servers, workloads and modes."`
	Report reportCommand `cmd:"" help:"Write table and charts again from a results.json."`
}

const description = `Compares echo and Redis servers on the loopback interface.

Examples:

  go run . --quick
      A look in two minutes: few servers, short runs.

  go run .
      Everything, seven times each, over two hours; then out/results.md has the tables.

  go run . --suites peers,backends --modes pinned
      Two of the comparisons.

  go run . --servers rondo-epoll,c-epoll,net --workloads echo-64-50,echo-64-1000
      Three servers at two points.

  go run . report out/results.json --update docs
      Put a run into docs/benchmarks.md.`

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
