package cookbook_test

import (
	"fmt"

	"github.com/rondo-go/rondo"
)

// A polite connection tells its client that the server is going down.
type polite struct{}

func openPolite(*rondo.Conn) rondo.Handler { return polite{} }

func (polite) Data(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }

// Shutdown is called in place of Conn.Close.
func (polite) Shutdown(c *rondo.Conn) {
	fmt.Fprintln(c, "the server is going down")
	c.Close()
}

func (polite) Closed(*rondo.Conn, error) {}
