package main

import (
	"bytes"
	"fmt"
	"log"

	"github.com/rondo-go/rondo"
)

func main() {
	log.Fatal(rondo.Serve("tcp://127.0.0.1:5000", open))
}

// A session is a connection's handler, and its state.
type session struct {
	name string // "": not yet known
}

func open(c *rondo.Conn) rondo.Handler {
	l := c.Limits()
	l.MaxInput = 1000 // the longest line
	c.SetLimits(l)
	fmt.Fprintln(c, "your name?")
	return &session{}
}

// Data takes the complete lines of in.
func (s *session) Data(c *rondo.Conn, in []byte) (n int, err error) {
	for {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			return n, nil // the rest comes again, with more behind it
		}
		s.line(c, string(bytes.TrimSpace(in[n:n+end])))
		n += end + 1
	}
}

func (s *session) line(c *rondo.Conn, line string) {
	switch {
	case s.name != "":
		fmt.Fprintf(c, "%s: %s\n", s.name, line)
	case line == "":
		fmt.Fprintln(c, "your name?")
	default:
		s.name = line
		fmt.Fprintf(c, "hello, %s\n", s.name)
	}
}

// Closed is the last call.
func (s *session) Closed(c *rondo.Conn, err error) {}
