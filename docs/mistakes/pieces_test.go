package mistakes_test

import (
	"bytes"

	"github.com/rondo-go/rondo"
)

// lines answers complete lines, and leaves the beginning of the next one.
func lines(c *rondo.Conn, in []byte) (int, error) {
	n := bytes.LastIndexByte(in, '\n') + 1
	_, err := c.Write(bytes.ToUpper(in[:n]))
	return n, err // not len(in)
}
