package main

import (
	"log"

	"github.com/rondo-go/rondo"
)

func main() {
	e := rondo.Engine{MaxOutput: 256 << 10} // a loop on every processor
	if _, err := e.Listen("tcp", "127.0.0.1:5000", rondo.SocketOptions{}, newChat().open); err != nil {
		log.Fatal(err)
	}
	e.Wait()
}
