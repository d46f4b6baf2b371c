// Chat is a chat room: a client gives a name, and then reads what all members write. All
// connections share the room without a mutex, since they are coroutines of one loop.
//
//	go run ./examples/chat
//	nc 127.0.0.1 5002
package main

import (
	"flag"
	"log"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

func main() {
	address := flag.String("addr", "tcp://127.0.0.1:5002", "address to listen on")
	flag.Parse()
	network, where, err := rondo.ParseAddress(*address)
	if err != nil {
		log.Fatal(err)
	}
	var r room
	e := rondo.Engine{NumLoops: 1} // the room is one loop's
	if _, err := e.Listen(network, where, rondo.SocketOptions{}, coro.Handler(r.serve)); err != nil {
		log.Fatal(err)
	}
	e.Wait()
}
