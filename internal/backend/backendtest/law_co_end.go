package backendtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/testkit"
)

// coEndsWithItsConn: the end of a connection ends every wait of its coroutine, and the
// coroutine's deferred functions run.
func coEndsWithItsConn(w World) {
	never := make(chan struct{})
	defer close(never)
	var cond coro.Cond
	waits := map[string]func(co *coro.Co, c net.Conn) error{
		"Read":  func(co *coro.Co, c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"Write": func(co *coro.Co, c net.Conn) error { _, err := c.Write(pattern(16 << 20)); return err },
		"Copy":  func(co *coro.Co, c net.Conn) error { _, err := io.Copy(c, c); return err },
		"Sleep": func(co *coro.Co, c net.Conn) error { return co.Sleep(time.Hour) },
		"Cond":  func(co *coro.Co, c net.Conn) error { return cond.Wait(co) },
		"Wait": func(co *coro.Co, c net.Conn) error {
			co.Go(func(co *coro.Co) error { return co.Sleep(time.Hour) })
			return co.Wait()
		},
		"Await": func(co *coro.Co, c net.Conn) error {
			_, err := coro.Await(co, func() (int, error) { <-never; return 0, nil })
			return err
		},
	}
	for name, wait := range waits {
		s := &script{w: w}
		e := &rondo.Engine{NumLoops: 1, HighWater: 1 << 20}
		p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
			err := wait(co, c)
			// Later calls do not wait.
			again := second(c.Read(make([]byte, 1)))
			if again != io.EOF || !resetIsEnd() {
				wantErr(w, name+", then Read", again, net.ErrClosed)
			}
			wantErr(w, name+", then Write", second(c.Write([]byte("x"))), net.ErrClosed)
			return err
		})))
		w.Until("the coroutine", func() bool { return s.hasBegun(1) })
		w.Sleep(5 * time.Millisecond)
		p.Reset()
		wantErr(w, name, s.untilEnded(1), net.ErrClosed)
		w.Until("the end", func() bool { return e.Stats().Open == 0 })
	}
}

func second(_ int, err error) error { return err }

// coEndsWithTheEngine: Engine.Close ends coroutines whatever they do. No goroutine is
// left.
func coEndsWithTheEngine(w World) {
	s := &script{w: w}
	e := &rondo.Engine{NumLoops: 2}
	addr := w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		for range 3 {
			co.Go(func(co *coro.Co) (err error) {
				defer s.counts()(&err)
				return co.Sleep(time.Hour)
			})
		}
		co.Go(func(co *coro.Co) error {
			co.Go(func(co *coro.Co) error { return nil }) // may never start
			_, err := c.Write(pattern(16 << 20))
			return err
		})
		return echoAll(c)
	}))
	const conns = 20
	for range conns {
		w.Dial(addr)
	}
	w.Until("the coroutines", func() bool { return s.hasBegun(4 * conns) })
	w.Call(func() { e.Close() })
	wantErr(w, "the last one", s.untilEnded(4*conns), net.ErrClosed)
	w.Until("the goroutines' end", func() bool { return coroutines() == 0 })
}

// coroutines counts the coroutines of the process.
func coroutines() int {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*n)
		n = runtime.Stack(buf, true)
	}
	return strings.Count(string(buf[:n]), "\ngithub.com/rondo-go/rondo/coro.(*Co).run(")
}

// coShutdownFlushes: Shutdown sends the output of coroutines. Their later reads and
// writes fail.
func coShutdownFlushes(w World) {
	s := &script{w: w}
	big := pattern(1 << 20)
	e := &rondo.Engine{NumLoops: 2, HighWater: 2 << 20, Linger: time.Minute}
	addr := w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		c.Write(big)
		_, err := c.Read(make([]byte, 1))
		wantErr(w, "Read", err, net.ErrClosed)
		wantErr(w, "Write", second(c.Write([]byte("x"))), net.ErrClosed)
		return nil
	}))
	peers := []Peer{w.Dial(addr), w.Dial(addr), w.Dial(addr)}
	w.Until("the coroutines", func() bool { return s.hasBegun(len(peers)) })
	done := make(chan error, 1)
	go func() { done <- e.Shutdown(context.Background()) }()
	s.untilEnded(len(peers))
	for _, p := range peers {
		expect(w, p, big)
		expectEOF(w, p)
		p.Close()
	}
	w.Until("Shutdown", func() bool { return len(done) > 0 })
	if err := <-done; err != nil {
		w.Errorf("Shutdown: %v", err)
	}
}

