package rondo_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
)

// hostile is a Logger's Handler that fails in one of its methods.
type hostile struct {
	where string
	fail  func()
	calls *atomic.Int32
}

func (h hostile) at(where string) {
	h.calls.Add(1)
	if h.where == where {
		h.fail()
	}
}

func panics() { panic("a Logger") }

func (h hostile) Enabled(context.Context, slog.Level) bool  { h.at("Enabled"); return true }
func (h hostile) Handle(context.Context, slog.Record) error { h.at("Handle"); return nil }
func (h hostile) WithAttrs([]slog.Attr) slog.Handler        { h.at("WithAttrs"); return h }
func (h hostile) WithGroup(string) slog.Handler             { h.at("WithGroup"); return h }

// onInput serves with a coroutine that calls fail when something has come.
func onInput(fail func()) rondo.OpenFunc {
	return coro.Handler(func(_ *coro.Co, c net.Conn) error {
		c.Read(make([]byte, 1))
		fail()
		return nil
	})
}

// handlerOnInput does so with a Handler.
func handlerOnInput(fail func()) rondo.OpenFunc {
	return func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) {
			fail()
			return 0, nil
		})
	}
}

// goesOn tells whether the loop serves others, and ends.
func goesOn(t *testing.T, bystander net.Conn, e *rondo.Engine) {
	t.Helper()
	for range 3 {
		bystander.Write([]byte("still there?"))
		bystander.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(bystander, make([]byte, 12)); err != nil {
			t.Fatalf("the bystander: %v", err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// wantGone expects that the server aborts a connection. Wine, which CI runs the tests
// for Windows on, now and then shows a reset as the end of the stream.
func wantGone(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, c); err == nil && runtime.GOOS != "windows" || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection that is lost: %v", err)
	}
}

// TestHostileLogger: a Logger that panics costs what it was to log, and nothing else:
// not the loop, nor its coroutines, nor the engine's Close. Nor does one that calls
// runtime.Goexit, as by a test's FailNow.
func TestHostileLogger(t *testing.T) {
	for _, where := range []string{"Enabled", "Handle", "WithAttrs"} {
		t.Run(where+" panics", func(t *testing.T) { hostileLogger(t, where, panics) })
		t.Run(where+" calls Goexit", func(t *testing.T) { hostileLogger(t, where, runtime.Goexit) })
	}
}

func hostileLogger(t *testing.T, where string, fail func()) {
	for what, open := range map[string]rondo.OpenFunc{
		"a coroutine panics":       onInput(func() { panic("a coroutine") }),
		"a coroutine calls Goexit": onInput(runtime.Goexit),
		"a handler panics":         handlerOnInput(func() { panic("a handler") }),
		"a handler calls Goexit":   handlerOnInput(runtime.Goexit),
	} {
		for _, name := range backends() {
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				var calls atomic.Int32
				e := &rondo.Engine{NumLoops: 1, Backend: name, Logger: slog.New(hostile{where, fail, &calls})}
				bystander := connTo(t, e, coro.Handler(echoReads))
				c := connTo(t, e, open)
				c.Write([]byte("now"))
				wantGone(t, c)
				goesOn(t, bystander, e)
				if calls.Load() == 0 {
					t.Error("nothing was logged")
				}
			})
		}
	}
}

// TestHostileLoggerOfABlockedLoop: the goroutine that looks after coroutines logs too.
func TestHostileLoggerOfABlockedLoop(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	e := &rondo.Engine{NumLoops: 1, Logger: slog.New(hostile{"Handle", panics, &calls})}
	bystander := connTo(t, e, coro.Handler(echoReads))
	blocked := make(chan bool)
	connTo(t, e, coro.Handler(func(*coro.Co, net.Conn) error {
		<-blocked
		return nil
	}))
	until(t, "the log", func() bool { return calls.Load() >= 2 }) // Enabled and Handle
	close(blocked)
	goesOn(t, bystander, e)
}

// TestLoggerMayAskTheEngine: nothing is locked while the Logger is called, also not while
// the engine starts.
func TestLoggerMayAskTheEngine(t *testing.T) {
	defer pick.Register("refusing", func() (backend.Backend, error) { return nil, errors.New("not today") })()
	e := &rondo.Engine{NumLoops: 1, Backend: "refusing,std"}
	defer e.Close()
	var calls atomic.Int32
	e.Logger = slog.New(hostile{"Handle", func() { e.Stats() }, &calls})
	started := make(chan error, 1)
	go func() { started <- e.Start() }()
	select {
	case err := <-started:
		if err != nil || calls.Load() == 0 {
			t.Errorf("Start: %v, the Logger was called %d times", err, calls.Load())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Start waits for the Logger, and the Logger for Start")
	}
}
