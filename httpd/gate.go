package httpd

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A gate stands for the server in the eyes of the http.Server, which so tells it of Shutdown
// and Close. It is a listener that accepts one connection, a gateConn, and then nothing. The
// gateConn sends a request that is not one. So the http.Server counts it as busy, and writes
// an answer, which the gateConn takes when the last connection on the loops has gone:
//
//	Shutdown closes the gate, and waits for the gateConn, within its context
//	Close closes the gate and the gateConn
type gate struct {
	server *Server
	addr   net.Addr
	accept chan net.Conn
	once   sync.Once
	mu     sync.Mutex
	start  func() error  // begins the listening; nil: it has begun, or never will. Under mu
	stop   func()        // ends the listening. Under mu
	busy   chan struct{} // closed when the http.Server answers the gateConn, and so waits for it
	closed chan struct{}
	err    error
}

func newGate(s *Server, addr net.Addr) *gate {
	g := &gate{server: s, addr: addr, accept: make(chan net.Conn, 1),
		busy: make(chan struct{}), closed: make(chan struct{})}
	g.accept <- &gateConn{gate: g}
	return g
}

func (g *gate) Addr() net.Addr { return g.addr }

// Accept returns the gateConn, and later the error that ends the server. The second call begins
// the listening when the http.Server waits for the gateConn. Before that, Shutdown would close it.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case c := <-g.accept:
		return c, nil
	default:
	}
	select {
	case <-g.busy:
	case <-g.closed:
	}
	if err := g.listen(); err != nil {
		return nil, err
	}
	<-g.closed
	return nil, g.err
}

func (g *gate) listen() (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.start != nil {
		err = g.start()
		g.start = nil
	}
	return err
}

// Close is called by Shutdown and Close, and when Serve ends.
func (g *gate) Close() error {
	g.end(net.ErrClosed, draining)
	return nil
}

// fail ends the listening because the listener has failed. As with net/http the connections
// go on.
func (g *gate) fail(err error) { g.end(err, orphaned) }

func (g *gate) end(err error, state int32) {
	g.once.Do(func() {
		g.err = err
		g.mu.Lock()
		g.start = nil
		g.stop()
		g.mu.Unlock()
		close(g.closed)
		g.server.drain(state)
	})
}

// A gateConn is the one connection of a gate.
type gateConn struct {
	gate    *gate
	sent    bool
	writing sync.Once
	once    sync.Once
}

// Read returns an empty line, which is not a request.
func (c *gateConn) Read(p []byte) (int, error) {
	if c.sent || len(p) == 0 {
		return 0, io.EOF
	}
	c.sent = true
	p[0] = '\n'
	return 1, nil
}

// Write waits until no connection is left.
func (c *gateConn) Write(p []byte) (int, error) {
	c.writing.Do(func() { close(c.gate.busy) })
	<-c.gate.server.ended
	return 0, errors.New("httpd: the server has ended")
}

// Close is called by the http.Server's Close, or after Write.
func (c *gateConn) Close() error {
	c.once.Do(func() {
		select {
		case <-c.gate.server.ended:
		default:
			c.gate.server.drain(closed)
		}
	})
	return nil
}

func (c *gateConn) LocalAddr() net.Addr              { return c.gate.addr }
func (c *gateConn) RemoteAddr() net.Addr             { return c.gate.addr }
func (c *gateConn) SetDeadline(time.Time) error      { return nil }
func (c *gateConn) SetReadDeadline(time.Time) error  { return nil }
func (c *gateConn) SetWriteDeadline(time.Time) error { return nil }
