//go:build unix

package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/internal/upgrade"
)

// A counting echoes, and answers "?" by how many bytes it has echoed, in whichever process.
// A "!" makes it stay until the next byte.
type counting struct {
	bridge.Ours
	n     int
	stays bridge.CanLeave
}

func (h *counting) Data(c *rondo.Conn, in []byte) (int, error) {
	if string(in) == "?" {
		fmt.Fprintf(c, "%d", h.n)
		return 1, nil
	}
	h.n += len(in)
	h.stays = bridge.LeavesNow
	if string(in) == "!" {
		h.stays = bridge.LeavesLater
	}
	return c.Write(in)
}

func (h *counting) Closed(*rondo.Conn, error) {}
func (h *counting) Leaves() bridge.CanLeave   { return h.stays }
func (h *counting) State() []byte             { return fmt.Append(nil, h.n) }
func (h *counting) Arrived(state []byte)      { fmt.Sscan(string(state), &h.n) }

func open(*rondo.Conn) rondo.Handler { return &counting{stays: bridge.LeavesNow} }

func echoPacket(c *rondo.PacketConn, p []byte, _ netip.AddrPort) { c.Reply(p) }

// newServer makes a server that does not listen yet.
func newServer(t *testing.T, backend string, balance rondo.Balance) *upgrade.Server {
	t.Helper()
	var log testkit.Log
	s := &upgrade.Server{Engine: &rondo.Engine{Backend: backend, NumLoops: 2, Balance: balance, Logger: log.Logger()}, Name: "test", Arrive: open, Logger: log.Logger()}
	if err := s.Engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		s.Engine.Close()
		if log.String() != "" {
			t.Log(log.String())
		}
	})
	return s
}

// listen listens at addresses, and returns the actual ones.
func listen(s *upgrade.Server, addresses ...string) (got []string, err error) {
	for _, a := range addresses {
		network, address, _ := strings.Cut(a, "://")
		var addr net.Addr
		if network == "udp" || network == "unixgram" {
			addr, err = s.ListenPacket(network, address, rondo.PacketHandlerFunc(echoPacket))
		} else {
			addr, err = s.Listen(network, address, nil, func(ln net.Listener) (*rondo.Listener, error) {
				if ln != nil {
					return s.Engine.AttachListener(ln, rondo.SocketOptions{}, open)
				}
				return s.Engine.Listen(network, address, rondo.SocketOptions{}, open)
			})
		}
		if err != nil {
			return nil, err
		}
		got = append(got, network+"://"+addr.String())
	}
	return got, nil
}

// pair returns the ends of a connection between two processes.
func pair(t *testing.T) (ends [2]*net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "control")
		nc, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = nc.(*net.UnixConn)
	}
	return ends
}

// replace lets next take the place of s.
func replace(t *testing.T, s, next *upgrade.Server, addresses ...string) error {
	t.Helper()
	ends := pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	took := make(chan error, 1)
	go func() {
		err := next.TakeOver(ctx, ends[1])
		if err == nil {
			if _, err = listen(next, addresses...); err == nil {
				err = next.Receive()
			}
			next.Abandon()
		}
		took <- err
	}()
	gave := s.HandOver(ctx, ends[0])
	return errors.Join(gave, <-took)
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	network, address, _ := strings.Cut(address, "://")
	var local net.Addr
	if network == "unixgram" { // for the answer
		local = &net.UnixAddr{Net: network, Name: filepath.Join(shortDir(t), "client")}
	}
	c, err := (&net.Dialer{LocalAddr: local}).Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// shortDir is a directory with a name that is short enough for unix sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "up")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func eachBackend(t *testing.T, test func(t *testing.T, backend string)) {
	for _, backend := range pick.Names() {
		t.Run(backend, func(t *testing.T) { test(t, backend) })
	}
}

