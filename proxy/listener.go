package proxy

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/upgrade"
)

// A listener is a Listener that listens.
type listener struct {
	server   *Server
	settings Listener // as Apply first got it
	socket   *upgrade.Socket
	rules    atomic.Pointer[rules]

	// Counters; see ListenerStats.
	open           atomic.Int64
	total, refused atomic.Uint64
}

var errListenerFull = errors.New("proxy: the listener has as many connections as it may")

// accept is the OpenFunc of clients.
func (l *listener) accept(c *rondo.Conn) rondo.Handler {
	r := l.rules.Load()
	if n := l.open.Add(1); r.most > 0 && n > int64(r.most) {
		l.open.Add(-1)
		l.refused.Add(1)
		c.Abort(errListenerFull)
		return nil
	}
	l.total.Add(1)
	l.server.unserved.Add(1)
	s := &session{listener: l, loop: c.Loop(), client: c, search: newSearch()}
	s.began = s.now()
	if r.accept != nil {
		c.Use(func(*rondo.Conn) rondo.Handler { s.start(l.rules.Load()); return s }, r.accept)
	} else {
		s.start(r)
	}
	return s
}

// listen opens the listener, or takes the sockets that another process has passed.
func (l *listener) listen() error {
	s, set := l.server, &l.settings
	l.socket = upgrade.NewSocket(set.Network, set.Address)
	return l.socket.Open(s.from, func(f *os.File) (upgrade.Part, error) {
		ln, err := l.openOn(f)
		return upgrade.Stream(ln), err
	})
}

// openOn opens a Listener: of a socket that another process has passed, unless f is nil, or of one
// that the service manager has passed, or of a new one.
func (l *listener) openOn(f *os.File) (*rondo.Listener, error) {
	s, set := l.server, &l.settings
	if f != nil {
		ln, err := net.FileListener(f)
		if err != nil {
			return nil, err
		}
		return s.Engine.AttachListener(ln, set.Socket, l.accept)
	}
	if s.Inherited != nil {
		if ln := s.Inherited(set.Network, set.Address); ln != nil {
			l.socket.Lent = true
			return s.Engine.AttachListener(ln, set.Socket, l.accept)
		}
	}
	return s.Engine.Listen(set.Network, set.Address, set.Socket, l.accept)
}

// close closes the listener.
func (l *listener) close() { l.socket.Close() }
