//go:build unix

package rondo_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

func TestUnixSocketFile(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			leaveStale(t, path)
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			ln, err := e.Listen("unix", path, rondo.SocketOptions{UnixMode: 0o620}, echo)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o620 {
				t.Errorf("mode of the socket's file is %v, want 0620", info.Mode().Perm())
			}
			c := roundTrip(t, "unix", path, "hello")
			if c.RemoteAddr().String() != ln.Addr().String() {
				t.Errorf("Addr is %v, and clients see %v", ln.Addr(), c.RemoteAddr())
			}

			// A file that a server has open is not replaced.
			other := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer other.Close()
			if _, err := other.Listen("unix", path, rondo.SocketOptions{}, echo); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("listening on a socket in use: %v", err)
			}
			roundTrip(t, "unix", path, "still here")

			ln.Close()
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the socket's file outlived its listener: %v", err)
			}
		})
	}
}

// leaveStale leaves a socket's file as a killed server does.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}

// TestUnixKeepsOtherFiles: what is not a socket is not replaced.
func TestUnixKeepsOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	var e rondo.Engine
	defer e.Close()
	if _, err := e.Listen("unix", path, rondo.SocketOptions{}, echo); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening on a file that is no socket: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "data" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

// TestUnixFileGoesWithTheEngine: also when it is closed without its listeners.
func TestUnixFileGoesWithTheEngine(t *testing.T) {
	for _, backend := range backends() {
		path := filepath.Join(t.TempDir(), "s")
		e := &rondo.Engine{Backend: backend, NumLoops: 2}
		if _, err := e.Listen("unix", path, rondo.SocketOptions{}, echo); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, "unix", path, "hello")
		e.Close()
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: the socket's file outlived the engine: %v", backend, err)
		}
	}
}

// TestSeveralAddresses serves TCP of both families and unix with one engine, and
// tells each connection where it came in.
func TestSeveralAddresses(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 2}
			defer e.Close()
			who := func(c *rondo.Conn) rondo.Handler {
				return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
					c.Write([]byte(c.LocalAddr().Network() + " " + c.LocalAddr().String() + " " + c.RemoteAddr().String()))
					return len(in), nil
				})
			}
			listen := func(network, address string) net.Addr {
				ln, err := e.Listen(network, address, rondo.SocketOptions{}, who)
				if err != nil {
					t.Fatalf("listen %s %s: %v", network, address, err)
				}
				return ln.Addr()
			}
			ask := func(network, address string) {
				t.Helper()
				c, err := net.Dial(network, address)
				if err != nil {
					t.Fatalf("dial %s %s: %v", network, address, err)
				}
				defer c.Close()
				c.Write([]byte("?"))
				b := make([]byte, 200)
				n, err := c.Read(b)
				if err != nil {
					t.Fatal(err)
				}
				want := c.RemoteAddr().Network() + " " + c.RemoteAddr().String() + " " + c.LocalAddr().String()
				if got := strings.TrimSpace(string(b[:n])); got != strings.TrimSpace(want) && network != "unix" {
					t.Errorf("%s %s: the server sees %q, the client %q", network, address, got, want)
				}
			}
			v4, v6 := listen("tcp4", "127.0.0.1:0"), listen("tcp6", "[::1]:0")
			ask("tcp", v4.String())
			ask("tcp", v6.String())
			_, port, _ := net.SplitHostPort(listen("tcp", ":0").String())
			ask("tcp4", "127.0.0.1:"+port)
			ask("tcp6", "[::1]:"+port)
			path := filepath.Join(t.TempDir(), "s")
			listen("unix", path)
			ask("unix", path)
			if runtime.GOOS == "linux" {
				name := "@rondo-test-" + filepath.Base(filepath.Dir(path)) + backend + v4.String()
				listen("unix", name)
				ask("unix", name)
			}
		})
	}
}

// preacher answers all that comes, and counts what came after a write had failed.
type preacher struct {
	late  int
	ended chan error
}

func (p *preacher) Data(c *rondo.Conn, in []byte) (int, error) {
	if _, err := c.Write(in); err != nil {
		p.late += len(in)
	}
	return len(in), nil
}

func (p *preacher) Closed(_ *rondo.Conn, err error) { p.ended <- err }

// TestUnixEndlessInput: a peer that reads nothing more, so that a write fails, and sends for
// ever is read for the linger time and no longer.
func TestUnixEndlessInput(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a write fails here only when the peer has closed")
	}
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			const linger = 100 * time.Millisecond
			e := &rondo.Engine{Backend: backend, NumLoops: 1, Linger: linger}
			defer e.Close()
			h := &preacher{ended: make(chan error, 1)}
			path := filepath.Join(t.TempDir(), "s")
			if _, err := e.Listen("unix", path, rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler { return h }); err != nil {
				t.Fatal(err)
			}
			peer, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			peer.(*net.UnixConn).CloseRead()
			began := time.Now()
			go func() {
				for err := error(nil); err == nil; {
					_, err = peer.Write(make([]byte, 1000))
				}
			}()
			if err := <-h.ended; !errors.Is(err, syscall.EPIPE) {
				t.Errorf("Closed got %v", err)
			}
			if d := time.Since(began); d < linger {
				t.Errorf("the connection ended after %v, before the linger time", d)
			}
			if h.late < 5000 {
				t.Errorf("%d bytes were read after the write had failed", h.late)
			}
		})
	}
}
