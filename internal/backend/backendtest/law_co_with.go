package backendtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// A nap is a Sleep that began between two times.
type nap struct {
	length          time.Duration
	awake, sleeping time.Time
}

// endsBefore reports whether n ends before m, whenever within those times both have begun.
func (n *nap) endsBefore(m *nap) bool {
	return n.sleeping.Add(n.length).Before(m.awake.Add(m.length))
}

// coSleeps: Sleep waits as long as asked, while other coroutines run, and those whose time is over
// first wake first.
func coSleeps(w World) {
	s := &script{w: w}
	var naps, woken []*nap // of the loop
	begin := func(length time.Duration) *nap {
		if len(naps) > 0 {
			naps[len(naps)-1].sleeping = w.Now() // a coroutine starts when the one before it waits
		}
		naps = append(naps, &nap{length: length, awake: w.Now()})
		return naps[len(naps)-1]
	}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		for _, ms := range []int{60, 20, 40} {
			co.Go(func(co *coro.Co) error {
				n := begin(time.Duration(ms) * time.Millisecond)
				if err := co.Sleep(n.length); err != nil {
					return err
				}
				if slept := w.Now().Sub(n.awake); slept < n.length {
					w.Errorf("Sleep of %v took %v", n.length, slept)
				}
				woken = append(woken, n)
				return nil
			})
		}
		co.Go(func(*coro.Co) error { begin(0); return nil })
		if err := co.Wait(); err != nil {
			return err
		}
		return co.Sleep(-1)
	})
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
	if len(woken) != 3 {
		w.Fatalf("%d coroutines woke, want 3", len(woken))
	}
	for i, n := range woken {
		for _, m := range woken[i+1:] {
			if m.endsBefore(n) {
				w.Errorf("the sleeper of %v woke before that of %v, which was over earlier", n.length, m.length)
			}
		}
	}
}

// coGoes: coroutines of one connection share it, and any variables, without a lock.
func coGoes(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		const children, rounds = 20, 50
		sum := 0
		for range children {
			co.Go(func(child *coro.Co) error {
				if child == co || child.Loop() != co.Loop() || child.Conn() != co.Conn() {
					w.Error("a child's Loop or Conn is another")
				}
				for range rounds {
					before := sum
					sum = before + 1
					child.Sleep(0)
				}
				return nil
			})
		}
		if sum != 0 {
			w.Error("a child began before its parent waited")
		}
		if err := co.Wait(); err != nil {
			return err
		}
		if sum != children*rounds {
			w.Errorf("the sum is %d", sum)
		}
		// One coroutine reads while another writes.
		co.Go(func(co *coro.Co) error {
			_, err := c.Write([]byte("ping"))
			return err
		})
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "pong" {
			w.Errorf("read %q, %v", b, err)
		}
		return co.Wait()
	})
	expect(w, p, []byte("ping"))
	send(w, p, []byte("pong"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coChildrenEnd: Wait returns a child's error, which closes the connection. Children
// end with the coroutine that serves the connection.
func coChildrenEnd(w World) {
	s := &script{w: w}
	sorry := errors.New("sorry")
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		co.Go(func(co *coro.Co) error { return nil })
		co.Go(func(co *coro.Co) error { co.Sleep(time.Millisecond); return sorry })
		co.Go(func(co *coro.Co) error { return co.Sleep(5 * time.Millisecond) })
		wantErr(w, "Wait", co.Wait(), sorry)
		if err := co.Wait(); err != nil {
			w.Errorf("Wait once more: %v", err)
		}
		_, err := c.Write([]byte("x"))
		wantErr(w, "Write after a child's error", err, sorry)
		wantErr(w, "Write after a child's error", err, net.ErrClosed)
		return nil
	})
	expectEOF(w, p)
	p.Close()
	s.untilEnded(1)

	var child atomic.Value
	p = s.serve(func(co *coro.Co, c net.Conn) error {
		co.Go(func(co *coro.Co) error {
			_, err := c.Read(make([]byte, 1))
			child.Store(err)
			return nil
		})
		return co.Sleep(0)
	})
	expectEOF(w, p)
	p.Close()
	w.Until("the child's end", func() bool { return child.Load() != nil })
	wantErr(w, "the child's Read", child.Load().(error), net.ErrClosed)
}

