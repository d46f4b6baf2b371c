package cookbook_test

import (
	"time"

	"github.com/rondo-go/rondo"
)

// openRelay gives each client a connection to upstream, on the client's loop.
func openRelay(upstream string) rondo.OpenFunc {
	return func(c *rondo.Conn) rondo.Handler {
		c.Pause() // until there is somebody to pass its bytes to
		options := rondo.SocketOptions{DialTimeout: 5 * time.Second}
		c.Loop().Dial("tcp", upstream, options, func(up *rondo.Conn, err error) rondo.Handler {
			switch {
			case err != nil:
				c.CloseWith(err)
				return nil
			case c.Ref().Closed(): // meanwhile
				return nil
			}
			c.SetHandler(newHalf(c, up))
			c.Resume()
			return newHalf(up, c)
		})
		return rondo.HandlerFunc(nil) // Data is not called before Resume
	}
}

// A half passes what its connection receives on to the other connection.
type half struct{ other *rondo.Conn }

// most is how many bytes may wait for each of the two.
const most = 256 << 10

func newHalf(c, other *rondo.Conn) *half {
	l := c.Limits()
	l.MaxOutput, l.HighWater, l.LowWater = most, most, most/4
	l.ReadWhenFull = true // c's output does not stop c's input
	c.SetLimits(l)
	return &half{other}
}

func (h *half) Data(c *rondo.Conn, in []byte) (int, error) {
	n, err := h.other.Write(in)
	if err == rondo.ErrOutputFull {
		c.Pause() // until the other's Drained
		return n, nil
	}
	return n, err
}

// Drained is called when c has room again. The other waits for it.
func (h *half) Drained(c *rondo.Conn) { h.other.Resume() }

// EOF passes the end of a stream on. The other direction goes on.
func (h *half) EOF(c *rondo.Conn) { h.other.CloseWrite() }

func (h *half) Closed(c *rondo.Conn, err error) { h.other.CloseWith(err) }
