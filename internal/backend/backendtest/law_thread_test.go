package backendtest_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestCoroutineOfTheFirstTask starts a coroutine in the loop's first task. A backend
// that locks its thread must have done so before: the runtime ends the process if a
// coroutine is resumed on a thread that was locked after the coroutine started.
func TestCoroutineOfTheFirstTask(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			// With one P the loop's goroutine starts when this one blocks, in Attach.
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			e := &rondo.Engine{NumLoops: 1, Backend: name}
			defer e.Close()
			served, peer := tcpPair(t)
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			_, err := e.Attach(served, coro.Handler(func(co *coro.Co, c net.Conn) error {
				if err := co.Sleep(time.Millisecond); err != nil {
					return err
				}
				_, err := c.Write([]byte("x"))
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
			peer.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := peer.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		})
	}
}

// tcpPair returns the two ends of a TCP connection, which close with the test.
func tcpPair(t *testing.T) (accepted, dialed net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if dialed, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close() })
	if accepted, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return accepted, dialed
}
