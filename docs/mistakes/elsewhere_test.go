package mistakes_test

import "github.com/rondo-go/rondo"

// openSubscriber has another goroutine write what comes from a channel.
func openSubscriber(news <-chan string) rondo.OpenFunc {
	return func(c *rondo.Conn) rondo.Handler {
		ref := c.Ref() // not c
		go func() {
			defer ref.Close()
			for line := range news {
				if ref.Write([]byte(line)) != nil {
					return // the connection is closed, or its peer too slow
				}
			}
		}()
		return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil })
	}
}
