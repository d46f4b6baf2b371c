package upgrade

import (
	"net"
	"os"
	"strings"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A Socket listens at one address. Only its server's mutex guards it.
type Socket struct {
	// Lent says that the socket is the service manager's: its file stays.
	Lent bool

	network, address string
	parts            []Part // several, if each loop has one
	passed           bool   // by another process
	path             string // of a unix socket's file, to remove at the end
}

// A Part is a Listener or a datagram socket.
type Part interface {
	addr() net.Addr
	files() ([]*os.File, error)
	keepFile()
	setPaused(on bool)
	isStill() bool
	close()
}

type stream struct{ *rondo.Listener }

// Stream returns the Part of a Listener.
func Stream(l *rondo.Listener) Part { return stream{l} }

func (s stream) addr() net.Addr             { return s.Addr() }
func (s stream) files() ([]*os.File, error) { return bridge.ListenerOf(s.Listener).Files() }
func (s stream) keepFile()                  { bridge.ListenerOf(s.Listener).KeepFile() }
func (s stream) isStill() bool              { return bridge.ListenerOf(s.Listener).IsStill() }
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
func (d datagrams) isStill() bool              { return true }
func (d datagrams) close()                     { d.Ref().Close() }

// NewSocket returns a Socket to Open.
func NewSocket(network, address string) *Socket {
	return &Socket{network: network, address: address}
}

// key is what two processes call the socket.
func (k *Socket) key() string { return keyOf(k.network, k.address) }

func keyOf(network, address string) string { return network + "|" + address }

// Addr returns the address, with the port that the system chose.
func (k *Socket) Addr() net.Addr { return k.parts[0].addr() }

// Open opens the socket. It calls open for each file that another process has passed by t, or once
// with nil. The file stays Open's. After an error nothing is open.
func (k *Socket) Open(t *Taking, open func(*os.File) (Part, error)) error {
	passed := t.take(k)
	defer closeFiles(passed)
	files := passed
	if k.passed = len(passed) > 0; !k.passed {
		files = []*os.File{nil}
	}
	for _, f := range files {
		p, err := open(f)
		if err != nil {
			k.Close()
			return err
		}
		k.parts = append(k.parts, p)
	}
	return nil
}

// Own makes the socket responsible for its file, when the process that made it has gone: behind
// Taking.Receive.
func (k *Socket) Own() {
	if k.passed && !k.Lent && strings.HasPrefix(k.network, "unix") && !strings.HasPrefix(k.address, "@") {
		k.path = k.address
	}
}

// Close closes the socket.
func (k *Socket) Close() {
	if k.path != "" {
		os.Remove(k.path) // before it is closed: afterwards it may be somebody else's
	}
	for _, p := range k.parts {
		p.close()
	}
}

// leave closes the socket, which another process has now.
func (k *Socket) leave() {
	k.path = "" // the file goes on
	for _, p := range k.parts {
		p.keepFile()
		p.close()
	}
}

func (k *Socket) setPaused(on bool) {
	for _, p := range k.parts {
		p.setPaused(on)
	}
}

// isStill reports whether the loops have all connections that were accepted before setPaused(true).
func (k *Socket) isStill() bool {
	for _, p := range k.parts {
		if !p.isStill() {
			return false
		}
	}
	return true
}

// files returns duplicates of the sockets.
func (k *Socket) files() (files []*os.File, err error) {
	for _, p := range k.parts {
		more, err := p.files()
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
