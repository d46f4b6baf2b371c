// Repanic panics in a handler whose engine is to let that end the program.
package main

import (
	"net"

	"github.com/rondo-go/rondo"
)

func main() {
	e := rondo.Engine{Repanic: true}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		panic("on purpose")
	})
	if err != nil {
		panic(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err != nil {
		panic(err)
	}
	e.Wait()
}
