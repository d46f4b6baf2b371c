// Repanic has work panic, or call runtime.Goexit, on an engine that lets panics end the
// program.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/workers"
)

func work(context.Context) ([]byte, error) {
	if os.Args[1] == "exit" {
		runtime.Goexit()
	}
	panic("on purpose")
}

func main() {
	var pool workers.Pool
	if os.Args[1] == "go" {
		pool.Go(func() { work(context.Background()) })
		time.Sleep(time.Minute)
	}
	e := rondo.Engine{NumLoops: 1, Repanic: true}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, pool.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
		return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (int, error) {
			q.Submit(work)
			return len(in), nil
		})
	}))
	if err != nil {
		panic(err)
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		panic(err)
	}
	io.WriteString(c, "x")
	io.Copy(io.Discard, c)
	fmt.Println("the program goes on")
}
