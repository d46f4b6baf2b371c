package mistakes_test

import (
	"time"

	"github.com/rondo-go/rondo"
)

// A delayed connection answers after a second, with no sleep on the loop.
type delayed struct{}

func (delayed) Data(c *rondo.Conn, in []byte) (int, error) {
	c.Pause() // the next message waits for the answer
	answer := string(in)
	c.Loop().AfterFunc(time.Second, func() { // not time.Sleep
		c.Write([]byte(answer))
		c.Resume()
	})
	return len(in), nil
}

func (delayed) Closed(*rondo.Conn, error) {}
