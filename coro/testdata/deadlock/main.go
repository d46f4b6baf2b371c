// Deadlock has two coroutines of a loop wait for each other, by a *tls.Conn's mutex, where
// the loop is locked to its thread: on the backend that DEADLOCK names, or else by
// LockThreads.
package main

import (
	"crypto/tls"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

func main() {
	e := rondo.Engine{NumLoops: 1, Backend: os.Getenv("DEADLOCK")}
	e.LockThreads = e.Backend == ""
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, coro.Handler(func(co *coro.Co, c net.Conn) error {
		tc := tls.Server(c, &tls.Config{})
		read := func(*coro.Co) error {
			_, err := tc.Read(make([]byte, 1))
			return err
		}
		co.Go(read)
		return read(co)
	}))
	if err != nil {
		panic(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err != nil {
		panic(err)
	}
	// A program that nobody ends must not stay behind.
	time.AfterFunc(time.Minute, func() { os.Exit(0) })
	e.Wait()
}
