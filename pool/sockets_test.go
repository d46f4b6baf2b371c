package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/pool"
)

// onLoop runs f on l and waits for it.
func onLoop(t testing.TB, l *rondo.Loop, f func()) {
	t.Helper()
	done := make(chan struct{})
	if err := l.Post(func() { defer close(done); f() }); err != nil {
		t.Fatal(err)
	}
	<-done
}

// listen serves answers on a backend.
func listen(t testing.TB, backend string) (e *rondo.Engine, address string) {
	t.Helper()
	e = &rondo.Engine{Backend: backend, NumLoops: 1, Linger: time.Second}
	t.Cleanup(func() { e.Close() })
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(answer) })
	if err != nil {
		t.Fatal(err)
	}
	return e, ln.Addr().String()
}

// Functions of one loop and coroutines of another, each with its pool, on every backend.
func TestSockets(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			const each, most = 200, 3
			server, address := listen(t, backend)
			e := &rondo.Engine{Backend: backend, NumLoops: 2}
			defer e.Close()
			pools := rondo.LoopLocal[*pool.Pool]{New: func(l *rondo.Loop) *pool.Pool {
				return pool.New(l, pool.Config{Network: "tcp", Address: address, MaxLive: most, MinIdle: 1, Setup: greet, Check: greet})
			}}
			answers := make(chan string, 2*each)
			ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, coro.Handler(func(co *coro.Co, c net.Conn) error {
				p := pools.Get(co.Loop())
				for i := range each {
					co.Go(func(co *coro.Co) error {
						c, err := p.Borrow(co)
						if err != nil {
							answers <- err.Error()
							return nil
						}
						defer c.Put()
						question := fmt.Sprintf("coroutine %d\n", i)
						nc := c.NetConn()
						io.WriteString(nc, question)
						b := make([]byte, len("re: ")+len(question))
						n, err := io.ReadFull(nc, b)
						if string(b) != "re: "+question {
							answers <- fmt.Sprintf("%q, %v", b[:n], err)
						} else {
							answers <- ""
						}
						return nil
					})
				}
				err := co.Wait()
				io.Copy(io.Discard, c)
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
			home, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer home.Close()
			for l := range e.Loops() {
				l.Post(func() {
					if l.ID() != 0 {
						return
					}
					for i := range each {
						pools.Get(l).Get(func(c *pool.Conn, err error) {
							if err != nil {
								answers <- err.Error()
								return
							}
							question := fmt.Sprintf("function %d", i)
							ask(c, question, func(answer string, err error) {
								if err == nil && answer != "re: "+question {
									err = errors.New(answer)
								}
								if err != nil {
									answers <- err.Error()
								} else {
									answers <- ""
								}
								c.Put()
							})
						})
					}
				})
			}
			for range 2 * each {
				if wrong := <-answers; wrong != "" {
					t.Error(wrong)
				}
			}
			for l := range e.Loops() {
				onLoop(t, l, func() {
					if s := pools.Get(l).Stats(); s.ChecksFailed+s.DialsFailed+s.Discarded+s.Lost > 0 {
						t.Errorf("%+v", s)
					}
				})
			}
			home.Close()
			if n := server.Stats().Accepted; n > 2*(most+1) {
				t.Errorf("%d connections were made", n)
			}
			if err := e.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
	}
}

// lender has a pool with an idle connection.
func lender(t testing.TB, backend string) (*rondo.Loop, *pool.Pool) {
	_, address := listen(t, backend)
	e := &rondo.Engine{Backend: backend, NumLoops: 1}
	t.Cleanup(func() { e.Close() })
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	var loop *rondo.Loop
	for loop = range e.Loops() {
	}
	var p *pool.Pool
	onLoop(t, loop, func() {
		p = pool.New(loop, pool.Config{Network: "tcp", Address: address, MaxLive: 1, IdleTime: time.Hour, MaxWait: time.Hour})
	})
	back := make(chan error)
	onLoop(t, loop, func() {
		p.Get(func(c *pool.Conn, err error) {
			if err == nil {
				c.Put()
			}
			go func() { back <- err }()
		})
	})
	if err := <-back; err != nil {
		t.Fatal(err)
	}
	return loop, p
}

// Borrowing an idle connection and returning it allocates nothing, nor does waiting.
func TestLendingAllocatesNothing(t *testing.T) {
	loop, p := lender(t, "")
	handler := rondo.HandlerFunc(answer)
	var failed atomic.Bool
	get := func(c *pool.Conn, err error) {
		if err != nil {
			failed.Store(true)
			return
		}
		c.Conn().SetHandler(handler)
		c.Put()
	}
	turn := make(chan struct{})
	once := func() { p.Get(get); p.Get(get); turn <- struct{}{} }
	if n := testing.AllocsPerRun(500, func() {
		loop.Post(once)
		<-turn
	}); n >= 1 {
		t.Errorf("%v allocations for two Gets and Puts", n)
	}
	if failed.Load() {
		t.Error("a Get has failed")
	}
}

// BenchmarkGetPut is Get and Put of an idle connection, and the turn in which the pool
// examines it.
func BenchmarkGetPut(b *testing.B) {
	loop, p := lender(b, "")
	b.ReportAllocs()
	b.ResetTimer()
	done := make(chan struct{})
	i := 0
	var next func(c *pool.Conn, err error)
	again := func() { p.Get(next) }
	next = func(c *pool.Conn, err error) {
		c.Put()
		if i++; i == b.N {
			close(done)
			return
		}
		loop.Post(again)
	}
	loop.Post(again)
	<-done
}

// BenchmarkAsk is a question and its answer over a borrowed connection, and over a kept one.
func BenchmarkAsk(b *testing.B) {
	b.Run("borrowed", func(b *testing.B) { benchmarkAsk(b, true) })
	b.Run("kept", func(b *testing.B) { benchmarkAsk(b, false) })
}

func benchmarkAsk(b *testing.B, giveBack bool) {
	loop, p := lender(b, "")
	b.ReportAllocs()
	b.ResetTimer()
	done := make(chan struct{})
	var h benchHandler
	left := b.N
	h.answered = func() {
		if left--; left == 0 {
			close(done)
			return
		}
		if giveBack {
			h.c.Put()
			p.Get(h.got)
		} else {
			h.c.Conn().Write(benchQuestion)
		}
	}
	h.got = func(c *pool.Conn, err error) {
		h.c = c
		c.Conn().SetHandler(&h)
		c.Conn().Write(benchQuestion)
	}
	loop.Post(func() { p.Get(h.got) })
	<-done
}

var benchQuestion = []byte("how fast?\n")

type benchHandler struct {
	c        *pool.Conn
	got      func(*pool.Conn, error)
	answered func()
}

func (h *benchHandler) Data(_ *rondo.Conn, in []byte) (int, error) {
	if in[len(in)-1] != '\n' {
		return 0, nil
	}
	h.answered()
	return len(in), nil
}

func (h *benchHandler) Closed(*rondo.Conn, error) {}
