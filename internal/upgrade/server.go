// Package upgrade lets another process take the place of a server without a refused or a lost
// connection: it passes the listeners, the datagram sockets and the connections of an engine, in
// the middle of their streams. Package proxy has a protocol of its own, for pairs of connections,
// and shares the Channel.
package upgrade

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
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
	sockets []*socket
	handing *handover // under way
	from    *takeover // that has begun and not ended
	closed  bool
}

// A socket listens at one address.
type socket struct {
	key    string
	all    []part // several, if each loop has one
	passed bool   // by another process
	lent   bool   // by the service manager: its file stays
	path   string // of a unix socket's file, to remove at the end
}

// A part is a Listener or a datagram socket.
type part interface {
	addr() net.Addr
	files() ([]*os.File, error)
	keepFile()
	setPaused(on bool)
	close()
}

type stream struct{ *rondo.Listener }

func (s stream) addr() net.Addr             { return s.Addr() }
func (s stream) files() ([]*os.File, error) { return bridge.ListenerOf(s.Listener).Files() }
func (s stream) keepFile()                  { bridge.ListenerOf(s.Listener).KeepFile() }
func (s stream) close()                     { s.Close() }
func (s stream) setPaused(on bool) {
	if on {
		s.Pause()
	} else {
		s.Resume()
	}
}

type datagrams struct{ *rondo.PacketConn }

func (d datagrams) addr() net.Addr             { return d.LocalAddr() }
func (d datagrams) files() ([]*os.File, error) { return bridge.PacketsOf(d.PacketConn).Files() }
func (d datagrams) keepFile()                  { bridge.PacketsOf(d.PacketConn).KeepFile() }
func (d datagrams) setPaused(on bool)          { bridge.PacketsOf(d.PacketConn).SetPaused(on) }
func (d datagrams) close()                     { d.Ref().Close() }

// Listen listens at an address: on the sockets that the other process of TakeOver has passed, or
// else on already, or if that is nil on a new socket. listen makes the Listener, of a socket that
// listens already unless it is nil.
func (s *Server) Listen(network, address string, already net.Listener, listen func(already net.Listener) (*rondo.Listener, error)) (net.Addr, error) {
	return s.add(&socket{key: keyOf(network, address), lent: already != nil}, func(f *os.File) (part, error) {
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
			return stream{l}, err
		}
		l, err := listen(already)
		return stream{l}, err
	})
}

// ListenPacket is Listen for datagrams.
func (s *Server) ListenPacket(network, address string, h rondo.PacketHandler) (net.Addr, error) {
	loops, next := slices.Collect(s.Engine.Loops()), 0
	return s.add(&socket{key: keyOf(network, address)}, func(f *os.File) (part, error) {
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

// HasPassed reports whether another process has passed a socket for an address that Listen and
// ListenPacket have not taken.
func (s *Server) HasPassed(network, address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from != nil && len(s.from.passed[keyOf(network, address)]) > 0
}

func keyOf(network, address string) string { return network + "|" + address }

// add makes a socket by open, which gets each file that has been passed, or nil.
func (s *Server) add(k *socket, open func(*os.File) (part, error)) (net.Addr, error) {
	s.mu.Lock()
	passed := s.from.take(k)
	s.mu.Unlock()
	files := passed
	if k.passed = len(passed) > 0; !k.passed {
		files = []*os.File{nil}
	}
	defer closeFiles(passed)
	for _, f := range files {
		p, err := open(f)
		if err != nil {
			k.close()
			return nil, err
		}
		k.all = append(k.all, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = append(s.sockets, k)
	return k.all[0].addr(), nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// own makes the socket responsible for its file, when the process that made it has gone.
func (k *socket) own() {
	network, address, _ := strings.Cut(k.key, "|")
	if k.passed && !k.lent && strings.HasPrefix(network, "unix") && !strings.HasPrefix(address, "@") {
		k.path = address
	}
}

func (k *socket) close() {
	if k.path != "" {
		os.Remove(k.path) // before it is closed: afterwards it may be somebody else's
	}
	for _, p := range k.all {
		p.close()
	}
}

// leave closes the socket, which another process has now.
func (k *socket) leave() {
	k.path = "" // the file goes on
	for _, p := range k.all {
		p.keepFile()
		p.close()
	}
}

func (k *socket) setPaused(on bool) {
	for _, p := range k.all {
		p.setPaused(on)
	}
}

// files returns duplicates of the sockets.
func (k *socket) files() (files []*os.File, err error) {
	for _, p := range k.all {
		more, err := p.files()
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// Close stops listening. Connections go on. It ends a HandOver that is under way, unless the other
// process is ready: then it waits for the end.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.handing != nil {
		h := s.handing
		s.mu.Unlock()
		h.cancel()
		<-h.ended
		s.mu.Lock()
	}
	if s.closed {
		return
	}
	s.closed = true
	for _, k := range s.sockets {
		k.close()
	}
}

var (
	errHanding  = errors.New("an upgrade is under way")
	errNobody   = errors.New("nothing listens any more")
	errProtocol = errors.New("the other process is another server, or of a version that passes connections in another way")
	errBack     = errors.New("the other process goes on")
)

// patience is how long a process may take to receive or to do what takes no time, so that the
// other one can go on. It is a variable for tests.
var patience = 10 * time.Second
