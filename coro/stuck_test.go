package coro_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/internal/testkit"
)

// unlocked runs f on each backend whose loops are not locked to threads.
func unlocked(t *testing.T, f func(t *testing.T, e *rondo.Engine, log *testkit.Log)) {
	for _, name := range pick.Available() {
		if name == "uring" {
			continue // see TestDeadlockOnAThread
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log testkit.Log
			f(t, &rondo.Engine{NumLoops: 1, Backend: name, Logger: log.Logger()}, &log)
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
		t.Errorf("the connection of a coroutine that is lost: %v", err)
	}
}

// TestDeadlockOfATLSConn: two coroutines on a *tls.Conn that shakes hands lock each
// other out. They and their connection are lost, and the loop goes on.
func TestDeadlockOfATLSConn(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{testcert.New("test").Issue(testcert.ECDSA, "localhost")}}
	unlocked(t, func(t *testing.T, e *rondo.Engine, log *testkit.Log) {
		bystander := testkit.ConnTo(t, e, coro.Handler(echoReads))
		c := testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			tc := tls.Server(c, config)
			co.Go(func(*coro.Co) error {
				_, err := tc.Read(make([]byte, 10))
				return err
			})
			co.Sleep(0)
			tc.Write([]byte("x"))
			t.Error("a mutex was let go of")
			return nil
		}))
		wantGone(t, c)
		goesOn(t, bystander, e)
		text := log.String()
		for _, want := range []string{"package rtls", "crypto/tls.(*Conn).Write(", "crypto/tls.(*Conn).Read(", "sync.Mutex.Lock", "holds the mutex"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log does not tell %q:\n%s", want, text)
			}
		}
	})
}

// guarded is what many libraries have: a connection that a mutex is held of while it is
// waited for.
type guarded struct {
	mu sync.Mutex
	c  net.Conn
}

//go:noinline
func (g *guarded) ask() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.c.Read(make([]byte, 1))
	return err
}

// TestDeadlockOfTwoConns: coroutines of two connections wait for a third.
func TestDeadlockOfTwoConns(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	unlocked(t, func(t *testing.T, e *rondo.Engine, log *testkit.Log) {
		bystander := testkit.ConnTo(t, e, coro.Handler(echoReads))
		g := &guarded{}
		waits := make(chan bool)
		b := testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, _ net.Conn) error {
			var err error
			if g.c, err = co.Dial("tcp", silent.Addr().String()); err != nil {
				t.Error(err)
			}
			coro.Hasty(co)
			co.Go(func(*coro.Co) error { close(waits); return nil })
			return g.ask()
		}))
		<-waits
		a := testkit.ConnTo(t, e, coro.Handler(func(*coro.Co, net.Conn) error { return g.ask() }))
		wantGone(t, a)
		wantGone(t, b)
		goesOn(t, bystander, e)
		if text := log.String(); !strings.Contains(text, "(*guarded).ask") {
			t.Error(text)
		}
	})
}

// clerk is what many servers have: an object whose methods serve connections, and a
// mutex that is held only for a moment.
type clerk struct {
	mu    sync.Mutex
	calls int
}

//go:noinline
func (k *clerk) serve(c net.Conn) error {
	p := make([]byte, 100)
	for {
		n, err := c.Read(p)
		if err != nil {
			return err
		}
		k.mu.Lock()
		k.calls++
		k.mu.Unlock()
		if _, err := c.Write(p[:n]); err != nil {
			return err
		}
	}
}

// TestMutexOfAnotherGoroutine: a coroutine that waits for a mutex which another
// goroutine holds gets it in the end. Nobody takes for its holder a coroutine that
// happens to wait in a method of the same object, or of its neighbour in memory.
func TestMutexOfAnotherGoroutine(t *testing.T) {
	for _, name := range pick.Available() {
		for what, mine := range map[string]int{"the same object": 0, "its neighbour": 1} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				var log testkit.Log
				e := &rondo.Engine{NumLoops: 1, Backend: name, Logger: log.Logger()}
				var k [2]clerk
				idle := testkit.ConnTo(t, e, coro.Handler(func(_ *coro.Co, c net.Conn) error { return k[0].serve(c) }))
				testkit.Echoes(t, idle, "hello")
				k[mine].mu.Lock()
				c := testkit.ConnTo(t, e, coro.Handler(func(_ *coro.Co, c net.Conn) error { return k[mine].serve(c) }))
				c.Write([]byte("hello"))
				testkit.Until(t, "the log", func() bool { return strings.Contains(log.String(), "mutex") })
				k[mine].mu.Unlock()
				p := make([]byte, 5)
				if _, err := io.ReadFull(c, p); err != nil {
					t.Errorf("the coroutine that waited: %v\n%s", err, log.String())
				}
				goesOn(t, idle, e)
			})
		}
	}
}

// TestTLSConnIsShared: a coroutine that writes through crypto/tls while another one
// reads is told, before anything bad can happen.
func TestTLSConnIsShared(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{testcert.New("test").Issue(testcert.ECDSA, "localhost")}}
	got := make(chan error, 1)
	e := &rondo.Engine{NumLoops: 1}
	c := testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
		tc := tls.Server(c, config)
		if err := tc.Handshake(); err != nil {
			return err
		}
		co.Go(func(*coro.Co) error {
			_, err := tc.Read(make([]byte, 10))
			return err
		})
		co.Sleep(0)
		_, err := tc.Write([]byte("x"))
		got <- err
		return nil
	}))
	tc := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	if err := tc.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, coro.ErrDeadlock) {
		t.Errorf("Write beside a Read of another coroutine: %v", err)
	}
}

// TestDeadlockOnAThread: a loop that is locked to its thread cannot go on on another
// goroutine, so the program ends, and tells why.
func TestDeadlockOnAThread(t *testing.T) {
	for _, name := range []string{"", "uring"} {
		if name != "" && !slices.Contains(pick.Available(), name) {
			continue
		}
		t.Setenv("DEADLOCK", name)
		out, err := testkit.Run(t, "deadlock")
		if err == nil || !strings.Contains(out, "loop 0 stands still") || strings.Count(out, "crypto/tls.(*Conn).Read(") < 2 || !strings.Contains(out, "package rtls") {
			t.Errorf("%q: the program does not tell of its deadlock: %v\n%s", name, err, out)
		}
	}
}

// TestBlockedLoopIsTold: what blocks a loop otherwise is told in the log.
func TestBlockedLoopIsTold(t *testing.T) {
	var log testkit.Log
	blocked := make(chan bool)
	testkit.ConnTo(t, &rondo.Engine{NumLoops: 1, Logger: log.Logger()}, coro.Handler(func(*coro.Co, net.Conn) error {
		<-blocked
		return nil
	}))
	for !strings.Contains(log.String(), "blocks its loop") {
		time.Sleep(10 * time.Millisecond)
	}
	close(blocked)
	if text := log.String(); !strings.Contains(text, "TestBlockedLoopIsTold") || !strings.Contains(text, "Await") {
		t.Error(text)
	}
}
