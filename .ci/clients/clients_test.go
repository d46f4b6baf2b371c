// Package clients drives a Redis server through go-redis, as programs do. It is
// a module of its own, so that the client stays out of the main one.
//
// The server is a process that was started before: RONDO_ADDR is its address,
// host:port or the path of a unix socket, and RONDO_PASSWORD its password if it
// has one. Its keys are lost. It is started with an empty configuration; that
// is restored where a test changes it.
//
//	RONDO_ADDR=127.0.0.1:6379 go test .
package clients

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long anything may take on a loaded machine before it counts
// as stuck.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv("RONDO_ADDR") == "" {
		fmt.Fprintln(os.Stderr, "RONDO_ADDR is not set: start a server and put its address there")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// options are those of a client of the server under test.
func options(protocol int) *redis.Options {
	o := &redis.Options{
		Addr:         os.Getenv("RONDO_ADDR"),
		Password:     os.Getenv("RONDO_PASSWORD"),
		Protocol:     protocol,
		ReadTimeout:  patience,
		WriteTimeout: patience,
		PoolTimeout:  patience,
		MaxRetries:   -1, // an error must be seen, not tried again
	}
	if strings.HasPrefix(o.Addr, "/") {
		o.Network = "unix"
	}
	return o
}

// each runs a test with a client of either protocol version on an empty server.
func each(t *testing.T, test func(t *testing.T, ctx context.Context, c *redis.Client)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			c := open(t, options(protocol))
			check(t, c.FlushAll(ctx).Err())
			test(t, ctx, c)
		})
	}
}

func open(t *testing.T, o *redis.Options) *redis.Client {
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// do runs any command on a connection of its own.
func do(ctx context.Context, c *redis.Conn, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	if err := c.Process(ctx, cmd); err != nil && cmd.Err() == nil {
		cmd.SetErr(err)
	}
	return cmd
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal checks the result of a command.
func equal[T comparable](t *testing.T, want T) func(got T, err error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
	}
}

// fails checks that a command was refused, with an error that begins so.
func fails(t *testing.T, err error, prefix string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), prefix) {
		t.Fatalf("error %v, want %q", err, prefix)
	}
}
