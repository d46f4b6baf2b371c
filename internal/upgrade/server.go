// Package upgrade lets another process take the place of a server without a refused or a lost
// connection: it passes the listeners, the datagram sockets and the connections of an engine, in
// the middle of their streams. A Server does that for single connections. Old and Taking are the
// two sides alone, for package proxy, which passes pairs.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A Server is what an engine serves, as far as another process may take it over. The Handlers of
// connections that can pass are bridge.Passers; all others stay until they end.
type Server struct {
	// Engine has been started.
	Engine *rondo.Engine
	// Name says what is served. A process of another name cannot take over.
	Name string
	// Arrive makes the Handler of a connection that another process has passed. nil: no
	// connections are passed.
	Arrive rondo.OpenFunc
	// Logger tells of what goes wrong behind an upgrade.
	Logger *slog.Logger

	mu      sync.Mutex
	sockets []*Socket
	old     Old
	from    *Taking // that has begun and not ended
	closed  bool
}

// Listen listens at an address: on the sockets that the other process of TakeOver has passed, or
// else on already, or if that is nil on a new socket. listen makes the Listener, of a socket that
// listens already unless it is nil.
func (s *Server) Listen(network, address string, already net.Listener, listen func(already net.Listener) (*rondo.Listener, error)) (net.Addr, error) {
	k := NewSocket(network, address)
	k.Lent = already != nil
	return s.add(k, func(f *os.File) (Part, error) {
		if f != nil {
			ln, err := net.FileListener(f)
			if err != nil {
				return nil, err
			}
			if already != nil {
				already.Close() // the same socket
				already = nil
			}
			l, err := listen(ln)
			return Stream(l), err
		}
		l, err := listen(already)
		return Stream(l), err
	})
}

// ListenPacket is Listen for datagrams.
func (s *Server) ListenPacket(network, address string, h rondo.PacketHandler) (net.Addr, error) {
	loops, next := slices.Collect(s.Engine.Loops()), 0
	return s.add(NewSocket(network, address), func(f *os.File) (Part, error) {
		if f == nil {
			c, err := s.Engine.ListenPacket(network, address, rondo.SocketOptions{}, h)
			return datagrams{c}, err
		}
		socket, err := net.FilePacketConn(f)
		if err != nil {
			return nil, err
		}
		next++
		c, err := bridge.LoopOf(loops[next%len(loops)]).AttachPacket(network, socket, h)
		if err != nil {
			return nil, err
		}
		return datagrams{c.(*rondo.PacketConn)}, nil
	})
}

// add makes a socket by open, which gets each file that has been passed, or nil.
func (s *Server) add(k *Socket, open func(*os.File) (Part, error)) (net.Addr, error) {
	s.mu.Lock()
	from := s.from
	s.mu.Unlock()
	if err := k.Open(from, open); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = append(s.sockets, k)
	return k.Addr(), nil
}

// HasPassed reports whether another process has passed a socket for an address that Listen and
// ListenPacket have not taken.
func (s *Server) HasPassed(network, address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from.HasPassed(network, address)
}

// HandOver hands the sockets and the connections to another process: to the Server whose TakeOver
// has the other end of nc. It owns nc. No client is refused meanwhile, and none loses a byte.
// Connections that cannot leave now are waited for until ctx ends; then they stay, as do those
// that never can.
//
// When HandOver returns nil this Server is closed, and Stay waits for the connections that stay.
// If it returns an error the other process has not taken over: this one goes on as before, with
// all that has not gone yet. ctx bounds how long the other process may take to be ready. The error
// is context.DeadlineExceeded if that process lives and does not answer, and wraps
// errors.ErrUnsupported where descriptors cannot be passed on.
func (s *Server) HandOver(ctx context.Context, nc *net.UnixConn) error {
	return s.old.HandOver(ctx, nc, &s.mu, func() (*Giving, error) {
		g := &Giving{Name: s.Name, Loops: slices.Collect(s.Engine.Loops()), Sockets: s.sockets, Handed: func() { s.closed = true }}
		if s.Arrive != nil {
			g.Leave = s.leave
		}
		if s.closed || len(s.sockets) == 0 || s.from != nil {
			return g, errNobody
		}
		return g, nil
	})
}

var errNobody = errors.New("nothing listens any more")

// TakeOver begins to take the place of the Server of another process, whose HandOver has the other
// end of nc: it gets the sockets, which Listen and ListenPacket take. Then call Receive. TakeOver
// owns nc. After an error the other Server goes on. ctx bounds how long the other Server may take
// to answer.
func (s *Server) TakeOver(ctx context.Context, nc *net.UnixConn) error {
	t, err := Take(ctx, nc, slices.Collect(s.Engine.Loops()), s.Name, s.Logger, s.took)
	if err != nil {
		return fmt.Errorf("take over: %w", err)
	}
	s.mu.Lock()
	s.from = t
	s.mu.Unlock()
	return nil
}

// Abandon ends what TakeOver has begun: the other process goes on. It does nothing after Receive.
func (s *Server) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from != nil {
		s.from.Abort(errors.New("the new process cannot serve"))
		s.from = nil
	}
}

// Receive says that this process accepts clients, and gets the connections of the other one. It
// returns nil when this Server serves all that the other one could hand over, and the other one
// has closed its sockets or has died. If it returns an error the other Server goes on; this one
// listens no more, and may have got connections. Without TakeOver it does nothing.
func (s *Server) Receive() error {
	s.mu.Lock()
	t, sockets := s.from, slices.Clone(s.sockets)
	s.mu.Unlock()
	if t == nil {
		return nil
	}
	err := t.Receive(sockets)
	s.mu.Lock()
	s.from = nil
	if err == nil {
		for _, k := range s.sockets {
			k.Own()
		}
	}
	s.mu.Unlock()
	if err != nil {
		s.Close()
		return fmt.Errorf("take over: %w", err)
	}
	return nil
}

// Stay waits until all connections have ended and busy, unless it is nil, returns false. If ctx
// ends first, it returns ctx's error: the caller ends the rest.
func (s *Server) Stay(ctx context.Context, busy func() bool) error {
	looks := time.NewTicker(stayPause)
	defer looks.Stop()
	for s.Engine.Stats().Open > 0 || busy != nil && busy() {
		select {
		case <-looks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stayPause is the time between two looks of Stay.
const stayPause = 20 * time.Millisecond

// Close stops listening. Connections go on. It ends a HandOver that is under way, unless the other
// process is ready: then it waits for the end.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old.Await(&s.mu)
	if s.closed {
		return
	}
	s.closed = true
	for _, k := range s.sockets {
		k.Close()
	}
}
