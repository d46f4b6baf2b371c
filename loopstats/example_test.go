package loopstats_test

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/loopstats"
)

// One client sends a message and ends its stream.
func Example() {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := loopstats.Measure(e)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	io.WriteString(c, "hello")
	c.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, c)
	c.Close()
	for e.Stats().Closed == 0 {
		time.Sleep(time.Millisecond)
	}

	for _, l := range loopstats.Of(e) {
		fmt.Println(l.Accepted, "connection,", l.BytesIn, "bytes; ended by:")
		for cause, n := range l.Ended {
			if n > 0 {
				fmt.Println(loopstats.Cause(cause), n)
			}
		}
		fmt.Println(l.Turn.Count() > 0, l.Callback.Max() <= l.Turn.Max())
	}
	// Output:
	// 1 connection, 5 bytes; ended by:
	// peer_end 1
	// true true
}
