package rondo_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// An engine that never ran, or failed to start, is closed as often as one likes.
func TestCloseOfAnEngineThatNeverRan(t *testing.T) {
	var e rondo.Engine
	e.Close()
	e.Close()
	e.Shutdown(context.Background())
	e.Wait()
	bad := rondo.Engine{Backend: "nonsense"}
	if _, err := bad.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo); err == nil {
		t.Error("there is a backend called nonsense")
	}
	bad.Close()
	bad.Close()
}

// Numbers below 0 are told of at once: with such a limit a connection would hang.
func TestNegativeNumbers(t *testing.T) {
	for name, e := range map[string]*rondo.Engine{
		"NumLoops": {NumLoops: -1}, "MaxInput": {MaxInput: -1}, "MaxOutput": {MaxOutput: -1},
		"HighWater": {HighWater: -1}, "LowWater": {LowWater: -1},
		"ReceiveBuffers": {ReceiveBuffers: -1},
	} {
		if err := e.Start(); err == nil || !strings.Contains(err.Error(), "Engine."+name+" is -1") {
			t.Errorf("Start with %s of -1: %v", name, err)
		}
		e.Close()
	}
}

// A resolver is what a Resolver does, by function.
type resolver func() ([]netip.Addr, error)

func (f resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return f() }

// While Listen looks a name up its engine's connections are served.
func TestListenLooksUpOffTheLoop(t *testing.T) {
	looking, found := make(chan struct{}), make(chan struct{})
	e := &rondo.Engine{NumLoops: 1, Resolver: resolver(func() ([]netip.Addr, error) {
		close(looking)
		<-found
		return []netip.Addr{netip.IPv6Loopback(), netip.MustParseAddr("127.0.0.1")}, nil
	})}
	c := connTo(t, e, echo)
	listened := make(chan *rondo.Listener, 1)
	go func() {
		ln, err := e.Listen("tcp", "a-name:0", rondo.SocketOptions{}, echo)
		if err != nil {
			t.Error(err)
		}
		listened <- ln
	}()
	<-looking
	echoes(t, c, "meanwhile")
	close(found)
	if ln := <-listened; ln != nil && !strings.HasPrefix(ln.Addr().String(), "127.0.0.1:") {
		t.Errorf("Listen on a name with both families: %v", ln.Addr())
	}
}

