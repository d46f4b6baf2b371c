package mistakes_test

import (
	"time"

	"github.com/rondo-go/rondo"
)

// A patient connection has ten seconds for its first message, and then as long as it likes.
type patient struct{}

func openPatient(c *rondo.Conn) rondo.Handler {
	c.CloseAt(c.Loop().Now().Add(10 * time.Second))
	return patient{}
}

func (patient) Data(c *rondo.Conn, in []byte) (int, error) {
	c.CloseAt(time.Time{}) // or it closes in the middle of the conversation
	return c.Write(in)
}

func (patient) Closed(*rondo.Conn, error) {}
