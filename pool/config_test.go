package pool_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// Every borrower of a pool with a meaningless configuration gets an error that names the
// field, and the pool dials nothing.
func TestFieldsThatMeanNothing(t *testing.T) {
	for want, config := range map[string]pool.Config{
		"pool.Config.MaxLive is -1: want 0 or more":                                           {MaxLive: -1, MinIdle: 3},
		"pool.Config.MinIdle is -2: want 0 or more":                                           {MinIdle: -2},
		"pool.Config.IdleTime is -1ns: want 0 or more":                                        {IdleTime: -1},
		"pool.Config.MaxWait is -1ns: want 0 or more":                                         {MaxWait: -1},
		"pool.Config.CheckAfter is -1ns: want 0 or more":                                      {CheckAfter: -1},
		"pool.Config.CheckAfter is 1ns, and Check is nil: want a Check too":                   {CheckAfter: 1},
		"pool.Config.Patience is -1ns: want 0 or more":                                        {Patience: -1},
		"pool.Config.Filters[0] is nil: want a rondo.FilterOpenFunc":                          {Filters: []rondo.FilterOpenFunc{nil}},
		"SocketOptions.RecvBuffer is -1: want 0, for the system's choice, or more":            {Socket: rondo.SocketOptions{RecvBuffer: -1}},
		"SocketOptions.DialTimeout is -1ns: want 0, for as long as the system tries, or more": {Socket: rondo.SocketOptions{DialTimeout: -1}},
	} {
		w := newWorld(t, rondotest.Options{Seed: 1}, config, nil)
		for range 2 {
			_, err := w.get()
			var op *net.OpError
			if !errors.As(err, &op) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if s := w.stats(); s.Dialed != 0 || s.Waiting != 0 || len(w.served) != 0 {
			t.Errorf("%s: %+v", want, s)
		}
		w.do(w.pool.Close)
	}
}

// A nil context is an error.
func TestBorrowWithoutContext(t *testing.T) {
	w := newWorld(t, rondotest.Options{Seed: 1}, pool.Config{}, nil)
	told := make(chan error, 1)
	w.net.Listen(w.engine, "tcp", "127.0.0.1:8", coro.Handler(func(co *coro.Co, _ net.Conn) error {
		var ctx context.Context
		_, err := w.pool.BorrowContext(ctx, co)
		told <- err
		return nil
	}))
	w.net.Dial("tcp", "127.0.0.1:8")
	w.net.Until(func() bool { return len(told) > 0 })
	if err := <-told; err == nil || !strings.Contains(err.Error(), "ctx is nil: want a context") {
		t.Error(err)
	}
}