// Clients of all networks talk while one server after another takes over. No byte is lost, the
// Handlers' states go along, and the last server removes the sockets' files.
func TestGenerations(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		for _, balance := range []rondo.Balance{rondo.RoundRobin, rondo.ReusePort} {
			dir := shortDir(t)
			given := []string{"tcp://127.0.0.1:0", "unix://" + filepath.Join(dir, "s"), "udp://127.0.0.1:0", "unixgram://" + filepath.Join(dir, "g")}
			s := newServer(t, backend, balance)
			addresses, err := listen(s, given...)
			if err != nil {
				t.Fatal(err)
			}
			var clients []net.Conn
			for _, a := range addresses {
				for range 5 {
					clients = append(clients, dial(t, a))
				}
			}
			stop := make(chan struct{})
			var all sync.WaitGroup
			counts := make([]int, len(clients))
			for i, c := range clients {
				all.Add(1)
				go func() {
					defer all.Done()
					counts[i] = talk(t, c, stop)
				}()
			}
			for range 3 {
				next := newServer(t, backend, balance)
				if err := replace(t, s, next, given...); err != nil {
					t.Error(err)
				}
				for _, a := range addresses {
					c := dial(t, a)
					testkit.Echoes(t, c, "new")
					c.Close()
				}
				s = next
			}
			close(stop)
			all.Wait()
			for i, c := range clients[:10] { // streams
				testkit.Echoes(t, c, "x")
				io.WriteString(c, "?")
				got := make([]byte, len(fmt.Sprint(counts[i]+1)))
				if _, err := io.ReadFull(c, got); err != nil || string(got) != fmt.Sprint(counts[i]+1) {
					t.Errorf("client %d: %d bytes were echoed, the Handler knows of %s, %v", i, counts[i]+1, got, err)
				}
			}
			s.Close()
			s.Engine.Close()
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("these are left: %v", left)
			}
		}
	})
}

// talk has messages echoed until stop is closed. It returns how many bytes. A datagram may be
// lost when a server takes over; then it is sent again.
func talk(t *testing.T, c net.Conn, stop <-chan struct{}) (n int) {
	packets := strings.HasPrefix(c.LocalAddr().Network(), "u") && c.LocalAddr().Network() != "unix"
	in := make([]byte, 1000)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return n
		default:
		}
		out := []byte(strings.Repeat(string(rune('a'+i%26)), 2+i%900))
		if _, err := c.Write(out); err != nil {
			t.Error(err)
			return n
		}
		if packets {
			c.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := c.Read(in); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
				return n
			}
			continue
		}
		if k, err := io.ReadFull(c, in[:len(out)]); err != nil || string(in[:k]) != string(out) {
			t.Errorf("sent %.10q, got %.10q, %v", out, in[:k], err)
			return n
		}
		n += len(out)
	}
}

