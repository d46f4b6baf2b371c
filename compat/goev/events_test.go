//go:build linux

package goev

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/compat/goev/netfd"
)

// A handler may read and write its descriptor itself, and change its events.
func TestRawDescriptor(t *testing.T) {
	r := reactor(t, EvPollNum(2))
	at := acceptor(t, r, "tcp", func() EvHandler {
		return &handler{r: r, read: func(h *handler) bool {
			p := make([]byte, 100)
			n, err := unix.Read(h.Fd(), p)
			if err == unix.EAGAIN {
				return true
			}
			if n <= 0 {
				return false
			}
			unix.Write(h.Fd(), p[:n])
			return true
		}}
	})
	c := dial(t, at)
	for i := range 20 {
		echoes(t, c, fmt.Sprintf("raw %d\n", i))
	}
	c.(*net.TCPConn).CloseWrite()
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
}

// pipe makes a pipe that does not block.
func pipe(t *testing.T) (r, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p[1]) })
	return p[0], p[1]
}

// AddEvHandler, AppendEvent and RemoveEvent work for any descriptor, on its poller and
// elsewhere.
func TestEvents(t *testing.T) {
	r := reactor(t, EvPollNum(3))
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	read, wrote := make(chan uint64, 1), make(chan bool, 100)
	h := &handler{read: func(h *handler) bool {
		buf, n, _ := h.Read()
		if n == 8 {
			read <- uint64(buf[0])
		}
		return true
	}, write: func(h *handler) bool {
		err := h.GetReactor().RemoveEvent(h.Fd(), EvOut) // on its poller
		wrote <- true
		return err == nil
	}}
	if err := r.AddEvHandler(h, fd, EvEventfd); err != nil || h.Fd() != fd || h.GetReactor() != r {
		t.Fatal(err, h.Fd())
	}
	add := func(n byte) { unix.Write(fd, []byte{n, 0, 0, 0, 0, 0, 0, 0}) }
	for i := range byte(3) {
		add(i + 1)
		if n := receive(t, read); n != uint64(i+1) {
			t.Errorf("read %d", n)
		}
	}
	for range 3 {
		if err := r.AppendEvent(fd, EvOut); err != nil {
			t.Fatal(err)
		}
		receive(t, wrote)
	}
	time.Sleep(2 * time.Millisecond)
	if len(wrote) > 0 {
		t.Error("OnWrite is called after RemoveEvent")
	}
	if err := r.RemoveEvent(fd, EvAll); err != nil {
		t.Fatal(err)
	}
	add(9)
	time.Sleep(2 * time.Millisecond)
	if len(read) > 0 {
		t.Error("OnRead is called after RemoveEvent of all events")
	}
	if r.AppendEvent(fd, EvIn) == nil || r.RemoveEvent(fd, EvIn) == nil {
		t.Error("a descriptor that was removed is still known")
	}
	if err := r.AddEvHandler(h, fd, EvIn); err != nil { // again
		t.Fatal(err)
	}
	if n := receive(t, read); n != 9 {
		t.Errorf("read %d", n)
	}
	h.Destroy(h)
	if h.Fd() != -1 {
		t.Error("Destroy leaves", h.Fd())
	}
	for _, err := range []error{r.AddEvHandler(h, 0, EvIn), r.AddEvHandler(nil, 1, EvIn), r.AppendEvent(0, EvIn),
		r.AppendEvent(1, 0), r.RemoveEvent(0, EvIn), r.RemoveEvent(1, 0), r.AddEvHandler(h, 1<<20, EvIn)} {
		if err == nil {
			t.Error("wrong arguments are no error")
		}
	}
}

// A file cannot be watched, on the poller or elsewhere.
func TestFilesAreRefused(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := reactor(t)
	if err := r.AddEvHandler(&handler{}, int(f.Fd()), EvIn); !errors.Is(err, unix.EPERM) {
		t.Error(err)
	}
	in, out := pipe(t)
	refused := make(chan error, 1)
	h := &handler{read: func(h *handler) bool {
		h.Read()
		refused <- r.AddEvHandler(&handler{}, int(f.Fd()), EvIn)
		return true
	}}
	if err := r.AddEvHandler(h, in, EvIn); err != nil {
		t.Fatal(err)
	}
	defer h.Destroy(h)
	unix.Write(out, []byte("x"))
	if err := receive(t, refused); !errors.Is(err, unix.EPERM) {
		t.Error(err)
	}
}

