//go:build unix

package upgrade_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// A client that Conn.Move is about to take to another loop, when no other one comes any more, goes
// to the new process from there.
func TestMovedClientGoes(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		s, next := newServer(t, backend, 0), newServer(t, backend, 0)
		called, goOn := make(chan bool, 1), make(chan bool)
		addr, err := s.Listen("tcp", "127.0.0.1:0", nil, func(net.Listener) (*rondo.Listener, error) {
			return s.Engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
				if err := c.Move(slices.Collect(s.Engine.Loops())[0], open); err != nil {
					t.Error(err)
				}
				called <- true
				<-goOn
				return open(c)
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		ends := pair(t)
		gave := make(chan error, 1)
		go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
		if err := next.TakeOver(t.Context(), ends[1]); err != nil {
			t.Fatal(err)
		}
		nc := dial(t, "tcp://"+addr.String())
		<-called
		if _, err := listen(next, "tcp://127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		took := make(chan error, 1)
		go func() { took <- next.Receive() }()
		time.Sleep(200 * time.Millisecond) // in which the other loop finds that nothing comes
		close(goOn)
		if err := errors.Join(<-gave, <-took); err != nil {
			t.Fatal(err)
		}
		if n := s.Engine.Stats().Open; n > 0 {
			t.Errorf("%d clients stay in the old process", n)
		}
		testkit.Echoes(t, nc, "a")
	})
}

// leaver is a Handler that takes its time to hear that its connection has left.
type leaver struct {
	rondo.HandlerFunc
	begun chan<- bool
	end   <-chan bool
}

func (l leaver) Closed(*rondo.Conn, error) {
	l.begun <- true
	<-l.end
}

// Stay waits for a connection that is on its way between two loops.
func TestStayAwaitsMove(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		s := newServer(t, backend, 0)
		begun, end := make(chan bool, 1), make(chan bool)
		addr, err := s.Listen("tcp", "127.0.0.1:0", nil, func(net.Listener) (*rondo.Listener, error) {
			return s.Engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
				if err := c.Move(slices.Collect(s.Engine.Loops())[0], open); err != nil {
					t.Error(err)
				}
				return leaver{begun: begun, end: end}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		nc := dial(t, "tcp://"+addr.String())
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := s.Stay(ctx, nil); err == nil {
			t.Error("Stay says that all connections have ended")
		}
		close(end)
		testkit.Echoes(t, nc, "a")
	})
}