// coThatIgnoresErrorsEnds: a coroutine that continues although every call fails,
// because its connection is gone, is ended.
func coThatIgnoresErrorsEnds(w World) {
	for name, ignore := range map[string]func(co *coro.Co, c net.Conn){
		"Read":  func(co *coro.Co, c net.Conn) { c.Read(make([]byte, 1)) },
		"Write": func(co *coro.Co, c net.Conn) { c.Write([]byte("x")) },
		"Sleep": func(co *coro.Co, c net.Conn) { co.Sleep(time.Millisecond) },
		"Turn":  func(co *coro.Co, c net.Conn) { co.Sleep(0) },
		"Await": func(co *coro.Co, c net.Conn) { coro.Await(co, func() (int, error) { return 0, nil }) },
		"Dial":  func(co *coro.Co, c net.Conn) { co.Dial("tcp", c.LocalAddr().String()) },
		"Cond":  func(co *coro.Co, c net.Conn) { new(coro.Cond).Wait(co) },
	} {
		var log testkit.Log
		s := &script{w: w}
		e := &rondo.Engine{NumLoops: 1, Logger: log.Logger()}
		p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
			defer func() {
				for range 3 { // deferred functions may continue for a while
					wantErr(w, name+": a deferred Read", second(c.Read(make([]byte, 1))), net.ErrClosed)
				}
			}()
			co.Sleep(time.Hour)
			for {
				ignore(co, c)
			}
		})))
		w.Until("the coroutine", func() bool { return s.hasBegun(1) })
		w.Sleep(20 * time.Millisecond) // a reset that comes before the read may be shown as an end: resetIsEnd
		p.Reset()
		s.untilEnded(1)
		w.Until(name+": the log to tell who was ended", func() bool {
			return strings.Contains(log.String(), "coThatIgnoresErrorsEnds")
		})
	}
}

// coPanicCostsItsConnAlone: a panic in a coroutine ends only its own connection. It is
// logged with the coroutine's stack.
func coPanicCostsItsConnAlone(w World) {
	var log testkit.Log
	s := &script{w: w}
	cause := errors.New("division of a goat")
	e := &rondo.Engine{NumLoops: 1, Logger: log.Logger()}
	addr := w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return err
		}
		switch line {
		case "panic\n":
			dividesTheGoat(cause)
		case "child\n":
			co.Go(func(co *coro.Co) error {
				co.Sleep(time.Millisecond)
				dividesTheGoat(cause)
				return nil
			})
			err = co.Wait()
			wantErr(w, "Wait for a child that panics", err, cause)
		case "await\n":
			coro.Await(co, func() (int, error) {
				dividesTheGoat(cause)
				return 0, nil
			})
		}
		c.Write([]byte(line))
		return echoAll(c)
	}))
	other := w.Dial(addr)
	for i, how := range []string{"panic", "child", "await"} {
		p := w.Dial(addr)
		send(w, p, []byte(how+"\n"))
		expectReset(w, p)
		send(w, other, []byte(how+"!\n"))
		expect(w, other, []byte(how+"!\n"))
		w.Until("the panic's count", func() bool { return e.Stats().Panics == uint64(i+1) })
		if text := log.String(); strings.Count(text, "a coroutine panicked") != i+1 || strings.Count(text, "dividesTheGoat") < i+1 ||
			strings.Count(text, "coPanicCostsItsConnAlone") < i+1 {
			w.Errorf("%s: the log lacks the panic with its stack:\n%s", how, text)
		}
	}
}

func dividesTheGoat(err error) { panic(err) }

