package main

import (
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coreos/go-systemd/v22/activation"
)

// sockets are the sockets that the service manager has passed to this process (LISTEN_FDS): see
// sd_listen_fds(3). They stay open, so that a listener which a reload closes can be opened again:
// its address is taken as long as the manager has the socket.
//
// The process that this one starts for an upgrade gets them, too: its file may want other ones.
type sockets struct {
	log  *slog.Logger
	mu   sync.Mutex
	all  []*passed
	heir bool // another process has passed them on, and has told of them
}

// passed is one of them.
type passed struct {
	*os.File
	name  string   // that in LISTEN_FDNAMES
	addr  net.Addr // nil: it does not listen for streams
	taken bool
}

// systemdSockets are those of this process; nil: it has none.
var systemdSockets atomic.Pointer[sockets]

// passedSockets returns the sockets of this process. Only its first call finds any.
func passedSockets(log *slog.Logger) *sockets {
	s := &sockets{log: log}
	for _, f := range activation.Files(true) {
		s.add(f, f.Name())
	}
	files, names := spawnedSockets()
	for i, f := range files {
		s.heir = true
		s.add(f, names[i])
	}
	if len(s.all) > 0 {
		systemdSockets.Store(s)
	}
	return s
}

func (s *sockets) add(f *os.File, name string) {
	p := &passed{File: f, name: name}
	if ln, err := net.FileListener(f); err == nil {
		if !isConnected(f) {
			p.addr = ln.Addr()
		}
		ln.Close()
	}
	s.all = append(s.all, p)
}

// passOn returns the sockets and their names, for another process.
func (s *sockets) passOn() (files []*os.File, names []string) {
	if s == nil {
		return nil, nil
	}
	for _, p := range s.all {
		files, names = append(files, p.File), append(names, p.name)
	}
	return files, names
}

// isConnected reports whether a socket has a peer: systemd passes such ones with Accept=yes.
func isConnected(f *os.File) bool {
	c, err := net.FileConn(f)
	if err != nil {
		return false
	}
	defer c.Close()
	return c.RemoteAddr() != nil
}

// take returns a listener of the socket that listens at an address; nil: none does.
func (s *sockets) take(network, address string) net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *passed
	for _, p := range s.all {
		if listensAt(p.addr, network, address) && (found == nil || found.taken) {
			found = p
		}
	}
	if found == nil {
		return nil
	}
	ln, err := net.FileListener(found.File)
	if err != nil {
		s.log.Error("cannot use a socket of systemd", "name", found.name, "address", address, "error", err)
		return nil
	}
	found.taken = true
	s.log.Info("systemd listens at an address: its socket is used", "address", network+"://"+address, "name", found.name)
	return ln
}

// tellOthers logs the sockets that no address has taken.
func (s *sockets) tellOthers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		switch {
		case s.heir:
		case p.addr == nil:
			s.log.Warn("systemd has passed a socket that does not listen for streams: it is not used", "name", p.name)
		case !p.taken:
			s.log.Warn("systemd has passed a socket that listens at no address of this command: it is not used",
				"name", p.name, "address", p.addr.Network()+"://"+p.addr.String())
		}
	}
}

// listensAt reports whether a socket at addr is the one that the address of a flag is for. Without
// a host an address is for the socket of all interfaces.
func listensAt(addr net.Addr, network, address string) bool {
	switch a := addr.(type) {
	case *net.UnixAddr:
		return network == "unix" && a.Name == address
	case *net.TCPAddr:
		if !strings.HasPrefix(network, "tcp") {
			return false
		}
		want, err := net.ResolveTCPAddr(network, address)
		if err != nil || want.Port != a.Port || want.Port == 0 {
			return false
		}
		isIPv4 := a.IP.To4() != nil
		switch {
		case network == "tcp4" && !isIPv4, network == "tcp6" && isIPv4:
			return false
		case want.IP == nil:
			return a.IP.IsUnspecified()
		}
		return want.IP.Equal(a.IP) && want.Zone == a.Zone
	}
	return false
}
