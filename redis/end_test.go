package redis

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// Close returns also when the engine closes at the same time, and the loop of the keys
// ends before one that has clients.
func TestCloseBesideTheEngines(t *testing.T) {
	s := &Server{Engine: &rondo.Engine{NumLoops: 2}, Logger: slog.New(slog.DiscardHandler)}
	ln, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // one for each loop
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			t.Fatal(err)
		}
		if line := readLine(t, c); string(line) != "+PONG\r\n" {
			t.Fatalf("%q", line)
		}
	}
	loops := slices.Collect(s.Engine.Loops())
	held, hold := make(chan struct{}), make(chan struct{})
	loops[1].Post(func() { close(held); <-hold })
	<-held
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for stopping := false; !stopping; {
		done := make(chan struct{})
		loops[0].Post(func() { stopping = s.clients.stopping; close(done) })
		<-done
	}
	engineClosed := make(chan error)
	go func() { engineClosed <- s.Engine.Close() }()
	for loops[0].Post(func() {}) == nil {
		runtime.Gosched()
	}
	close(hold)
	if err := <-engineClosed; err != nil {
		t.Error(err)
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("Server.Close waits for clients that nobody counts any more")
	}
}

// On a loop Shutdown and Close would wait for themselves: they panic, and nothing has
// changed.
func TestShutdownOnALoop(t *testing.T) {
	s := &Server{Engine: &rondo.Engine{NumLoops: 2}, Logger: slog.New(slog.DiscardHandler)}
	defer s.Engine.Close()
	ln, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for l := range s.Engine.Loops() {
		for _, end := range []func(){func() { s.Close() }, func() { s.Shutdown(context.Background()) }} {
			told := make(chan string)
			l.Post(func() {
				defer func() { told <- fmt.Sprint(recover()) }()
				end()
			})
			if text := <-told; !strings.HasPrefix(text, fmt.Sprintf("redis: Server.Shutdown or Close was called on loop %d", l.ID())) {
				t.Errorf("panicked with %q", text)
			}
		}
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if line := readLine(t, c); string(line) != "+PONG\r\n" {
		t.Errorf("%q", line)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