// A dial ends though its Resolver, or an address that is a nil pointer, would panic.
func TestDialEndsWhateverHappens(t *testing.T) {
	var local *net.TCPAddr
	for name, try := range map[string]struct {
		address string
		socket  rondo.SocketOptions
		resolve resolver
	}{
		"nil address":     {"127.0.0.1:1", rondo.SocketOptions{LocalAddr: local}, nil},
		"resolver panics": {"a-name:1", rondo.SocketOptions{}, func() ([]netip.Addr, error) { panic("a goat") }},
		"resolver exits":  {"a-name:1", rondo.SocketOptions{}, func() ([]netip.Addr, error) { runtime.Goexit(); return nil, nil }},
	} {
		e := &rondo.Engine{NumLoops: 1, Resolver: try.resolve}
		if _, err := e.Dial(context.Background(), "tcp", try.address, try.socket, echo); err == nil {
			t.Errorf("%s: connected", name)
		}
		e.Close()
	}
	block := make(chan struct{})
	e := &rondo.Engine{NumLoops: 1, Resolver: resolver(func() ([]netip.Addr, error) { <-block; return nil, io.EOF })}
	defer e.Close()
	defer close(block)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := e.Dial(ctx, "tcp", "a-name:1", rondo.SocketOptions{}, echo); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A loop that has nothing to do does not hold what was posted to it last.
func TestIdleLoopLetsGoOfPosts(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	e.Start()
	defer e.Close()
	freed := make(chan struct{})
	func() {
		p := new([1 << 20]byte)
		runtime.SetFinalizer(p, func(*[1 << 20]byte) { close(freed) })
		for l := range e.Loops() {
			done := make(chan struct{})
			l.Post(func() { p[0] = 1; close(done) })
			<-done
		}
	}()
	for {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// What lies behind the bytes given to PrefixConn is the caller's.
func TestUnreadKeepsTheCallersMemory(t *testing.T) {
	mine := make([]byte, 32<<10)
	near, far := net.Pipe()
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	got := make(chan int, 1)
	_, err := e.Attach(rondo.PrefixConn(near, mine[:2000]), func(c *rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if len(in) < 5000 {
				return 0, nil
			}
			got <- len(in)
			return len(in), nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	far.Write([]byte(strings.Repeat("z", 3000)))
	if n := <-got; n != 5000 {
		t.Errorf("%d bytes of 5,000", n)
	}
	if i := strings.IndexByte(string(mine), 'z'); i >= 0 {
		t.Errorf("memory behind Unread's bytes was written to, at %d", i)
	}
}

// A connection without a descriptor that moves to a loop that is closing is closed.
func TestMoveToAClosingLoop(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	a, b := &rondo.Engine{NumLoops: 1, Logger: quiet}, &rondo.Engine{NumLoops: 1, Logger: quiet}
	defer a.Close()
	b.Start()
	near, far := net.Pipe()
	ref, err := a.Attach(near, func(*rondo.Conn) rondo.Handler { return &closes{} })
	if err != nil {
		t.Fatal(err)
	}
	var to *rondo.Loop
	for l := range b.Loops() {
		to = l
	}
	b.Close()
	ref.Do(func(c *rondo.Conn) {
		if err := c.Move(to, echo); err != nil {
			t.Error(err)
		}
	})
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer of a connection that moved to a closed loop read %v", err)
	}
}

// closes is a Handler that counts its ends.
type closes struct{ n atomic.Int32 }

func (c *closes) Data(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }
func (c *closes) Closed(*rondo.Conn, error)                  { c.n.Add(1) }

// A release function takes a connection at the end of another one, whose place on the
// loop that one gets.
func TestReleaseAttachesAtTheEnd(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 1 << 30}
	near, far := net.Pipe()
	attached := make(chan error, 1)
	c := connTo(t, e, func(c *rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			l := c.Loop()
			return len(in), c.WriteOwned(make([]byte, 64<<20), func() {
				_, err := l.Attach(near, echo)
				attached <- err
			})
		})
	})
	c.Write([]byte("x"))
	io.ReadFull(c, make([]byte, 1))
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
	if err := <-attached; err != nil {
		t.Fatal(err)
	}
	echoes(t, far, "attached")
	// The first connection's write has failed. It goes when its input ends too.
	for looks := 0; ; looks++ {
		n := make(chan int, 1)
		for l := range e.Loops() {
			l.Post(func() {
				k := 0
				for range l.Conns() {
					k++
				}
				n <- k
			})
		}
		k := <-n
		if k == 1 {
			return
		}
		if looks == 5000 {
			t.Fatalf("the loop has %d connections, one is open", k)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestPostOfTheEnd: a post that was taken is called, also if another one in the loop's
// last turn has called runtime.Goexit.
func TestPostOfTheEnd(t *testing.T) {
	for _, name := range backends() {
		e := &rondo.Engine{NumLoops: 1, Backend: name}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		var taken, called bool
		for l := range e.Loops() {
			l.Post(func() {
				e.Close()
				l.Post(func() { taken = l.Post(func() { called = true }) == nil })
				l.Post(runtime.Goexit)
				l.Post(func() {})
			})
		}
		e.Wait()
		if taken && !called {
			t.Errorf("%s: a post was taken, and never called", name)
		}
	}
}

// Serve that cannot listen leaves no loop behind.
func TestServeThatFailsLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		if err := rondo.Serve("unix:///no/such/directory/socket", echo); err == nil {
			t.Fatal("Serve returned nil")
		}
		if err := rondo.ServePackets("unixgram:///no/such/directory/socket", nil); err == nil {
			t.Fatal("ServePackets returned nil")
		}
	}
	until(t, "the end of the loops", func() bool { return runtime.NumGoroutine() <= before })
}

// An engine does not hold what a listener that was closed had.
func TestClosedListenersAreForgotten(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	freed := make(chan struct{})
	listen := func(open rondo.OpenFunc) {
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
	}
	func() {
		p := new([1 << 20]byte)
		runtime.SetFinalizer(p, func(*[1 << 20]byte) { close(freed) })
		listen(func(*rondo.Conn) rondo.Handler { p[0] = 1; return nil })
	}()
	for range 3 { // a loop that has nothing to do may hold the last one
		listen(echo)
	}
	until(t, "the listener's memory", func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	})
}

// Bytes put back in front of others leave alone what lies behind them.
func TestUnreadTwiceKeepsTheCallersMemory(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	mine := []byte("headbody")
	nc := rondo.PrefixConn(rondo.PrefixConn(near, []byte("tail")), mine[:4])
	if string(mine) != "headbody" {
		t.Errorf("the caller's memory is %q", mine)
	}
	got := make([]byte, 8)
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != "headtail" {
		t.Errorf("%q, %v", got, err)
	}
}
