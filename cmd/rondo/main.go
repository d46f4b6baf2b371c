// Command rondo runs servers built on the rondo library: one that Redis's
// clients talk to, and one that sends back what it is sent; and a load generator
// that measures such servers.
//
// Run "rondo --help" for the commands, "rondo redis --help" for one of them.
package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

// program is the command line.
type program struct {
	Redis redisCommand `cmd:"" help:"Serve Redis clients from one event loop."`
	Echo  echoCommand  `cmd:"" help:"Send back what clients send."`
	Bench benchCommand `cmd:"" help:"Measure a server: a load generator."`
}

const description = `Servers on event loops, and a load generator for them.

Examples:

  rondo redis
      Serve Redis clients on 127.0.0.1:6379. Try: redis-cli set greeting hello

  rondo redis --addr :6379 --addr unix:///tmp/redis.sock --requirepass secret
      Serve all hosts, and a unix socket, with a password.

  rondo echo --addr 127.0.0.1:5000 --loops 4
      Send back what clients send, on four loops. Try: nc 127.0.0.1 5000

  rondo bench redis --addr 127.0.0.1:6379 --pipeline 32
      Measure a Redis server, this one or another.`

func main() {
	var p program
	parser, err := kong.New(&p,
		kong.Name("rondo"),
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
	fmt.Fprintf(os.Stderr, "rondo: %v\n", err)
	os.Exit(1)
}
