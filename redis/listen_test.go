package redis

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// A Server serves a socket that listens already, and closes it if it cannot.
func TestAttachListener(t *testing.T) {
	socket := func() net.Listener {
		t.Helper()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	s := &Server{Engine: &rondo.Engine{NumLoops: 2}, Logger: slog.New(slog.DiscardHandler)}
	defer s.Engine.Close()
	already := socket()
	c, err := net.Dial("tcp", already.Addr().String()) // waits in the socket
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	ln, err := s.AttachListener(already, rondo.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ln.Addr().String() != already.Addr().String() {
		t.Errorf("the listener is at %v, want %v", ln.Addr(), already.Addr())
	}
	if _, err := c.Write([]byte("CONFIG GET port\r\n")); err != nil {
		t.Fatal(err)
	}
	answer := ""
	for range 5 {
		answer += string(readLine(t, c))
	}
	if port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port); !strings.Contains(answer, "\r\n"+port+"\r\n") {
		t.Errorf("CONFIG GET port answers %q, want %s", answer, port)
	}

	isClosed := func(ln net.Listener) bool { return errors.Is(ln.Close(), net.ErrClosed) }
	bad := socket()
	if _, err := s.AttachListener(bad, rondo.SocketOptions{}, nil); err == nil || !isClosed(bad) {
		t.Errorf("a nil filter: %v", err)
	}
	if _, err := s.AttachListener(nil, rondo.SocketOptions{}); err == nil {
		t.Error("a nil listener is taken")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	late := socket()
	if _, err := s.AttachListener(late, rondo.SocketOptions{}); !errors.Is(err, rondo.ErrClosed) || !isClosed(late) {
		t.Errorf("of a closed server: %v", err)
	}
}
