package main

import "github.com/rondo-go/rondo/internal/load"

type benchEchoCommand struct {
	Addr string `help:"Address of the server: tcp://host:port, or host:port, or unix:///path." default:"tcp://127.0.0.1:5000" placeholder:"ADDR"`
	benchFlags
}

// Help is the end of "rondo bench echo --help".
func (*benchEchoCommand) Help() string {
	return `Examples:

  rondo bench echo
      50 connections to 127.0.0.1:5000, the address of "rondo echo", each with one message of 64 bytes in flight, for 10 seconds.

  rondo bench echo --conns 1000 --size 1KiB --pipeline 8 --count 1000000
      A million messages.

  rondo bench echo --rate 20000 --duration 1m --json
      20,000 messages per second for a minute: the latencies of users who arrive at any time.

` + benchHelp
}

// Run measures until the end or a signal.
func (e *benchEchoCommand) Run() error {
	b, stop, err := newBench("echo", e.Addr, &e.benchFlags)
	if err != nil {
		return err
	}
	defer stop()
	w, err := load.Echo(b.size, e.Pipeline)
	if err != nil {
		return usageError{err}
	}
	if _, err := b.run(w); err != nil {
		return err
	}
	return b.end()
}
