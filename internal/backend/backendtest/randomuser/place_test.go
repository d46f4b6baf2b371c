package randomuser

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// A placeOf is a world's place: a simulated network, or this machine's.
type placeOf interface {
	// engine puts e there.
	engine(e *rondo.Engine)
	// dial connects to an address that an engine listens on.
	dial(address string) (raw, error)
	now() time.Time
	// pass lets time pass.
	pass(d time.Duration) error
	// call runs f on another goroutine until f returns. The error says that f will
	// never return.
	call(f func()) error
	// timeout returns a Context that ends after d.
	timeout(d time.Duration) (context.Context, context.CancelFunc)
	// poll returns how long to wait for something that may be there.
	poll() time.Duration
	close() error
}

// raw is the test's end of a connection.
type raw interface {
	net.Conn
	CloseWrite() error
}

func reset(c raw) {
	switch c := c.(type) {
	case *tls.Conn:
		reset(c.NetConn().(raw))
	case *queued:
		c.Close()
	case *net.TCPConn:
		c.SetLinger(0)
		c.Close()
	case *rondotest.Conn:
		c.Reset()
	}
}

// simPlace is a simulated network.
type simPlace struct {
	net *rondotest.Network
	tb  *failures
}

// failures is the testing.TB of a simulated network. It turns failures into errors.
type failures struct {
	testing.TB
	mu   sync.Mutex
	said error
	ends []func()
}

func (f *failures) Helper()             {}
func (f *failures) Logf(string, ...any) {}
func (f *failures) Cleanup(end func())  { f.ends = append(f.ends, end) }
func (f *failures) Failed() bool        { return f.all() != nil }

func (f *failures) all() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said
}

func (f *failures) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = errors.Join(f.said, fmt.Errorf(format, args...))
}
func (f *failures) Fatal(args ...any) {
	f.Errorf("%v", fmt.Sprint(args...))
	panic(fatal{})
}

type fatal struct{}

// try runs f and returns its failure.
func (f *failures) try(g func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(fatal); !ok {
				panic(r)
			}
			err = f.all()
		}
	}()
	g()
	return nil
}

func newSimPlace(o rondotest.Options) *simPlace {
	tb := &failures{}
	return &simPlace{rondotest.New(tb, o), tb}
}

func (s *simPlace) engine(e *rondo.Engine) {
	log := e.Logger
	s.net.Engine(e)
	e.Logger = log
}

func (s *simPlace) dial(address string) (r raw, err error) {
	if failed := s.tb.try(func() {
		nc, derr := s.net.DialContext(s.net.Timeout(time.Second), "tcp", address)
		if err = derr; err == nil {
			r = nc.(*rondotest.Conn)
		}
	}); failed != nil {
		return nil, failed
	}
	return r, err
}

func (s *simPlace) timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return s.net.Timeout(max(d, 0)), func() {}
}

func (s *simPlace) now() time.Time      { return s.net.Now() }
func (s *simPlace) poll() time.Duration { return 1 }

func (s *simPlace) pass(d time.Duration) error {
	return s.tb.try(func() { s.net.Advance(d) })
}

func (s *simPlace) call(f func()) error {
	var over atomic.Bool
	stuck := make(chan error, 1)
	guard := time.AfterFunc(hangs, func() {
		// Await waits for ever. Until reports that nothing will happen any more.
		if err := s.tb.try(func() { s.net.Until(over.Load) }); err != nil {
			stuck <- err
		}
	})
	defer guard.Stop()
	done := make(chan error, 1)
	go func() {
		done <- s.tb.try(func() {
			s.net.Await(func() {
				defer over.Store(true)
				f()
			})
		})
	}()
	select {
	case err := <-done:
		return err
	case err := <-stuck:
		return err
	}
}

// hangs is how long, in real time, a call may take before simPlace checks whether it
// can return.
const hangs = 300 * time.Millisecond

func (s *simPlace) close() error {
	if err := s.tb.try(s.net.Close); err != nil {
		return err
	}
	return s.tb.all()
}

// sockets is this machine, in real time.
type sockets struct{ backend string }

func (s *sockets) engine(e *rondo.Engine) { e.Backend = s.backend }

func (s *sockets) dial(address string) (raw, error) {
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func (s *sockets) timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func (s *sockets) now() time.Time      { return time.Now() }
func (s *sockets) poll() time.Duration { return 200 * time.Microsecond }

func (s *sockets) pass(d time.Duration) error {
	time.Sleep(d)
	return nil
}

func (s *sockets) call(f func()) error {
	f() // the runner's watchdog checks that f returns
	return nil
}

func (s *sockets) close() error { return nil }

// quiet returns a Logger that reports only panics to the world.
func quiet(w *world) *slog.Logger {
	return slog.New(&logHandler{Handler: slog.NewTextHandler(io.Discard, nil), w: w})
}
