package evio

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The original's own tests, and the comparison with it, are in suite. This file has the
// cases that are in neither.

// start serves events. It returns the addresses, and a function that waits until Serve
// returns.
func start(t *testing.T, events Events, addrs ...string) (at []net.Addr, wait func()) {
	t.Helper()
	serving := make(chan []net.Addr, 1)
	events.Serving = func(s Server) Action {
		serving <- s.Addrs
		return None
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(events, addrs...) }()
	select {
	case at = <-serving:
	case err := <-ended:
		t.Fatal(err)
	}
	return at, func() {
		t.Helper()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("Serve does not return")
		}
	}
}

func dial(t *testing.T, to net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// If Serve cannot listen on an address, it leaves no other address open.
func TestServeFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for range 2 {
		err := Serve(Events{}, "unix://"+path, "tcp://nowhere")
		if err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Fatalf("Serve: %v", err)
		}
		if _, err := net.Dial("unix", path); err == nil {
			t.Fatal("the other address is still served")
		}
	}
}

// Wakes of a connection whose peer reads nothing wait, and are not lost.
func TestWakesWait(t *testing.T) {
	const wakes, size = 500, 64 << 10
	chunk := make([]byte, size)
	conns := make(chan Conn, 2)
	passed := make(chan struct{})
	var calls atomic.Int64
	var first Conn
	at, wait := start(t, Events{
		Opened: func(c Conn) ([]byte, Options, Action) {
			conns <- c
			return nil, Options{}, None
		},
		Data: func(c Conn, in []byte) ([]byte, Action) {
			if c != first {
				close(passed)
				return nil, None
			}
			if calls.Add(1) == wakes {
				return chunk, Shutdown
			}
			return chunk, None
		},
	}, "tcp://127.0.0.1:0")
	a := dial(t, at[0])
	first = <-conns
	dial(t, at[0])
	second := <-conns
	for range wakes {
		first.Wake()
	}
	second.Wake()
	<-passed // by now the loop has all Wakes of the first connection
	if n := calls.Load(); n == wakes {
		t.Errorf("%d MB of output were made for a peer that takes none", n*size>>20)
	}
	if n, err := io.Copy(io.Discard, a); n != wakes*size || err != nil {
		t.Errorf("%d bytes of %d came, %v", n, wakes*size, err)
	}
	wait()
}

// Close, Detach and Shutdown wait for output that a slow peer has not read, and happen as
// soon as it is sent. Meanwhile the connection has no events.
func TestActionsWait(t *testing.T) {
	out := make([]byte, 16<<20)
	for _, scheme := range []string{"tcp", "tcp-net"} {
		for _, action := range []Action{Close, Detach, Shutdown} {
			var asked, over atomic.Int64
			events := Events{
				Data: func(c Conn, in []byte) ([]byte, Action) {
					if in == nil {
						t.Error("a connection was woken after its last action")
						return nil, None
					}
					asked.Add(1)
					c.Wake()
					return out, action
				},
				Closed: func(Conn, error) Action { over.Add(1); return Shutdown },
			}
			if action == Detach {
				events.Detached = func(_ Conn, rwc io.ReadWriteCloser) Action {
					over.Add(1)
					rwc.Close()
					return Shutdown
				}
			}
			at, wait := start(t, events, scheme+"://127.0.0.1:0")
			c := dial(t, at[0])
			io.WriteString(c, "x")
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if n := over.Load(); n != 0 {
				t.Errorf("%s: action %d came about before its output was sent", scheme, action)
			}
			if n, err := io.Copy(io.Discard, c); n != int64(len(out)-1) || err != nil {
				t.Errorf("%s, action %d: %d bytes of %d came, %v", scheme, action, n, len(out)-1, err)
			}
			wait()
			if asked.Load() != 1 || over.Load() != 1 {
				t.Errorf("%s, action %d: %d questions, %d ends, want one of both", scheme, action, asked.Load(), over.Load())
			}
		}
	}
}

// At the peer's end of stream what waits is delivered first, and then Closed called. What Data
// returns, for Wake too, is never lost.
func TestPeerEndsFirst(t *testing.T) {
	const size = 250 << 10 // more than a unix socket holds, and less than what makes the server stop reading
	for _, scheme := range []string{"unix", "unix-net"} {
		conns := make(chan Conn, 1)
		var woken, closed atomic.Int64
		at, wait := start(t, Events{
			Data: func(c Conn, in []byte) ([]byte, Action) {
				if in == nil {
					woken.Add(1)
					return []byte("woken"), None
				}
				conns <- c
				return make([]byte, size), None
			},
			Closed: func(Conn, error) Action { closed.Add(1); return Shutdown },
		}, scheme+"://"+filepath.Join(t.TempDir(), "s"))
		c := dial(t, at[0])
		io.WriteString(c, "x")
		c.(*net.UnixConn).CloseWrite()
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // time for the end, and for a Closed that comes too early
		(<-conns).Wake()
		if closed.Load() != 0 {
			t.Errorf("%s: Closed is called before the output is sent", scheme)
		}
		n, err := io.Copy(io.Discard, c)
		wait()
		if want := size - 1 + woken.Load()*int64(len("woken")); n != want || err != nil {
			t.Errorf("%s: %d bytes of %d came, %v", scheme, n, want, err)
		}
	}
}

