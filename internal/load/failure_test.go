package load

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// fails runs a load against a server, and returns its error.
func fails(t *testing.T, open rondo.OpenFunc, change func(*Config)) error {
	t.Helper()
	n := exact(t)
	n.Serve(":7", open)
	c := config(t)
	c.Conns = 3
	if change != nil {
		change(&c)
	}
	r, err := runOn(context.Background(), n, 2, c)
	if err == nil {
		t.Fatalf("no error, but %+v", r)
	}
	return err
}

// nth is an echo server that does something else with the n-th request of its
// second connection.
func nth(n int, other func(c *rondo.Conn, in []byte) (int, error)) rondo.OpenFunc {
	conns := 0
	return func(*rondo.Conn) rondo.Handler {
		conns++
		conn, requests := conns, 0
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if requests++; conn == 2 && requests == n {
				return other(c, in)
			}
			return c.Write(in)
		})
	}
}

func TestAWrongByteIsReported(t *testing.T) {
	err := fails(t, nth(40, func(c *rondo.Conn, in []byte) (int, error) {
		bad := append([]byte(nil), in...)
		bad[13] = '!'
		return c.Write(bad)
	}), nil)
	var wrong *Mismatch
	if !errors.As(err, &wrong) || wrong.Reply != 40 || wrong.Byte != 13 || wrong.Got[13] != '!' || wrong.Want[13] == '!' {
		t.Errorf("%v", err)
	}
	if !strings.HasPrefix(err.Error(), "connection ") || !strings.Contains(err.Error(), " of 3: reply 40 is wrong at byte 13: got \"") {
		t.Errorf("%v", err)
	}
}

func TestMoreThanWasAskedForIsReported(t *testing.T) {
	err := fails(t, nth(40, func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(in)
		c.Write([]byte("hello"))
		return len(in), nil
	}), nil)
	if !strings.Contains(err.Error(), `after reply 40 the server sent bytes that answer no request: "hello"`) {
		t.Errorf("%v", err)
	}
}

func TestALostConnectionIsReported(t *testing.T) {
	err := fails(t, nth(40, func(c *rondo.Conn, in []byte) (int, error) {
		c.Close()
		return len(in), nil
	}), nil)
	if !errors.Is(err, errClosedByServer) || !strings.Contains(err.Error(), "lost after 39 replies, with 1 outstanding: ") {
		t.Errorf("%v", err)
	}
	err = fails(t, nth(40, func(c *rondo.Conn, in []byte) (int, error) {
		c.Abort(nil)
		return len(in), nil
	}), nil)
	if !errors.Is(err, syscall.ECONNRESET) || !strings.Contains(err.Error(), "lost after 39 replies") {
		t.Errorf("%v", err)
	}
}

func TestAReplyThatDoesNotComeIsReported(t *testing.T) {
	hold := func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }
	for _, rate := range []float64{0, 100} {
		err := fails(t, nth(40, hold), func(c *Config) { c.Rate, c.Duration, c.Timeout = rate, 5*time.Second, time.Second })
		if !strings.Contains(err.Error(), "the server sent nothing for 1s while 1 requests waited for replies, on 1 connections") {
			t.Errorf("rate %v: %v", rate, err)
		}
	}
}

// A pause between requests is not an error.
func TestAnIdleOpenLoopDoesNotTimeOut(t *testing.T) {
	n := exact(t)
	n.Serve(":7", echo)
	c := config(t)
	c.Rate, c.Count, c.Timeout = 0.1, 5, 50*time.Millisecond
	if r := mustRun(t, n, c); r.Requests != 5 {
		t.Errorf("%+v", r)
	}
}

func TestNoServer(t *testing.T) {
	n := exact(t)
	c := config(t)
	if _, err := runOn(context.Background(), n, 1, c); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v", err)
	}
}

// The error of a failure before the load says so.
func TestAFailureWhilePreparing(t *testing.T) {
	reply := func(text string) rondo.OpenFunc {
		return func(*rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				c.Write([]byte(text))
				return len(in), nil
			})
		}
	}
	err := fails(t, reply("-WRONGPASS invalid username-password pair or user is disabled.\r\n"), func(c *Config) {
		w, err := Redis("ping", RedisOptions{Conns: c.Conns, Pipeline: 1, Size: 1, Keyspace: 1, Password: "x"})
		if err != nil {
			t.Fatal(err)
		}
		c.Workload = w
	})
	if !strings.Contains(err.Error(), `of 3 before the load: reply 1 is wrong at byte 0: got "-WRONGPASS invalid`) {
		t.Errorf("%v", err)
	}
}

// A connection broken by the network always ends the run.
func TestBrokenConnectionsEndTheRun(t *testing.T) {
	for seed := range uint64(20) {
		n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Faults{Reset: 0.01}})
		n.Serve(":7", echo)
		c := config(t)
		c.Duration = time.Hour
		if _, err := runOn(context.Background(), n, 2, c); err == nil {
			t.Errorf("seed %d: no error", n.Seed())
		}
		n.Close()
	}
}
