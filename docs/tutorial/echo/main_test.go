package main

import (
	"testing"

	"github.com/rondo-go/rondo/rondotest"
)

func TestEcho(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5000", open)
	c := n.Dial("tcp", "127.0.0.1:5000")
	c.Send("hello")
	c.CloseWrite()
	c.Expect("hello")
	c.ExpectEOF()
}
