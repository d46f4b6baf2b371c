package mistakes_test

import (
	"io"

	"github.com/rondo-go/rondo"
)

// A sender sends all of a file to a peer that may be slow.
type sender struct{ file io.Reader }

func openSender(c *rondo.Conn, file io.Reader) rondo.Handler {
	s := &sender{file}
	s.Drained(c)
	return s
}

// Drained writes until output is full. It is called again when there is room.
func (s *sender) Drained(c *rondo.Conn) {
	for !c.Full() {
		buf := make([]byte, 16<<10)
		n, err := s.file.Read(buf)
		if _, werr := c.Write(buf[:n]); werr != nil {
			c.CloseWith(werr) // not ignored: the stream would have a hole
			return
		}
		if err != nil {
			c.Close() // after the last byte has been sent
			return
		}
	}
}

func (s *sender) Data(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }

// EOF keeps the connection: a peer that ends its stream wants the file all the same.
func (s *sender) EOF(*rondo.Conn) {}

func (s *sender) Closed(*rondo.Conn, error) {}
