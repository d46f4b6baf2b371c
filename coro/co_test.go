package coro_test

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/internal/testkit"
)

// echoReads is an echo server as one writes it for package net.
func echoReads(_ *coro.Co, c net.Conn) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// echoCopies is one without a buffer.
func echoCopies(_ *coro.Co, c net.Conn) error {
	_, err := io.Copy(c, c)
	return err
}

// echoTimes sets deadlines and sleeps for each message.
func echoTimes(co *coro.Co, c net.Conn) error {
	buf := make([]byte, 64<<10)
	for {
		c.SetDeadline(co.Loop().Now().Add(time.Minute))
		n, err := c.Read(buf)
		if err == nil {
			err = co.Sleep(time.Nanosecond)
		}
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// TestCoroutineAllocatesNothing keeps the hot path free of garbage.
func TestCoroutineAllocatesNothing(t *testing.T) {
	for name, f := range map[string]func(*coro.Co, net.Conn) error{
		"Read and Write": echoReads, "Copy": echoCopies, "deadlines and Sleep": echoTimes,
	} {
		for _, size := range []int{64, 20_000} {
			c := testkit.ConnTo(t, &rondo.Engine{NumLoops: 1}, coro.Handler(f))
			msg, back := make([]byte, size), make([]byte, size)
			n := testing.AllocsPerRun(500, func() {
				c.Write(msg)
				io.ReadFull(c, back)
			})
			if n >= 1 {
				t.Errorf("%s: an echo of %d bytes makes %v allocations", name, size, n)
			}
		}
	}
}

// TestIdleCoroutineIsSmall: what a connection served by a coroutine holds, its
// goroutine's stack included, and the client of package net with it.
func TestIdleCoroutineIsSmall(t *testing.T) {
	const conns = 500
	most := 5500
	if sys.Race {
		most *= 2 // stacks are larger then
	}
	f := func(_ *coro.Co, c net.Conn) error {
		var buf [64]byte
		for {
			if _, err := c.Read(buf[:]); err != nil {
				return err
			}
		}
	}
	c := testkit.ConnTo(t, &rondo.Engine{NumLoops: 1}, coro.Handler(f))
	address := c.RemoteAddr().String()
	before := held()
	for range conns {
		roundTripNothing(t, address)
	}
	if each := (held() - before) / conns; each > most {
		t.Errorf("an idle connection and its client hold %d bytes, want at most %d", each, most)
	}
}

// held is how much memory is in use.
func held() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// roundTripNothing connects, and stays.
func roundTripNothing(t *testing.T, address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
}

// TestCoroutineThatSpins: one that reads on and on after the end of its stream
// lets the others have their turn.
func TestCoroutineThatSpins(t *testing.T) {
	for _, backend := range pick.Available() {
		var spins atomic.Int64
		e := &rondo.Engine{NumLoops: 1, Backend: backend, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		c := testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			if spins.Add(1) > 1 {
				return echoReads(co, c)
			}
			for ; ; spins.Add(1) {
				c.Read(make([]byte, 1))
			}
		}))
		c.(*net.TCPConn).CloseWrite()
		for spins.Load() < 10_000 {
			time.Sleep(time.Millisecond)
		}
		testkit.RoundTrip(t, "tcp", c.RemoteAddr().String(), "beside it")
		e.Close()
	}
}

