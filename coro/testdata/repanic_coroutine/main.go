// Repanic_coroutine panics in a coroutine whose engine is to let that end the
// program.
package main

import (
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

func main() {
	e := rondo.Engine{Repanic: true}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, coro.Handler(onPurpose))
	if err != nil {
		panic(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err != nil {
		panic(err)
	}
	e.Wait()
}

func onPurpose(*coro.Co, net.Conn) error { panic("on purpose") }
