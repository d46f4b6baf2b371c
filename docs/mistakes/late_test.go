package mistakes_test

import "github.com/rondo-go/rondo"

// An oracle's answers come from other goroutines, perhaps after the end of the stream.
type oracle struct {
	asked int // and not answered
	ended bool
}

func (o *oracle) Data(c *rondo.Conn, in []byte) (int, error) {
	ref, question := c.Ref(), string(in)
	o.asked++
	go func() {
		answer := slowly(question)
		ref.Do(func(c *rondo.Conn) {
			c.Write([]byte(answer))
			o.asked--
			o.closeIfDone(c)
		})
	}()
	return len(in), nil
}

// EOF keeps the connection open until all is answered.
func (o *oracle) EOF(c *rondo.Conn) {
	o.ended = true
	o.closeIfDone(c)
}

func (o *oracle) closeIfDone(c *rondo.Conn) {
	if o.ended && o.asked == 0 {
		c.Close()
	}
}

func (o *oracle) Closed(*rondo.Conn, error) {}

// slowly stands for a query.
func slowly(question string) string { return "the answer to " + question }