// TestTenThousandCoroutines wait, are woken by timers and by each other, and end
// with their connections: half of those are reset, half end with the engine.
func TestTenThousandCoroutines(t *testing.T) {
	const conns, each = 20, 500
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			var alive, awake atomic.Int64
			before := stacksWith("coro.(*Co).run(") // tests that have no engine leave some
			e := &rondo.Engine{NumLoops: 2, Backend: backend}
			c := testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
				var cond coro.Cond
				for i := range each {
					co.Go(func(co *coro.Co) (err error) {
						alive.Add(1)
						defer alive.Add(-1)
						for err == nil {
							awake.Add(1)
							if i%2 == 0 {
								err = co.Sleep(rand.N(30 * time.Millisecond))
								cond.Signal()
							} else {
								err = cond.Wait(co)
							}
						}
						return nil
					})
				}
				return echoReads(co, c)
			}))
			for range conns - 1 {
				testkit.RoundTrip(t, "tcp", c.RemoteAddr().String(), "hello")
			}
			testkit.Until(t, "all coroutines at work", func() bool { return alive.Load() == conns*each && awake.Load() > 3*conns*each })
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
			testkit.Until(t, "one connection's to end", func() bool { return alive.Load() == (conns-1)*each })
			e.Close()
			if n := alive.Load(); n != 0 {
				t.Errorf("%d coroutines outlived the engine", n)
			}
			testkit.Until(t, "their goroutines to end", func() bool { return stacksWith("coro.(*Co).run(") == before })
		})
	}
}

// stacksWith counts the goroutines that are in a function.
func stacksWith(f string) int {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*n)
		n = runtime.Stack(buf, true)
	}
	return strings.Count(string(buf[:n]), f)
}

// TestTracesOfCoroutines: others know a coroutine by what its stack trace has: the
// simulator (sim/watch.go), Engine.Check (calling.go) and who looks for deadlocks.
func TestTracesOfCoroutines(t *testing.T) {
	c := testkit.ConnTo(t, &rondo.Engine{NumLoops: 1}, coro.Handler(echoReads))
	testkit.Echoes(t, c, "hello")
	testkit.Until(t, "the trace of a coroutine that waits", func() bool {
		buf := make([]byte, 1<<20)
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, " [coroutine") && strings.Contains(stack, "/coro.(*Co).run(0x") {
				return true
			}
		}
		return false
	})
}

// TestCoroutineOnALockedThread: coroutines stay on their loop's thread.
func TestCoroutineOnALockedThread(t *testing.T) {
	for _, e := range []*rondo.Engine{{LockThreads: true}, {CPUs: []int{0}}} {
		var dialed atomic.Bool
		c := testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			if dialed.Swap(true) {
				return echoReads(co, c)
			}
			for range 3 {
				co.Go(func(co *coro.Co) error {
					co.Go(func(*coro.Co) error { return nil })
					coro.Await(co, func() (int, error) { return 0, nil })
					return co.Wait()
				})
			}
			up, err := co.Dial("tcp", c.LocalAddr().String())
			if err != nil {
				return err
			}
			defer up.Close()
			if err := co.Wait(); err != nil {
				return err
			}
			if _, err = io.CopyN(up, c, 5); err == nil {
				_, err = io.CopyN(c, up, 5)
			}
			return err
		}))
		c.Write([]byte("hello"))
		if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
			t.Errorf("read %q, %v", b, err)
		}
	}
}

// TestRepanicOfACoroutine: with Engine.Repanic a coroutine's panic ends the
// program too, and the log has its stack.
func TestRepanicOfACoroutine(t *testing.T) {
	out, err := testkit.Run(t, "repanic_coroutine")
	if err == nil || !strings.Contains(out, "panic: on purpose") || !strings.Contains(out, "main.onPurpose") {
		t.Errorf("the program went on, or did not tell: %v\n%s", err, out)
	}
}

// TestHandlerWithoutFunction: it is told where it should have been given.
func TestHandlerWithoutFunction(t *testing.T) {
	defer func() {
		if text := recover(); text != "coro: Handler was given no function" {
			t.Errorf("panicked with %v", text)
		}
	}()
	coro.Handler(nil)
}

