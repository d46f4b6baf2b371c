// Package nettest_test tries golang.org/x/net/nettest, which tells what a
// net.Conn has to be like, on the connections of coroutines.
package nettest_test

import (
	"net"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
)

// No goroutine is left when the engines are closed: neither loops nor coroutines.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConn(t *testing.T) {
	for _, backend := range pick.Names() {
		t.Run(backend, func(t *testing.T) {
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) { return makePipe(backend) })
		})
	}
}

// makePipe connects two coroutines of one engine.
func makePipe(backend string) (c1, c2 net.Conn, stop func(), err error) {
	e := &rondo.Engine{NumLoops: 2, Backend: backend, HighWater: 4 << 10, LowWater: 1 << 10}
	stop = func() { e.Close() }
	conns := make(chan net.Conn, 2)
	open := coro.Handler(func(co *coro.Co, c net.Conn) error { return (&remote{Conn: c}).serve(co, conns) })
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	if err != nil {
		return nil, nil, stop, err
	}
	for l := range e.Loops() {
		l.Post(func() {
			l.Dial("tcp", ln.Addr().String(), rondo.SocketOptions{}, func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					panic(err)
				}
				return open(c)
			})
		})
		return <-conns, <-conns, stop, nil
	}
	return nil, nil, stop, net.ErrClosed
}

// A remote lets the test's goroutines use a connection of a coroutine: each call
// that may wait is made by a coroutine of its own. So nettest, which uses a
// connection from many goroutines, does so from many coroutines.
type remote struct {
	net.Conn
	local, peer net.Addr

	loop  *rondo.Loop
	calls []func()
	begin int // that coroutines were made for, which have not begun
	more  coro.Cond
	over  bool
}

func (r *remote) serve(co *coro.Co, conns chan<- net.Conn) error {
	r.loop, r.local, r.peer = co.Loop(), r.Conn.LocalAddr(), r.Conn.RemoteAddr()
	conns <- r
	defer func() {
		r.over = true
		for _, call := range r.calls {
			call()
		}
	}()
	for {
		for len(r.calls) == r.begin {
			if err := r.more.Wait(co); err != nil {
				return err
			}
		}
		r.begin++
		co.Go(func(*coro.Co) error {
			call := r.calls[0]
			r.calls = r.calls[1:]
			r.begin--
			call()
			return nil
		})
	}
}

type result struct {
	n   int
	err error
}

func (r *remote) call(f func(p []byte) (int, error), p []byte) (int, error) {
	done := make(chan result, 1)
	err := r.loop.Post(func() {
		if r.over {
			done <- result{0, net.ErrClosed}
			return
		}
		r.calls = append(r.calls, func() {
			n, err := f(p)
			done <- result{n, err}
		})
		r.more.Signal()
	})
	if err != nil {
		return 0, err
	}
	got := <-done
	return got.n, got.err
}

func (r *remote) Read(p []byte) (int, error)  { return r.call(r.Conn.Read, p) }
func (r *remote) Write(p []byte) (int, error) { return r.call(r.Conn.Write, p) }
func (r *remote) LocalAddr() net.Addr         { return r.local }
func (r *remote) RemoteAddr() net.Addr        { return r.peer }
