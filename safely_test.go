package rondo_test

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/rondo-go/rondo"
)

// hostile is a Logger's Handler that panics in one of its methods.
type hostile struct {
	where string
	calls *atomic.Int32
}

func (h hostile) at(where string) {
	h.calls.Add(1)
	if h.where == where {
		panic("a Logger, in " + where)
	}
}

func (h hostile) Enabled(context.Context, slog.Level) bool  { h.at("Enabled"); return true }
func (h hostile) Handle(context.Context, slog.Record) error { h.at("Handle"); return nil }
func (h hostile) WithAttrs([]slog.Attr) slog.Handler        { h.at("WithAttrs"); return h }
func (h hostile) WithGroup(string) slog.Handler             { h.at("WithGroup"); return h }

// onInput serves with a coroutine that calls fail when something has come.
func onInput(fail func()) rondo.Opener {
	return rondo.Coroutine(func(_ *rondo.Co, c net.Conn) error {
		c.Read(make([]byte, 1))
		fail()
		return nil
	})
}

// handlerOnInput does so with a Handler.
func handlerOnInput(fail func()) rondo.Opener {
	return func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) {
			fail()
			return 0, nil
		})
	}
}

// TestHostileLogger: a Logger that panics costs what it was to log, and nothing else:
// not the loop, nor its coroutines, nor the engine's Close.
func TestHostileLogger(t *testing.T) {
	for _, where := range []string{"Enabled", "Handle", "WithAttrs"} {
		for what, open := range map[string]rondo.Opener{
			"a coroutine panics":       onInput(func() { panic("a coroutine") }),
			"a coroutine calls Goexit": onInput(runtime.Goexit),
			"a handler panics":         handlerOnInput(func() { panic("a handler") }),
			"a handler calls Goexit":   handlerOnInput(runtime.Goexit),
		} {
			for _, name := range backends() {
				t.Run(where+"/"+what+"/"+name, func(t *testing.T) {
					t.Parallel()
					var calls atomic.Int32
					e := &rondo.Engine{Loops: 1, Backend: name, Logger: slog.New(hostile{where, &calls})}
					bystander := connTo(t, e, rondo.Coroutine(echoReads))
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
}

// TestHostileLoggerOfABlockedLoop: the goroutine that looks after coroutines logs too.
func TestHostileLoggerOfABlockedLoop(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	e := &rondo.Engine{Loops: 1, Logger: slog.New(hostile{"Handle", &calls})}
	bystander := connTo(t, e, rondo.Coroutine(echoReads))
	blocked := make(chan bool)
	connTo(t, e, rondo.Coroutine(func(*rondo.Co, net.Conn) error {
		<-blocked
		return nil
	}))
	until(t, "the log", func() bool { return calls.Load() >= 2 }) // Enabled and Handle
	close(blocked)
	goesOn(t, bystander, e)
}
