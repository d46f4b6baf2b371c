package pool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// Close closes all connections and ends all waits. A later Put does nothing.
func TestClose(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 2, MinIdle: 1}, nil)
	a, b := w.mustGet(), w.mustGet()
	w.put(b)
	var ended, told error
	w.do(func() {
		ask(a, "", func(_ string, err error) {
			if ended = err; err != nil {
				a.Put()
			}
		})
	})
	w.net.Run()
	c := w.mustGet()
	calls := 0
	home := w.home()
	var borrowed error
	w.do(func() {
		w.pool.Get(func(_ *pool.Conn, err error) { calls++; told = err })
		home.run(func(co *coro.Co) { _, borrowed = w.pool.Borrow(co) })
	})
	w.net.Run()
	w.do(w.pool.Close)
	w.do(w.pool.Close)
	w.net.Run()
	if calls != 1 || !errors.Is(told, pool.ErrClosed) || !errors.Is(told, net.ErrClosed) || !errors.Is(borrowed, pool.ErrClosed) {
		t.Errorf("told %d times: %v; the coroutine: %v", calls, told, borrowed)
	}
	if ended == nil {
		t.Error("a borrower was not told")
	}
	w.do(c.Put)
	w.do(func() {
		w.pool.Get(func(_ *pool.Conn, err error) {
			if !errors.Is(err, pool.ErrClosed) {
				t.Errorf("Get of a closed pool: %v", err)
			}
			calls++
		})
	})
	w.net.Advance(time.Minute)
	w.expect(0, 0, 0, 0)
	if n := w.server.Stats().Open; n != 0 || calls != 2 {
		t.Errorf("the server has %d connections; %d calls", n, calls)
	}
}

// Drain leaves borrowed connections to their borrowers, and cancels dials.
func TestDrain(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 4}, nil)
	a, b := w.mustGet(), w.mustGet()
	w.put(b)
	answer, told := "", 0
	w.do(func() {
		for range 3 {
			w.pool.Get(func(c *pool.Conn, err error) {
				if told++; err == nil {
					c.Put()
				}
			})
		}
		w.pool.Drain()
		ask(a, "still there", func(s string, _ error) { answer = s; a.Put() })
	})
	w.net.Run()
	if answer != "re: still there" || told != 3 {
		t.Errorf("answer %q, %d told", answer, told)
	}
	w.expect(0, 0, 0, 0)
	if n := w.server.Stats().Open; n != 0 {
		t.Errorf("the server has %d connections", n)
	}
}

// The end of the engine closes its pools and ends all waits.
func TestEngineCloses(t *testing.T) {
	for _, end := range []func(*rondo.Engine) error{
		(*rondo.Engine).Close,
		func(e *rondo.Engine) error { return e.Shutdown(context.Background()) },
	} {
		for seed := range seeds(6) {
			w := newWorld(t, rondotest.Options{Seed: seed + 1}, pool.Config{MaxLive: 3, MinIdle: 1}, nil)
			a, b := w.mustGet(), w.mustGet()
			w.put(a)
			told := 0
			w.do(func() {
				ask(b, "", func(_ string, err error) {
					if err != nil {
						b.Put()
					}
				})
				for range 4 {
					w.pool.Get(func(c *pool.Conn, err error) {
						if told++; err == nil {
							ask(c, "", func(_ string, err error) {
								if err != nil {
									c.Put()
								}
							})
						}
					})
				}
			})
			if seed%2 == 0 {
				w.net.Run()
			}
			w.net.Await(func() { end(w.engine) })
			if told != 4 {
				t.Fatalf("seed %d: %d of 4 were told", seed+1, told)
			}
			w.net.Advance(time.Minute)
			if n := w.server.Stats().Open; n != 0 {
				t.Errorf("the server has %d connections", n)
			}
		}
	}
}

// Coroutines wait for connections. A connection's net.Conn is the same for all of them.
func TestBorrow(t *testing.T) {
	for seed := range seeds(6) {
		w := newWorld(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)}, pool.Config{MaxLive: 2}, nil)
		home := w.home()
		answers := map[string]bool{}
		var before net.Conn
		for i := range 10 {
			w.do(func() {
				home.run(func(co *coro.Co) {
					c, err := w.pool.Borrow(co)
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Put()
					nc := c.NetConn()
					if c.Value == nil {
						c.Value = bufio.NewReader(nc)
					}
					nc.SetDeadline(co.Loop().Now().Add(time.Minute))
					fmt.Fprintf(nc, "%d\n", i)
					line, err := c.Value.(*bufio.Reader).ReadString('\n')
					if err != nil {
						t.Errorf("seed %d: %v", seed+1, err)
					}
					answers[line] = true
					before = nc
				})
			})
		}
		w.net.Run()
		for i := range 10 {
			if !answers[fmt.Sprintf("re: %d\n", i)] {
				t.Fatalf("seed %d: answers %v", seed+1, answers)
			}
		}
		w.do(func() {
			home.run(func(*coro.Co) {
				if n, err := before.Write([]byte("late")); n != 0 || !errors.Is(err, net.ErrClosed) {
					t.Errorf("Write after Put: %d, %v", n, err)
				}
				if n, err := before.Read(make([]byte, 1)); n != 0 || !errors.Is(err, net.ErrClosed) {
					t.Errorf("Read after Put: %d, %v", n, err)
				}
			})
		})
		w.net.Run()
		w.expect(2, 0, 0, 0)
	}
}

