package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// A lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// The watchdog gets a sign of life for each tick as long as every loop runs what is posted to it.
func TestWatch(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	loops := slices.Collect(e.Loops())
	var out lockedBuffer
	ticks, signs := make(chan time.Time), make(chan string, 10)
	ended := make(chan struct{})
	go func() {
		watch(loops, ticks, time.Millisecond, slog.New(slog.NewTextHandler(&out, nil)), func() { signs <- "alive" })
		close(ended)
	}()
	sign := func() {
		t.Helper()
		select {
		case <-signs:
		case <-time.After(patience):
			t.Fatalf("no sign of life:\n%s", out.text())
		}
	}
	for range 3 {
		ticks <- time.Time{}
		sign()
	}
	block, begun := make(chan struct{}), make(chan struct{})
	loops[1].Post(func() { close(begun); <-block })
	<-begun
	ticks <- time.Time{}
	told := fmt.Sprintf("a loop does not answer: systemd's watchdog gets no sign of life\" loop=%d", loops[1].ID())
	for end := time.Now().Add(patience); !strings.Contains(out.text(), told); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q in the log:\n%s", told, out.text())
		}
	}
	if len(signs) > 0 {
		t.Error("a sign of life while a loop is blocked")
	}
	close(block)
	sign()
	// Loops that have ended do not count: the program goes on to shut down.
	e.Close()
	ticks <- time.Time{}
	sign()
	close(ticks)
	<-ended
}

// Which of systemd's sockets an address of a flag is for.
func TestListensAt(t *testing.T) {
	tcp := func(ip string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }
	for _, c := range []struct {
		addr  net.Addr
		flags string
		want  bool
	}{
		{tcp("127.0.0.1", 80), "tcp://127.0.0.1:80", true},
		{tcp("127.0.0.1", 80), "127.0.0.1:80", true},
		{tcp("127.0.0.1", 80), "tcp4://127.0.0.1:80", true},
		{tcp("127.0.0.1", 80), "127.0.0.1:81", false},
		{tcp("127.0.0.1", 80), "127.0.0.1:0", false},
		{tcp("127.0.0.1", 80), ":80", false},
		{tcp("127.0.0.1", 80), "unix://127.0.0.1:80", false},
		{tcp("::", 80), ":80", true},
		{tcp("::", 80), "tcp6://:80", true},
		{tcp("::", 80), "tcp4://:80", false},
		{tcp("::", 80), "[::]:80", true},
		{tcp("::", 80), "0.0.0.0:80", false},
		{tcp("::1", 80), "[::1]:80", true},
		{tcp("0.0.0.0", 80), ":80", true},
		{tcp("0.0.0.0", 80), "tcp4://:80", true},
		{tcp("0.0.0.0", 80), "tcp6://:80", false},
		{tcp("0.0.0.0", 80), "127.0.0.1:80", false},
		{&net.UnixAddr{Net: "unix", Name: "/run/s"}, "unix:///run/s", true},
		{&net.UnixAddr{Net: "unix", Name: "@s"}, "unix://@s", true},
		{&net.UnixAddr{Net: "unix", Name: "/run/s"}, "unix:///run/t", false},
		{&net.UnixAddr{Net: "unix", Name: "/run/s"}, ":80", false},
		{nil, ":80", false},
	} {
		network, address, err := rondo.ParseAddress(c.flags)
		if err != nil {
			t.Fatal(err)
		}
		if got := listensAt(c.addr, network, address); got != c.want {
			t.Errorf("a socket at %v is for %s: %t, want %t", c.addr, c.flags, got, c.want)
		}
	}
}