// EvOutET tells once, and again when output waits.
func TestEdge(t *testing.T) {
	r := reactor(t)
	wrote := make(chan bool, 1000)
	var server atomic.Pointer[handler]
	at := acceptor(t, r, "tcp", func() EvHandler {
		h := &handler{write: func(h *handler) bool {
			wrote <- true
			h.AsyncOrderedFlush(h)
			return true
		}}
		h.opened = func(h *handler) bool {
			server.Store(h)
			return r.AddEvHandler(h, h.Fd(), EvInET|EvOutET) == nil
		}
		h.read = echo
		return h
	})
	c := dial(t, at)
	c.(*net.TCPConn).SetReadBuffer(64 << 10) // or 8 MiB may fit into the system's buffers
	receive(t, wrote)
	time.Sleep(5 * time.Millisecond)
	if n := len(wrote); n > 0 {
		t.Errorf("OnWrite was called %d times more", n)
	}
	echoes(t, c, "hello")
	long, h := make([]byte, 8<<20), server.Load()
	h.AsyncWrite(h, long)
	until(t, "output that waits", func() bool { // a client that reads from the start may keep up
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.waiting
	})
	if _, err := io.ReadFull(c, long); err != nil {
		t.Error(err)
	}
	receive(t, wrote)
}

// What is closed by netfd.Close is closed for the peer, and its number may be used again.
func TestNetfdClose(t *testing.T) {
	r := reactor(t, EvPollNum(2))
	var server atomic.Pointer[handler]
	at := acceptor(t, r, "tcp", func() EvHandler {
		h := &handler{r: r, read: echo}
		server.Store(h)
		return h
	})
	for range 20 {
		c := dial(t, at)
		echoes(t, c, "hello")
		netfd.Close(server.Load().Fd())
		if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
			t.Fatalf("got %q, %v", b, err)
		}
		c.Close()
	}
}

// What needs a poller, before AddEvHandler, is an error or a panic that says so.
func TestNotAdded(t *testing.T) {
	h := &handler{}
	in, _ := pipe(t)
	defer unix.Close(in)
	h.setFd(in)
	if err := h.ScheduleTimer(h, 1, 1); err == nil {
		t.Error("a timer could be scheduled")
	}
	h.CancelTimer(h)
	for name, f := range map[string]func(){
		"Read":       func() { h.Read() },
		"WriteBuff":  func() { h.WriteBuff() },
		"PCachedGet": func() { h.PCachedGet(1) },
		"PCachedSet": func() { h.PCachedSet(1, 1) },
		"AsyncWrite": func() { h.AsyncWrite(h, nil) },
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, name) || !strings.Contains(s, "AddEvHandler") {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f()
		}()
	}
	for name, f := range map[string]func(){
		"OnOpen":        func() { new(IOHandle).OnOpen() },
		"OnRead":        func() { new(IOHandle).OnRead() },
		"OnConnectFail": func() { new(IOHandle).OnConnectFail(nil) },
		"OnTimeout":     func() { new(IOHandle).OnTimeout(0) },
		"OnClose":       func() { new(IOHandle).OnClose() },
		"EvPollNum":     func() { EvPollNum(0) },
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, name) {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f()
		}()
	}
}

// The options of sockets are set.
func TestNetfd(t *testing.T) {
	r := reactor(t)
	fds := make(chan int, 1)
	at := acceptor(t, r, "tcp", func() EvHandler {
		h := &handler{}
		h.opened = func(h *handler) bool { fds <- h.Fd(); return r.AddEvHandler(h, h.Fd(), EvIn) == nil }
		return h
	})
	c := dial(t, at)
	fd := receive(t, fds)
	if l, p := netfd.LocalAddr(fd), netfd.RemoteAddr(fd); l != at.String() || p != c.LocalAddr().String() {
		t.Errorf("addresses %q and %q", l, p)
	}
	err := errors.Join(netfd.SetNoDelay(fd, 1), netfd.SetQuickACK(fd, 1), netfd.SetSendBuffSize(fd, 32<<10),
		netfd.SetKeepAlive(fd, 60, 40, 3), netfd.SetNonblock(fd, true))
	if err != nil {
		t.Error(err)
	}
	for option, want := range map[int]int{unix.TCP_NODELAY: 1, unix.TCP_KEEPIDLE: 60, unix.TCP_KEEPINTVL: 40, unix.TCP_KEEPCNT: 3} {
		if v, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, option); v != want {
			t.Errorf("option %d is %d, %v", option, v, err)
		}
	}
	if netfd.SetKeepAlive(fd, 60, 0, 3) == nil || netfd.SetNoDelay(-1, 1) == nil || netfd.LocalAddr(-1) != "" || netfd.RemoteAddr(-1) != "" {
		t.Error("wrong arguments are no error")
	}
}
