package httpd_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
)

// A request's context does what one of package context does: those made from it end with it,
// with the cause, and what AfterFunc was given runs once.
func TestContextEnds(t *testing.T) {
	kept := make(chan context.Context, 1)
	derived := make(chan context.Context, 2)
	ran := make(chan bool, 2)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if ctx.Err() != nil {
			t.Error(ctx.Err())
		}
		if _, has := ctx.Deadline(); has {
			t.Error("the context has a deadline")
		}
		child, cancel := context.WithTimeout(ctx, time.Hour)
		time.AfterFunc(time.Hour, cancel) // the request's end does it before
		derived <- child
		early, cancelEarly := context.WithCancel(ctx)
		cancelEarly()
		if ctx.Err() != nil || early.Err() != context.Canceled {
			t.Error("a child's end is its parent's")
		}
		context.AfterFunc(ctx, func() { ran <- true })
		stop := context.AfterFunc(ctx, func() { t.Error("it was stopped") })
		if !stop() || stop() {
			t.Error("stop")
		}
		kept <- ctx
	})
	for name, h := range map[string]http.Handler{"goroutine": h, "loop": httpd.OnLoop(h)} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &http.Server{Handler: h})
			raw(t, addr, get)
			ctx, child := <-kept, <-derived
			for _, c := range []context.Context{ctx, child} {
				select {
				case <-c.Done():
				case <-time.After(time.Minute):
					t.Fatal("the context does not end")
				}
				if c.Err() != context.Canceled || context.Cause(c) != context.Canceled {
					t.Error(c.Err(), context.Cause(c))
				}
			}
			<-ran
			context.AfterFunc(ctx, func() { ran <- true }) // at once
			<-ran
			late, cancel := context.WithCancel(ctx)
			defer cancel()
			if late.Err() == nil {
				t.Error("a child of an ended context goes on")
			}
		})
	}
}

// The end of a context that the server was given ends requests.
func TestBaseContextEnds(t *testing.T) {
	base, cancel := context.WithCancelCause(context.Background())
	begun, ended := make(chan bool, 1), make(chan error, 1)
	addr := serve(t, &http.Server{
		BaseContext: func(net.Listener) context.Context { return base },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- true
			<-r.Context().Done()
			ended <- context.Cause(r.Context())
		})})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, get)
	<-begun
	cancel(http.ErrServerClosed)
	if err := <-ended; err != http.ErrServerClosed {
		t.Error(err)
	}
}
