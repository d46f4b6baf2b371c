package main

import (
	"log"

	"github.com/rondo-go/rondo"
)

func main() {
	log.Fatal(rondo.Serve("tcp://127.0.0.1:5000", open))
}

// open makes the handler of a new connection.
func open(*rondo.Conn) rondo.Handler {
	return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
		return c.Write(in)
	})
}
