package rondo_test

import (
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// A loop is pinned while it runs, and a coroutine that begins afterwards goes on;
// one that began before would end the process, so pinning is refused then.
func TestPin(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{NumLoops: 1, Backend: backend}
			defer e.Close()
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			for l := range e.Loops() {
				pin := func() (err error) {
					done := make(chan struct{})
					l.Post(func() { defer close(done); err = l.Pin(0) })
					<-done
					return err
				}
				pin() // may fail where a CPU cannot be chosen
				sleepInCoroutine(t, e)
				if err := pin(); err != nil && pin() == nil {
					t.Error("a pinned loop was not pinned again:", err)
				}
			}
			late := &rondo.Engine{NumLoops: 1, Backend: backend}
			defer late.Close()
			sleepInCoroutine(t, late)
			for l := range late.Loops() {
				refused := make(chan error)
				l.Post(func() { refused <- l.Pin(0) })
				if <-refused == nil {
					t.Error("a loop with coroutines was pinned")
				}
			}
		})
	}
}

// sleepInCoroutine serves one connection by a coroutine that sleeps, and waits
// until it ends.
func sleepInCoroutine(t *testing.T, e *rondo.Engine) {
	t.Helper()
	ended := make(chan error, 1)
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, coro.Handler(func(co *coro.Co, c net.Conn) error {
		ended <- co.Sleep(time.Millisecond)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
