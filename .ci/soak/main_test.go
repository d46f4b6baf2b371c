package main

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// TestEndOfTheLoad: what clients do at the end of the load is no failure of a server, however
// late timers are.
func TestEndOfTheLoad(t *testing.T) {
	ctx, stop := lasting(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, ok := ctx.Deadline(); ok {
		t.Error("the load has a deadline, which others may notice before it does")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var l load
	for {
		c, err := dial(ctx, ln.Addr().String())
		if err != nil {
			l.fail(ctx, "dial", err)
			break
		}
		c.Close()
		if c, err = ln.Accept(); err == nil {
			c.Close()
		}
	}
	if err := l.failure(); err != nil || ctx.Err() == nil {
		t.Errorf("%v, %v", ctx.Err(), err)
	}
	l.fail(context.Background(), "read", errors.New("it was reset"))
	if l.failure() == nil {
		t.Error("a failure is not noted")
	}
}