// coGoexitCostsItsConnAlone: runtime.Goexit in a coroutine, as by a test's FailNow,
// ends only its own connection, and the loop continues.
func coGoexitCostsItsConnAlone(w World) {
	s := &script{w: w}
	e := &rondo.Engine{NumLoops: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	addr := w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		line, _ := bufio.NewReader(c).ReadString('\n')
		switch line {
		case "goexit\n":
			runtime.Goexit()
		case "await\n":
			coro.Await(co, func() (int, error) { runtime.Goexit(); return 0, nil })
			w.Error("Await returned")
		}
		c.Write([]byte(line))
		return nil
	}))
	for _, how := range []string{"goexit", "await"} {
		p := w.Dial(addr)
		send(w, p, []byte(how+"\n"))
		expectReset(w, p)
	}
	p := w.Dial(addr)
	send(w, p, []byte("fine\n"))
	expect(w, p, []byte("fine\n"))
	s.untilEnded(3)
}

// coMisuseIsTold: using a coroutine or its connection on a wrong goroutine fails there,
// with an error if the method has one, otherwise with a panic.
func coMisuseIsTold(w World) {
	s := &script{w: w}
	fails := func(what string, err error) {
		wantErr(w, what, err, coro.ErrNotCoroutine)
	}
	panics := func(what string, f func()) {
		defer func() {
			if text, _ := recover().(string); !strings.Contains(text, "outside of") {
				w.Errorf("%s: panicked with %q", what, text)
			}
		}()
		f()
	}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		try := func(where string) {
			fails("Read "+where, second(c.Read(make([]byte, 1))))
			fails("Write "+where, second(c.Write([]byte("x"))))
			fails("CloseWrite "+where, c.(closeWriter).CloseWrite())
			fails("WriteTo "+where, third(c.(io.WriterTo).WriteTo(c)))
			fails("ReadFrom "+where, third(io.Copy(c, c)))
			fails("Sleep "+where, co.Sleep(1))
			fails("Wait "+where, co.Wait())
			_, err := co.Dial("tcp", "127.0.0.1:1")
			fails("Dial "+where, err)
			fails("Await "+where, second(coro.Await(co, func() (int, error) { return 0, nil })))
			fails("Cond "+where, new(coro.Cond).Wait(co))
			panics("Go "+where, func() { co.Go(nil) })
			panics("Context "+where, func() { co.Context() })
			if co.Calling() {
				w.Error("Calling " + where)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			try("on a goroutine that it waits for") // the coroutine counts as running
		}()
		<-done
		var cond coro.Cond
		co.Loop().AfterFunc(time.Millisecond, func() {
			try("in a callback of its loop")
			cond.Signal()
		})
		if err := cond.Wait(co); err != nil {
			return err
		}
		co.Go(func(child *coro.Co) error {
			fails("another's Sleep", co.Sleep(1))
			panics("another's Context", func() { co.Context() })
			if co.Calling() || !child.Calling() {
				w.Error("a child is taken for its parent")
			}
			_, err := c.Write([]byte("a child may write"))
			return err
		})
		return co.Wait()
	})
	expect(w, p, []byte("a child may write"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

func third(_ int64, err error) error { return err }

// coStarvesNobody: a coroutine that never waits, because its peer reads everything at
// once, does not starve timers or other connections.
func coStarvesNobody(w World) {
	s := &script{w: w}
	var ticks, floods atomic.Int64
	e := &rondo.Engine{NumLoops: 1}
	addr := w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		if floods.Add(1) > 1 {
			return echoAll(c)
		}
		co.Loop().Every(time.Millisecond, func() { ticks.Add(1) })
		co.Go(func(co *coro.Co) error { // wakes itself repeatedly
			for co.Sleep(10*time.Microsecond) == nil {
			}
			return nil
		})
		block := pattern(64 << 10)
		for {
			if _, err := c.Write(block); err != nil {
				return nil
			}
		}
	}))
	flooded := w.Dial(addr)
	w.Until("the flood", func() bool { return floods.Load() == 1 })
	client := w.Dial(addr)
	var taken atomic.Int64
	for i := range 20 {
		b := make([]byte, 1<<20)
		flooded.SetReadDeadline(w.Now().Add(patience))
		n, err := io.ReadFull(flooded, b)
		taken.Add(int64(n))
		if err != nil {
			w.Fatalf("the flood ended: %v", err)
		}
		msg := []byte{byte(i), 1, 2, 3}
		send(w, client, msg)
		expect(w, client, msg)
	}
	before := ticks.Load()
	w.Until("timers beside a flood", func() bool { return ticks.Load() > before })
	flooded.Reset()
	client.Reset()
	s.untilEnded(2)
}
