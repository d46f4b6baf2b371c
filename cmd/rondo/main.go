// Command rondo runs servers built on the rondo library: a Redis server, an HTTP
// server, a proxy for TCP and an echo server. It also has a load generator that
// measures such servers.
//
// Run "rondo --help" for the commands, and "rondo redis --help" for one of
// them.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/rondo-go/rondo/internal/pick"
)

// program is the command line.
type program struct {
	Redis       redisCommand      `cmd:"" help:"Serve Redis clients from one event loop." set:"authclients=yes"`
	HTTP        httpCommand       `cmd:"" help:"Serve files over HTTP, or pass requests on to another server." set:"authclients=no"`
	Proxy       proxyCommand      `cmd:"" help:"Pass connections on to other servers, and share them among these." set:"authclients=no"`
	Echo        echoCommand       `cmd:"" help:"Send back what clients send." set:"authclients=yes"`
	Bench       benchCommand      `cmd:"" help:"Measure a server with a load generator."`
	Ping        pingCommand       `cmd:"" help:"Ask a server whether it can serve: a health check."`
	Completion  completionCommand `cmd:"" help:"Print a script that completes command lines in a shell."`
	Man         manCommand        `cmd:"" help:"Write the manual pages."`
	ShowVersion versionCommand    `cmd:"" name:"version" help:"Print the version, the commit, and the Go version."`
	Version     kong.VersionFlag  `help:"Print the version, the commit, and the Go version."`
}

const description = `Servers on event loops, and a load generator for them.

Examples:

  rondo redis
      Serve Redis clients on 127.0.0.1:6379. Try: redis-cli set greeting hello

  rondo redis --addr :6379 --addr unix:///tmp/redis.sock --requirepass secret
      Serve on all interfaces and on a unix socket, with a password.

  rondo http --dir .
      Serve the files in the current directory. Try: curl http://127.0.0.1:8080/

  rondo proxy --listen :8080 --to 127.0.0.1:9000 --to 127.0.0.1:9001
      Pass clients on to two servers in turn.

  rondo echo --addr 127.0.0.1:5000 --loops 4
      Echo on four loops. Try: nc 127.0.0.1 5000

  rondo bench redis --addr 127.0.0.1:6379 --pipeline 32
      Measure a Redis server, this one or another.

  rondo ping redis://127.0.0.1:6379
      Ask a server whether it can serve.

Servers tell systemd when they are ready, and take its sockets: see docs/operators.md.

The exit status is 0 after success, 1 after a failure, and 2 after a mistake in the command line.`

// Exit statuses.
const (
	statusFailure = 1
	statusUsage   = 2
)

func main() {
	err := execute(os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "rondo: "+strings.TrimPrefix(err.Error(), "rondo: "))
	if errors.As(err, new(usageError)) {
		os.Exit(statusUsage)
	}
	os.Exit(statusFailure)
}

// newParser makes the parser of the command line. backend is the default of --backend.
func newParser(backend string) (*kong.Kong, error) {
	return kong.New(new(program),
		kong.Name("rondo"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ValueFormatter(helpOf),
		kong.Vars{"backend": backend, "version": versionOfThis()},
	)
}

// execute parses the arguments and runs the command.
func execute(args []string) error {
	_, backend, _ := pick.Find("")
	parser, err := newParser(backend)
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == completer {
		return complete(parser.Model.Node, args[1:]).print(os.Stdout)
	}
	flags := passedOn(parser.Model.Node, args)
	ctx, err := parser.Parse(append(joinNegative(args[:flags]), args[flags:]...))
	if err != nil {
		return misused(err)
	}
	defer pid.remove()
	return ctx.Run()
}
