package rondo_test

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/rondo-go/rondo"
)

// A relay is one side of a proxy. It writes its connection's bytes to the other connection, on
// the same loop.
type relay struct{ other *rondo.Conn }

// Data passes bytes on. It pauses its connection while the other one's output is full.
func (r *relay) Data(c *rondo.Conn, in []byte) (int, error) {
	n, err := r.other.Write(in)
	if r.other.Full() {
		c.Pause()
	}
	return n, err
}

// Drained resumes the other connection.
func (r *relay) Drained(*rondo.Conn) { r.other.Resume() }

// EOF passes the end of the stream on. The other direction goes on.
func (r *relay) EOF(*rondo.Conn) { r.other.CloseWrite() }

// Closed passes a failure on. A connection whose streams have both ended closes by
// itself.
func (r *relay) Closed(_ *rondo.Conn, err error) {
	if err != nil {
		r.other.Abort(err)
	}
}

// join makes each connection's input the other one's output. While a side waits for the
// other one to drain, it is paused. Otherwise it is read, even if its own output is full, so
// that no direction waits for the opposite one.
func join(a, b *rondo.Conn) {
	for _, side := range [][2]*rondo.Conn{{a, b}, {b, a}} {
		l := side[0].Limits()
		l.ReadWhenFull = true
		side[0].SetLimits(l)
		side[0].SetHandler(&relay{other: side[1]})
	}
}

// A proxy dials for each client, on the client's loop, and joins the two connections.
func ExampleLimits() {
	var e rondo.Engine
	defer e.Close()
	server, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler { return &counter{} })
	if err != nil {
		fmt.Println(err)
		return
	}
	proxy, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(client *rondo.Conn) rondo.Handler {
		client.Pause() // until the server is connected
		waiting := &caller{}
		waiting.dialing = client.Loop().Dial("tcp", server.Addr().String(), rondo.SocketOptions{}, func(c *rondo.Conn, err error) rondo.Handler {
			if err != nil {
				client.CloseWith(err)
				return nil
			}
			join(client, c)
			client.Resume()
			return c.Handler()
		})
		return waiting
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := net.Dial("tcp", proxy.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	io.Copy(c, strings.NewReader(strings.Repeat("x", 3_000_000)))
	c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	fmt.Println(string(answer), err)
	// Output: 3000000 bytes <nil>
}

// A caller is a client whose server is being dialed.
type caller struct{ dialing *rondo.Dialing }

func (*caller) Data(*rondo.Conn, []byte) (int, error) { return 0, nil }
func (w *caller) Closed(*rondo.Conn, error)           { w.dialing.Cancel() }

// A counter counts the bytes of its client, and writes the number at the end.
type counter struct{ n int }

func (s *counter) Data(_ *rondo.Conn, in []byte) (int, error) {
	s.n += len(in)
	return len(in), nil
}

func (s *counter) EOF(c *rondo.Conn) {
	fmt.Fprintf(c, "%d bytes", s.n)
	c.Close()
}

func (*counter) Closed(*rondo.Conn, error) {}
