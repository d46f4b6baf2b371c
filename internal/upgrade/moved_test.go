//go:build unix

package upgrade_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

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
