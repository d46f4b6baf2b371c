//go:build linux

package goev

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/compat/goev/netfd"
	"github.com/rondo-go/rondo/internal/testkit"
)

// Connect tells of each connection once: of its success or of its failure.
func TestConnector(t *testing.T) {
	r := reactor(t, EvPollNum(2))
	c, err := NewConnector(r, SockRcvBufSize(8<<10))
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan string, 100)
	connect := func(addr string, timeout int64) error {
		h := &handler{r: r, refused: func(err error) { results <- err.Error() }}
		h.opened = func(h *handler) bool {
			results <- "open"
			return r.AddEvHandler(h, h.Fd(), EvIn) == nil
		}
		h.read = func(h *handler) bool {
			buf, n, _ := h.Read()
			if n > 0 {
				results <- string(buf)
			}
			return n != 0
		}
		h.ended = func(*handler) { results <- "closed" }
		return c.Connect(addr, h, timeout)
	}
	greeting := func(network string) net.Addr {
		return acceptor(t, r, network, func() EvHandler {
			h := &handler{}
			h.opened = func(h *handler) bool { h.Write([]byte("hello")); return false }
			return h
		})
	}
	for _, network := range []string{"tcp", "unix"} {
		addr := greeting(network).String()
		if network == "unix" {
			addr = "unix:" + addr
		}
		if err := connect(addr, 10000); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"open", "hello", "closed"} {
			if got := receive(t, results); got != want {
				t.Fatalf("%s: %q, want %q", network, got, want)
			}
		}
	}

	if err := connect(testkit.FreeAddress(t), 10000); err != nil {
		results <- ErrConnectFail.Error() // at once
	}
	if got := receive(t, results); got != ErrConnectFail.Error() {
		t.Errorf("refused: %q", got)
	}

	full := fullListener(t)
	if err := connect(full, 30); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, results); got != ErrConnectTimeout.Error() {
		t.Errorf("no answer: %q", got)
	}
	if err := connect(full, 0); err != ErrConnectInprogress {
		t.Errorf("without a timeout: %v", err)
	}
	time.Sleep(2 * time.Millisecond)
	for _, addr := range []string{"", "1.2.3.4", "localhost:80", "unix:/nowhere/s"} {
		if connect(addr, 1000) == nil {
			t.Errorf("%q is no error", addr)
		}
	}
	if connect(full, -1) == nil {
		t.Error("a negative timeout is no error")
	}
	if len(results) > 0 {
		t.Errorf("then %q", <-results)
	}
}

// fullListener is the address of a socket whose queue is full: it does not answer.
func fullListener(t *testing.T) string {
	t.Helper()
	fd, err := socket(unix.AF_INET, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	addr := netfd.LocalAddr(fd)
	for range 20 {
		c, err := net.DialTimeout("tcp", addr, 50*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the queue does not fill")
	return ""
}
