package cookbook_test

import (
	"bytes"
	"fmt"

	"github.com/rondo-go/rondo"
)

// A tally counts lines, and reports the count when the client has ended its stream.
type tally struct {
	lines  int
	within bool // a line that has begun
}

func openTally(*rondo.Conn) rondo.Handler { return &tally{} }

func (t *tally) Data(_ *rondo.Conn, in []byte) (int, error) {
	t.lines += bytes.Count(in, []byte("\n"))
	t.within = in[len(in)-1] != '\n'
	return len(in), nil
}

// EOF makes the tally an EOFHandler: the connection stays until Close.
func (t *tally) EOF(c *rondo.Conn) {
	if t.within {
		t.lines++
	}
	fmt.Fprintln(c, t.lines, "lines")
	c.Close()
}

func (t *tally) Closed(*rondo.Conn, error) {}
