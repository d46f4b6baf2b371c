package rondo_test

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
)

// echo serves every connection by sending back what comes.
func echo(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) }

// echoReads is a coroutine that does so.
func echoReads(_ *coro.Co, c net.Conn) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// backends are this platform's.
func backends() []string { return pick.Available() }

// connTo connects to a server of e's that is served by open.
func connTo(t testing.TB, e *rondo.Engine, open rondo.OpenFunc) net.Conn {
	t.Helper()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func roundTrip(t *testing.T, network, address, msg string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	echoes(t, c, msg)
	return c
}

// echoes wants msg back.
func echoes(t *testing.T, c net.Conn, msg string) {
	t.Helper()
	if _, err := c.Write([]byte(msg)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := c.Read(b); err != nil || string(b[:n]) != msg {
		t.Fatalf("echo of %q: %q, %v", msg, b[:n], err)
	}
}

// lockedBuffer is for an engine's log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// until waits for what another goroutine does.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for begin := time.Now(); !cond(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("waited 30 s in vain for: %s", what)
		}
	}
}