// A write's error ends the connection: a peer that stops reading and goes on sending does not
// get questions answered into nothing.
func TestWriteFails(t *testing.T) {
	for _, scheme := range []string{"unix", "unix-net"} {
		var questions, after, ends atomic.Int64
		closed := make(chan error, 1)
		at, wait := start(t, Events{
			Data: func(c Conn, in []byte) ([]byte, Action) {
				questions.Add(1)
				after.Add(ends.Load())
				return []byte("answer"), None
			},
			Closed: func(_ Conn, err error) Action {
				ends.Add(1)
				closed <- err
				return Shutdown
			},
		}, scheme+"://"+filepath.Join(t.TempDir(), "s"))
		c := dial(t, at[0])
		c.(*net.UnixConn).CloseRead()
		for n := int64(1); ; n++ {
			if _, err := io.WriteString(c, "x"); err != nil {
				break
			}
			for questions.Load() < n && ends.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		wait()
		if err := <-closed; !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: Closed(%v), want EPIPE", scheme, err)
		}
		if n := after.Load(); n != 0 || ends.Load() != 1 {
			t.Errorf("%s: %d questions after Closed, %d Closed", scheme, n, ends.Load())
		}
		if n := questions.Load(); n > 20 {
			t.Errorf("%s: %d questions were answered into nothing", scheme, n)
		}
	}
}

// Output written before Shutdown is delivered after Serve has returned.
func TestShutdownDelivers(t *testing.T) {
	out := make([]byte, 8<<20)
	var closed atomic.Int64
	at, wait := start(t, Events{
		Data: func(c Conn, in []byte) ([]byte, Action) {
			if string(in) == "stop" {
				return nil, Shutdown
			}
			return out, None
		},
		Closed: func(Conn, error) Action { closed.Add(1); return None },
	}, "tcp://127.0.0.1:0")
	slow, other := dial(t, at[0]), dial(t, at[0])
	io.WriteString(slow, "all")
	if _, err := io.ReadFull(slow, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	io.WriteString(other, "stop")
	wait()
	if n := closed.Load(); n != 2 {
		t.Errorf("%d connections of 2 are closed when Serve returns", n)
	}
	if n, err := io.Copy(io.Discard, slow); n != int64(len(out)-1) || err != nil {
		t.Errorf("%d bytes of %d came, %v", n, len(out)-1, err)
	}
}

// With ReuseInputBuffer an echo allocates nothing.
func TestEchoAllocatesNothing(t *testing.T) {
	at, wait := start(t, Events{
		Opened: func(Conn) ([]byte, Options, Action) { return nil, Options{ReuseInputBuffer: true}, None },
		Data:   func(_ Conn, in []byte) ([]byte, Action) { return in, None },
		Closed: func(Conn, error) Action { return Shutdown },
	}, "tcp://127.0.0.1:0")
	c := dial(t, at[0])
	p := make([]byte, 64)
	if n := testing.AllocsPerRun(300, func() {
		c.Write(p)
		io.ReadFull(c, p)
	}); n >= 1 {
		t.Errorf("an echo makes %v allocations", n)
	}
	c.Close()
	wait()
}

// Every connection that was opened is closed, whichever loop it is on, and no event
// comes after Serve has returned.
func TestShutdownOfManyLoops(t *testing.T) {
	for _, balance := range []LoadBalance{Random, RoundRobin, LeastConnections} {
		const clients = 40
		var opened, closed atomic.Int64
		var over atomic.Bool
		var mu sync.Mutex
		loops := map[*loop]int{}
		at, wait := start(t, Events{
			NumLoops:    4,
			LoadBalance: balance,
			Opened: func(c Conn) ([]byte, Options, Action) {
				mu.Lock()
				loops[c.(*conn).loop]++
				mu.Unlock()
				if opened.Add(1) == clients {
					return nil, Options{}, Shutdown
				}
				return nil, Options{}, None
			},
			Closed: func(Conn, error) Action {
				closed.Add(1)
				if over.Load() {
					t.Error("Closed was called after Serve had returned")
				}
				return Shutdown // again: the server is already shutting down
			},
		}, "tcp://127.0.0.1:0")
		for range clients {
			dial(t, at[0])
		}
		wait()
		over.Store(true)
		if opened.Load() != clients || closed.Load() != clients {
			t.Errorf("balance %d: opened %d, closed %d, want %d of both", balance, opened.Load(), closed.Load(), clients)
		}
		if balance == RoundRobin {
			for l, n := range loops {
				if n != clients/4 {
					t.Errorf("%d connections on loop %d of 4", n, l.loop.ID())
				}
			}
		}
	}
}