// A connection that cannot leave now goes when it can, or stays when the time is over.
func TestLaterAndNever(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		s, next := newServer(t, backend, 0), newServer(t, backend, 0)
		addresses, err := listen(s, "tcp://127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		later, never := dial(t, addresses[0]), dial(t, addresses[0])
		testkit.Echoes(t, later, "!")
		testkit.Echoes(t, never, "!")
		ends := pair(t)
		ctx, cancel := context.WithCancel(t.Context())
		took, gave := make(chan error, 1), make(chan error, 1)
		go func() {
			err := next.TakeOver(t.Context(), ends[1])
			if err == nil {
				_, err = listen(next, "tcp://127.0.0.1:0")
			}
			took <- errors.Join(err, next.Receive())
		}()
		go func() { gave <- s.HandOver(ctx, ends[0]) }()
		testkit.Until(t, "the new server accepts", func() bool {
			c := dial(t, addresses[0])
			defer c.Close()
			testkit.Echoes(t, c, "a")
			return next.Engine.Stats().Accepted > 0
		})
		testkit.Echoes(t, later, "b")
		testkit.Until(t, "the connection has gone", func() bool { return s.Engine.Stats().Detached > 0 && next.Engine.Stats().Attached > 0 })
		testkit.Echoes(t, later, "c")
		cancel()
		if err := errors.Join(<-took, <-gave); err != nil {
			t.Fatal(err)
		}
		testkit.Echoes(t, never, "d")
		never.Close()
		if err := s.Stay(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// A stranger is the other process of an upgrade, which does what a test says.
type stranger struct {
	said map[string]chan struct{} // by kinds, closed when one has come
	mu   sync.Mutex
}

func (s *stranger) Message(_ *fdpass.Channel, in *fdpass.Message) {
	var m struct{ Kind string }
	upgrade.Decode(in.Data, &m)
	upgrade.CloseOnce(s.hears(m.Kind))
}

func (s *stranger) Closed(*fdpass.Channel, error) {}

func (s *stranger) hears(kind string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said[kind] == nil {
		s.said[kind] = make(chan struct{})
	}
	return s.said[kind]
}

// The old server goes on if the new process ends in any phase, or says something wrong. Only a
// connection that has gone is lost.
func TestOldGoesOn(t *testing.T) {
	type step struct{ say, hear string }
	hello, ready := step{`{"Kind":"hello","Version":2,"Name":"test"}`, "sockets"}, step{`{"Kind":"ready","Kept":["tcp|127.0.0.1:0"]}`, "conn"}
	for _, c := range []struct {
		name  string
		steps []step
		loses bool // connections that have gone
		want  string
	}{
		{"nothing", nil, false, "has ended"},
		{"hello", []step{{hello.say, ""}}, false, ""},
		{"sockets", []step{hello}, false, ""},
		{"ready", []step{hello, {ready.say, ""}}, true, ""},
		{"conn", []step{hello, ready}, true, ""},
		{"end", []step{hello, {ready.say, "end"}}, true, ""},
		{"another name", []step{{`{"Kind":"hello","Version":2,"Name":"other"}`, "back"}}, false, "another server"},
		{"another version", []step{{`{"Kind":"hello","Version":1,"Name":"test"}`, "back"}}, false, "another server"},
		{"done at once", []step{hello, {`{"Kind":"done"}`, "back"}}, false, "cannot be understood"},
		{"no JSON", []step{hello, {`{"Kind":`, "back"}}, false, "cannot be understood"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, other := newServer(t, "", 0), newServer(t, "", 0)
			addresses, err := listen(s, "tcp://127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var clients []net.Conn
			for range 40 {
				c := dial(t, addresses[0])
				testkit.Echoes(t, c, "a")
				clients = append(clients, c)
			}
			ends := pair(t)
			gave := make(chan error, 1)
			go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
			str, ch := &stranger{said: make(map[string]chan struct{})}, upgrade.NewChannel()
			for l := range other.Engine.Loops() {
				if err := ch.Open(l, ends[1], str); err != nil {
					t.Fatal(err)
				}
				break
			}
			for _, step := range c.steps {
				ch.Send(append([]byte{0, 0, 0, byte(len(step.say))}, step.say...))
				if step.hear != "" && step.hear != "back" {
					<-str.hears(step.hear)
				}
			}
			if len(c.steps) == 0 || c.steps[len(c.steps)-1].hear != "back" {
				ch.Do(func() { ch.Pass.Abort(nil) })
			}
			if err := <-gave; err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "this process goes on") {
				t.Errorf("HandOver: %v, want %q", err, c.want)
			}
			lost := 0
			for _, c := range clients {
				io.WriteString(c, "b")
				if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
					lost++
				}
			}
			if lost > 0 && !c.loses {
				t.Errorf("%d clients are lost", lost)
			}
			testkit.Echoes(t, dial(t, addresses[0]), "new")
			next := newServer(t, "", 0)
			if err := replace(t, s, next, "tcp://127.0.0.1:0"); err != nil {
				t.Errorf("the next upgrade: %v", err)
			}
			testkit.Echoes(t, dial(t, addresses[0]), "newer")
		})
	}
}

// A new process that cannot listen somewhere leaves all to the old one.
func TestNewCannotListen(t *testing.T) {
	s, next := newServer(t, "", 0), newServer(t, "", 0)
	addresses, err := listen(s, "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, addresses[0])
	testkit.Echoes(t, c, "a")
	err = replace(t, s, next, addresses[0]) // which is not how the old one was told
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("two servers at an address: %v", err)
	}
	next.Engine.Close()
	testkit.Echoes(t, c, "b")
	testkit.Echoes(t, dial(t, addresses[0]), "c")
}

// Close ends an upgrade that is under way.
func TestCloseEndsAnUpgrade(t *testing.T) {
	s := newServer(t, "", 0)
	if _, err := listen(s, "tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ends := pair(t)
	defer ends[1].Close()
	gave := make(chan error, 1)
	go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
	time.Sleep(10 * time.Millisecond)
	s.Close()
	if err := <-gave; err == nil {
		t.Error("HandOver succeeded without another process")
	}
	if err := s.HandOver(t.Context(), pair(t)[0]); err == nil || !strings.Contains(err.Error(), "nothing listens") {
		t.Errorf("HandOver of a closed server: %v", err)
	}
}
