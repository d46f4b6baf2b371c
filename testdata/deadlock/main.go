// Deadlock has two coroutines of a loop wait for each other, by a mutex, where the loop
// is locked to its thread: on the backend that DEADLOCK names, or else by LockThreads.
package main

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

type guarded struct {
	mu    sync.Mutex
	reads int
}

//go:noinline
func (g *guarded) read(c net.Conn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := c.Read(make([]byte, 1))
	g.reads++
	return err
}

func main() {
	e := rondo.Engine{Loops: 1, Backend: os.Getenv("DEADLOCK")}
	e.LockThreads = e.Backend == ""
	g := &guarded{}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.Socket{}, rondo.Coroutine(func(co *rondo.Co, c net.Conn) error {
		co.Go(func(*rondo.Co) error { return g.read(c) })
		return g.read(c)
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