// coCondWakes: a Cond wakes waiters in order, from coroutines and from callbacks.
func coCondWakes(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		var cond, ready coro.Cond
		cond.Signal() // nobody waits
		order := ""
		for i := range 5 {
			co.Go(func(co *coro.Co) error {
				if i == 4 {
					ready.Signal()
				}
				err := cond.Wait(co)
				order += fmt.Sprint(i)
				return err
			})
		}
		if err := ready.Wait(co); err != nil {
			return err
		}
		co.Sleep(0)
		cond.Signal()
		cond.Signal()
		if err := co.Sleep(0); err != nil || order != "01" {
			w.Errorf("two Signals woke %s, %v", order, err)
		}
		co.Loop().AfterFunc(time.Millisecond, cond.Broadcast)
		err := co.Wait()
		if order != "01234" {
			w.Errorf("Broadcast woke %s", order)
		}
		return err
	})
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coAwaits: Await returns results, errors and panics from another goroutine, while the
// loop runs.
func coAwaits(w World) {
	s := &script{w: w}
	sorry := errors.New("sorry")
	release := make(chan struct{})
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, s.opener(func(co *coro.Co, c net.Conn) error {
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return err
		}
		if line == "release\n" {
			close(release)
			return nil
		}
		answer, err := coro.Await(co, func() (string, error) { <-release; return "answer", sorry })
		if answer != "answer" || err != sorry {
			w.Errorf("Await: %q, %v", answer, err)
		}
		func() {
			defer func() {
				p, _ := recover().(*rondo.PanicError)
				if p == nil || p.Value != "a goat" || len(p.Stack) == 0 {
					w.Errorf("Await of a panic panicked with %v", p)
				}
			}()
			coro.Await(co, func() (int, error) { panic("a goat") })
		}()
		for i := range 100 {
			if n, err := coro.Await(co, func() (int, error) { return i, nil }); n != i || err != nil {
				w.Errorf("Await: %d, %v; want %d", n, err, i)
			}
		}
		_, err = c.Write([]byte("done"))
		return err
	}))
	waiting, releasing := w.Dial(addr), w.Dial(addr)
	send(w, waiting, []byte("wait\n"))
	w.Until("both", func() bool { return s.hasBegun(2) })
	send(w, releasing, []byte("release\n"))
	expectEOF(w, releasing)
	expect(w, waiting, []byte("done"))
	expectEOF(w, waiting)
	if err := s.untilEnded(2); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coAwaitIsLeft: an awaited function learns that the connection has closed, and its
// result is dropped.
func coAwaitIsLeft(w World) {
	s := &script{w: w}
	var begun atomic.Bool
	var cause atomic.Value
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		ctx := co.Context()
		n, err := coro.Await(co, func() (int, error) {
			begun.Store(true)
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return 42, nil
		})
		if n == 42 && err == nil { // the function was faster than the end
			err = co.Sleep(time.Hour)
		}
		_, again := coro.Await(co, func() (int, error) {
			w.Error("Await called its function after the connection had closed")
			return 0, nil
		})
		wantErr(w, "Await again", again, net.ErrClosed)
		return err
	})
	w.Until("the function", begun.Load) // later it would not be called
	p.Reset()
	wantErr(w, "Await", s.untilEnded(1), net.ErrClosed)
	w.Until("the function's end", func() bool { return cause.Load() != nil })
	wantErr(w, "the context's cause", cause.Load().(error), syscall.ECONNRESET)
}

// coAwaitsOn: AwaitOn's function runs where run calls it, or not at all if run refuses it or
// the connection has closed before.
func coAwaitsOn(w World) {
	s := &script{w: w}
	refused := errors.New("refused")
	works := make(chan func(), 1)
	later := func(work func()) error { works <- work; return nil }
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		_, err := coro.AwaitOn(co, func(func()) error { return refused }, func() (int, error) {
			w.Error("AwaitOn called a function that was refused")
			return 0, nil
		})
		wantErr(w, "AwaitOn of what is refused", err, refused)
		n, err := coro.AwaitOn(co, later, func() (int, error) { return 42, nil })
		if n != 42 || err != nil {
			w.Errorf("AwaitOn: %d, %v", n, err)
		}
		_, err = coro.AwaitOn(co, later, func() (int, error) {
			w.Error("AwaitOn called its function after the connection had closed")
			return 0, nil
		})
		return err
	})
	waits := func() bool { return len(works) > 0 }
	w.Until("the first function", waits)
	(<-works)()
	w.Until("the second function", waits)
	p.Reset()
	wantErr(w, "AwaitOn", s.untilEnded(1), net.ErrClosed)
	(<-works)()
}

// coContextEnds: the Context is done when the connection starts to close.
func coContextEnds(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		ctx := co.Context()
		if ctx != co.Context() || ctx.Err() != nil {
			w.Errorf("the context is another one, or %v", ctx.Err())
		}
		c.Close()
		wantErr(w, "the context after Close", ctx.Err(), context.Canceled)
		wantErr(w, "its cause", context.Cause(ctx), net.ErrClosed)
		return nil
	})
	expectEOF(w, p)
	p = s.serve(func(co *coro.Co, c net.Conn) error {
		c.Close()
		wantErr(w, "a context of a closed connection", co.Context().Err(), context.Canceled)
		return nil
	})
	expectEOF(w, p)
	s.untilEnded(2)
}