// TestLongWriteGivesWay: other connections have turns during a long Write to a peer that
// reads at once.
func TestLongWriteGivesWay(t *testing.T) {
	const size = 64 << 20
	for _, backend := range pick.Available() {
		e := &rondo.Engine{Backend: backend, NumLoops: 1}
		c := testkit.ConnTo(t, e, coro.Handler(func(_ *coro.Co, c net.Conn) error {
			_, err := c.Write(make([]byte, size))
			return err
		}))
		if n, err := io.Copy(io.Discard, c); n != size || err != nil {
			t.Fatalf("%s: read %d bytes, %v", backend, n, err)
		}
		if n := e.Stats().Turns; n < size/(512<<10) {
			t.Errorf("%s: a Write of 64 MiB had %d turns", backend, n)
		}
	}
}

// TestWritersDoNotQueue: coroutines that write to one connection, for which there is room, do not
// wait for each other in each Write, also if another one reads it or it has deadlines, and if they
// had to wait for each other before.
func TestWritersDoNotQueue(t *testing.T) {
	const writes, fill = 20_000, 8 << 20
	for _, with := range []string{"nothing", "a reader", "deadlines"} {
		e := &rondo.Engine{NumLoops: 1}
		turns := make(chan uint64, 1)
		c := testkit.ConnTo(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			if with == "deadlines" {
				c.SetDeadline(time.Now().Add(time.Hour))
			}
			before, left := e.Stats().Turns, 2
			for range left {
				co.Go(func(*coro.Co) error {
					c.Write(make([]byte, fill))
					for range writes {
						if _, err := c.Write(make([]byte, 16)); err != nil {
							return err
						}
					}
					if left--; left == 0 {
						turns <- e.Stats().Turns - before
					}
					return nil
				})
			}
			if with == "a reader" {
				_, err := c.Read(make([]byte, 1))
				return err
			}
			return co.Wait()
		}))
		if _, err := io.ReadFull(c, make([]byte, 2*(fill+16*writes))); err != nil {
			t.Fatal(err)
		}
		if n := <-turns; n > writes/10 {
			t.Errorf("with %s, %d Writes took %d turns", with, 2*writes, n)
		}
		c.Close()
	}
}

// TestWritersTakeTurns: a coroutine whose Write waits for room is not passed over again and again
// by those of others.
func TestWritersTakeTurns(t *testing.T) {
	const writers, writes, size = 3, 1000, 20 << 10
	for _, backend := range pick.Available() {
		longest := make(chan int, 1)
		c := testkit.ConnTo(t, &rondo.Engine{Backend: backend, NumLoops: 1, HighWater: size / 2}, coro.Handler(func(co *coro.Co, c net.Conn) error {
			written, worst := 0, 0
			for range writers {
				co.Go(func(*coro.Co) error {
					for range writes {
						before := written
						if _, err := c.Write(make([]byte, size)); err != nil {
							return err
						}
						worst = max(worst, written-before)
						written++
					}
					return nil
				})
			}
			err := co.Wait()
			longest <- worst
			return err
		}))
		n, buf := 0, make([]byte, 4<<10) // small, so that the peer is slower than the coroutines
		for {
			k, err := c.Read(buf)
			if n += k; err != nil {
				break
			}
		}
		if n != writers*writes*size {
			t.Fatalf("%s: read %d bytes", backend, n)
		}
		if n := <-longest; n > 4*writers {
			t.Errorf("%s: a Write waited for %d others", backend, n)
		}
	}
}

// TestEmptyWrite: a Write of no bytes does not wait, even if output is full.
func TestEmptyWrite(t *testing.T) {
	for _, reads := range []bool{false, true} {
		written := make(chan error, 1)
		c := testkit.ConnTo(t, &rondo.Engine{NumLoops: 1, HighWater: 1000, MaxOutput: 1 << 30}, coro.Handler(func(co *coro.Co, c net.Conn) error {
			co.Go(func(co *coro.Co) error {
				co.Sleep(0) // until the other one reads
				co.Conn().Write(make([]byte, 64<<20))
				_, err := c.Write(nil)
				written <- err
				return nil
			})
			if reads {
				c.Read(make([]byte, 1))
			}
			return co.Wait()
		}))
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Errorf("reads %v: the Write waits", reads)
		}
		c.Close()
	}
}
