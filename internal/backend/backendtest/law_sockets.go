package backendtest

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// Sockets returns the World of real sockets and real time, on the named backend.
func Sockets(t *testing.T, backend string) World { return &sockets{t, backend} }

type sockets struct {
	*testing.T
	backend string
}

func (w *sockets) Listen(e *rondo.Engine, open rondo.OpenFunc) net.Addr {
	w.Helper()
	e.Backend = w.backend
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{RecvBuffer: socketBuffer}, open)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { e.Close() })
	return ln.Addr()
}

func (w *sockets) ListenPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn {
	w.Helper()
	e.Backend = w.backend
	c, err := e.ListenPacket(network, address, rondo.SocketOptions{}, h)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { e.Close() })
	return c
}

func (w *sockets) DialPacket(e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn {
	w.Helper()
	e.Backend = w.backend
	c, err := e.DialPacket(network, "", address, rondo.SocketOptions{}, h)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { e.Close() })
	return c
}

// socketBuffer is the size of the receive buffers. The laws need a fixed size: Linux 6.18
// lets the buffer of a peer grow to 32 MiB, more than most laws write to a peer that does
// not read.
//
// It must be set before the connection is made, so that TCP's window scale is small. If
// the receive buffer of Linux 6.18 overflows by a segment that is shorter than 1<<scale
// bytes, the receiver also drops the acknowledgments of the sender until somebody reads,
// and so the other direction stands still.
const socketBuffer = 512 << 10

func (w *sockets) Dial(addr net.Addr) Peer {
	w.Helper()
	d := net.Dialer{Control: beforeConnect}
	c, err := d.Dial(addr.Network(), addr.String())
	if errors.Is(err, syscall.ECONNRESET) {
		return gone{} // the server was faster
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	return peer{c.(*net.TCPConn)}
}

// beforeConnect sets the size of a peer's receive buffer.
func beforeConnect(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = sys.SetBuffers(fd, &backend.Socket{RecvBuffer: socketBuffer}) }); e != nil {
		return e
	}
	return err
}

func (w *sockets) Conn(p Peer) net.Conn { return p.(peer).TCPConn }

type peer struct{ *net.TCPConn }

func (p peer) Reset() {
	p.SetLinger(0)
	p.Close()
}

// gone is the end of a connection that was reset while it was being made.
type gone struct{ peer }

func (gone) Read([]byte) (int, error)        { return 0, syscall.ECONNRESET }
func (gone) Write([]byte) (int, error)       { return 0, syscall.ECONNRESET }
func (gone) Close() error                    { return nil }
func (gone) Reset()                          {}
func (gone) SetReadDeadline(time.Time) error { return nil }

func (w *sockets) Now() time.Time { return time.Now() }
func (w *sockets) Timeout(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	w.Cleanup(cancel)
	return ctx
}

func (w *sockets) Sleep(d time.Duration) { time.Sleep(d) }
func (w *sockets) Call(f func())         { f() }

func (w *sockets) Until(what string, cond func() bool) {
	w.Helper()
	// Count looks, not time, so that a process that was stopped meanwhile does not
	// fail.
	for looks := 0; !cond(); looks++ {
		if looks == 30_000 {
			w.Fatalf("waited about 30 s in vain for: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