// Functions and coroutines borrow the same connections in turn. Neither sees deadlines or
// left-over input of the other.
func TestBorrowAndGet(t *testing.T) {
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1}, nil)
	home := w.home()
	for round := range 3 {
		var answer string
		w.do(func() {
			home.run(func(co *coro.Co) {
				c, err := w.pool.Borrow(co)
				if err != nil {
					t.Error(err)
					return
				}
				nc := c.NetConn()
				nc.SetReadDeadline(co.Loop().Now().Add(time.Second))
				if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("round %d: Read: %v", round, err)
				}
				io.WriteString(nc, "question\n")
				nc.SetReadDeadline(time.Time{})
				if n, err := io.ReadFull(nc, make([]byte, len("re: question\n"))); err != nil {
					t.Errorf("round %d: Read: %d, %v", round, n, err)
				}
				nc.SetDeadline(co.Loop().Now().Add(time.Second))
				c.Put()
			})
		})
		w.net.Advance(time.Minute)
		c := w.mustGet()
		w.do(func() {
			c.Conn().CloseAt(w.loop.Now().Add(time.Second))
			c.Conn().SetIdle(time.Second)
			ask(c, "again", func(s string, _ error) { answer = s; c.Put() })
		})
		w.net.Advance(time.Minute)
		if answer != "re: again" {
			t.Errorf("round %d: answer %q", round, answer)
		}
		w.expect(1, 0, 0, 0)
	}
	if s := w.stats(); s.Dialed != 1 {
		t.Errorf("%+v", s)
	}
}

// A coroutine stops waiting when its context or its connection ends, even if a connection
// is already on its way to it.
func TestBorrowEnds(t *testing.T) {
	for seed := range seeds(6) {
		w := newWorld(t, rondotest.Options{Seed: seed + 1}, pool.Config{MaxLive: 1}, nil)
		home := w.home()
		only := w.mustGet()
		ctx, cancel := context.WithCancel(context.Background())
		var errs [3]error
		for i, ctx := range []context.Context{ctx, context.Background(), context.Background()} {
			w.do(func() {
				home.run(func(co *coro.Co) {
					c, err := w.pool.BorrowContext(ctx, co)
					if errs[i] = err; err == nil {
						defer c.Put()
						co.Sleep(time.Hour)
					}
					if i > 0 {
						runtime.Goexit() // however it ends
					}
				})
			})
			w.net.Run()
		}
		w.expect(0, 1, 0, 3)
		cancel()
		w.net.Until(func() bool { return errs[0] != nil })
		if !errors.Is(errs[0], context.Canceled) {
			t.Errorf("canceled: %v", errs[0])
		}
		w.expect(0, 1, 0, 2)
		// The coroutines' own connection breaks while the one that they wait for arrives.
		w.do(only.Put)
		if seed%2 == 0 {
			w.net.Run()
		}
		home.conn.Reset()
		w.net.Until(func() bool { return home.over })
		w.net.Run()
		w.expect(1, 0, 0, 0)
		if errs[2] == nil {
			t.Error("the last one got a connection")
		}
	}
}

// The end of the engine ends the waits of any number of waiters.
func TestEngineClosesWithManyWaiters(t *testing.T) {
	const waiters = 1000
	w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 1, MaxWaiters: waiters}, nil)
	w.mustGet()
	told := 0
	w.do(func() {
		for range waiters {
			w.pool.Get(func(_ *pool.Conn, err error) {
				if told++; !errors.Is(err, pool.ErrClosed) {
					t.Errorf("told %v", err)
				}
			})
		}
	})
	w.net.Await(func() { w.engine.Close() })
	if told != waiters {
		t.Errorf("%d of %d were told", told, waiters)
	}
}

// silentFilter waits for a peer that says nothing.
type silentFilter struct{ rondo.PassThrough }

func (silentFilter) Start(*rondo.FilterPort) error { return nil }

// Connections whose filters are not ready close with the pool, and do not wait for a peer
// that may never answer.
func TestCloseInMidHandshake(t *testing.T) {
	for _, end := range []func(*pool.Pool){(*pool.Pool).Close, (*pool.Pool).Drain} {
		silent := func(*rondo.Conn) rondo.Filter { return silentFilter{} }
		w := newWorld(t, rondotest.Options{}, pool.Config{MaxLive: 2, Filters: []rondo.FilterOpenFunc{silent}}, nil)
		var told []error
		w.do(func() {
			for range 3 {
				w.pool.Get(func(_ *pool.Conn, err error) { told = append(told, err) })
			}
		})
		w.net.Run()
		if n := w.server.Stats().Open; n != 2 || len(told) != 0 {
			t.Fatalf("%d connections, told %v", n, told)
		}
		w.do(func() { end(w.pool) })
		w.net.Run()
		w.expect(0, 0, 0, 0)
		if n := w.server.Stats().Open; n != 0 {
			t.Errorf("the server has %d connections of a closed pool", n)
		}
		if len(told) != 3 || !errors.Is(told[0], pool.ErrClosed) || !errors.Is(told[2], pool.ErrClosed) {
			t.Errorf("told %v", told)
		}
	}
}
