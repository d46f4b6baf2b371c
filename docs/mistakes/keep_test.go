package mistakes_test

import (
	"bytes"

	"github.com/rondo-go/rondo"
)

// A keeper answers with what came the time before.
type keeper struct{ last []byte }

func (k *keeper) Data(c *rondo.Conn, in []byte) (int, error) {
	c.Write(k.last)          // Write copies
	k.last = bytes.Clone(in) // not k.last = in
	return len(in), nil
}

func (k *keeper) Closed(*rondo.Conn, error) {}
