package main

import (
	"strings"
	"testing"

	"github.com/rondo-go/rondo/rondotest"
)

func TestLines(t *testing.T) {
	for range 100 {
		n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
		n.Serve(":5000", open)
		c := n.Dial("tcp", "127.0.0.1:5000")
		c.Send("\nann\nhello\ngood")
		c.Expect("your name?\nyour name?\nhello, ann\nann: hello\n")
		c.Send("bye\n")
		c.CloseWrite()
		c.Expect("ann: goodbye\n")
		c.ExpectEOF()
		n.Close()
	}
}

// TestLongLine: a line that does not end is no longer than MaxInput.
func TestLongLine(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5000", open)
	c := n.Dial("tcp", "127.0.0.1:5000")
	c.Send(strings.Repeat("x", 1000))
	c.Expect("your name?\n")
	c.ExpectEOF()
}
