// Misuse calls a method of a Conn from another goroutine than its loop's, and
// lets the loop go on with it: the race detector must tell.
package main

import (
	"net"

	"github.com/rondo-go/rondo"
)

func main() {
	var e rondo.Engine
	conns := make(chan *rondo.Conn, 1)
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		conns <- c
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		panic(err)
	}
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		panic(err)
	}
	c := <-conns
	for range 100 {
		c.Buffered()
		peer.Write([]byte("x"))
		peer.Read(make([]byte, 1))
	}
}
