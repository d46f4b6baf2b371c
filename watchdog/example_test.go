package watchdog_test

import (
	"fmt"
	"net"
	"path"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/watchdog"
)

// A handler waits for an answer, and its loop with it. The Watchdog tells while it waits.
// Without Report the log has the same, and the stack.
func Example() {
	answer, over := make(chan string), make(chan bool)
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	w, err := watchdog.Watch(e, watchdog.Options{
		Slow: 50 * time.Millisecond,
		Report: func(r watchdog.Report) {
			if r.Over {
				close(over)
				return
			}
			fmt.Printf("%s in %s: %s\n", r.State, path.Base(r.Func), r.Advice)
			answer <- "hello" // the database's, at last
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Stop()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			return len(in), lookup(c, answer)
		})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	c.Write([]byte("?"))
	b := make([]byte, 5)
	c.Read(b)
	fmt.Println(string(b))
	<-over
	// Output:
	// chan receive in watchdog_test.lookup: wait on another goroutine, which answers through a Ref or Loop.Post, or in package workers
	// hello
}

// lookup makes its loop wait for a database.
func lookup(c *rondo.Conn, answer <-chan string) error {
	_, err := c.Write([]byte(<-answer))
	return err
}
