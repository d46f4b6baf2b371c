// Package testkit has what the tests of several packages share: servers and clients on real
// sockets, an engine's log, and programs that end.
package testkit

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// patience is how long a client waits for what must come.
const patience = time.Minute

// Echo serves every connection by sending back what comes. Its Handlers keep nothing, so
// any loop may call them.
func Echo(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) }

// Listen serves TCP connections with e, until the test ends.
func Listen(t testing.TB, e *rondo.Engine, open rondo.OpenFunc) (address string) {
	t.Helper()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ln.Addr().String()
}

// Dial connects to a TCP server.
func Dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	return dial(t, "tcp", address).(*net.TCPConn)
}

func dial(t testing.TB, network, address string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// ConnTo connects to a server of e's that is served by open.
func ConnTo(t testing.TB, e *rondo.Engine, open rondo.OpenFunc) net.Conn {
	t.Helper()
	return Dial(t, Listen(t, e, open))
}

// RoundTrip connects to a server and has msg echoed.
func RoundTrip(t testing.TB, network, address, msg string) net.Conn {
	t.Helper()
	c := dial(t, network, address)
	Echoes(t, c, msg)
	return c
}

// Echoes sends msg and wants it back.
func Echoes(t testing.TB, c net.Conn, msg string) {
	t.Helper()
	if _, err := io.WriteString(c, msg); err != nil {
		t.Fatalf("write of %.40q: %v", msg, err)
	}
	got := make([]byte, len(msg))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != msg {
		t.Fatalf("echo of %.40q: %.40q, %v", msg, got[:n], err)
	}
}

// A Log is an engine's, which a test may read meanwhile.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Logger writes to it.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// FreeAddress returns a TCP address at which nobody listens. Its port is none of those that the system
// gives to clients and to listeners of port 0, so it stays free.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", 11_000+rand.IntN(20_000)))
		if err == nil {
			ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Until waits for what another goroutine does.
func Until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for begin := time.Now(); !cond(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("waited 30 s in vain for: %s", what)
		}
	}
}

// Run builds and runs a program of the package's testdata, and returns what it printed.
func Run(t testing.TB, program string, flags ...string) (string, error) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program")
	args := append(append([]string{"build"}, flags...), "-o", exe, "./testdata/"+program)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
