package backendtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

// Sleep waits as long as it is told to, others meanwhile go on.
func coSleeps(w World) {
	s := &script{w: w}
	var order atomic.Value
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
		now := co.Loop().Now
		text := ""
		for _, ms := range []int{60, 20, 40} {
			co.Go(func(co *rondo.Co) error {
				began, d := now(), time.Duration(ms)*time.Millisecond
				if err := co.Sleep(d); err != nil {
					return err
				}
				if slept := now().Sub(began); slept < d {
					w.Errorf("Sleep of %v took %v", d, slept)
				}
				text += fmt.Sprint(ms, " ")
				return nil
			})
		}
		if err := co.Wait(); err != nil {
			return err
		}
		order.Store(text)
		return co.Sleep(-1)
	})
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
	if order.Load() != "20 40 60 " {
		w.Errorf("they woke in the order %v", order.Load())
	}
}

// Coroutines of a connection share it, and what they like, without a lock.
func coGoes(w World) {
	s := &script{w: w}
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
		const children, rounds = 20, 50
		sum := 0
		for range children {
			co.Go(func(child *rondo.Co) error {
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
		// While one reads another writes.
		co.Go(func(co *rondo.Co) error {
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

// Wait brings a child's error, which closes the connection; and children end
// with the coroutine that serves the connection.
func coChildrenEnd(w World) {
	s := &script{w: w}
	sorry := errors.New("sorry")
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
		co.Go(func(co *rondo.Co) error { return nil })
		co.Go(func(co *rondo.Co) error { co.Sleep(time.Millisecond); return sorry })
		co.Go(func(co *rondo.Co) error { return co.Sleep(5 * time.Millisecond) })
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
	p = s.serve(func(co *rondo.Co, c net.Conn) error {
		co.Go(func(co *rondo.Co) error {
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

// A Cond wakes who waits, in order, by coroutines and by callbacks.
func coCondWakes(w World) {
	s := &script{w: w}
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
		var cond, ready rondo.Cond
		cond.Signal() // for nobody
		order := ""
		for i := range 5 {
			co.Go(func(co *rondo.Co) error {
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

// Await brings results, errors and panics from another goroutine, while the loop
// goes on.
func coAwaits(w World) {
	s := &script{w: w}
	sorry := errors.New("sorry")
	release := make(chan struct{})
	addr := w.Listen(&rondo.Engine{Loops: 1}, s.opener(func(co *rondo.Co, c net.Conn) error {
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return err
		}
		if line == "release\n" {
			close(release)
			return nil
		}
		answer, err := rondo.Await(co, func() (string, error) { <-release; return "answer", sorry })
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
			rondo.Await(co, func() (int, error) { panic("a goat") })
		}()
		for i := range 100 {
			if n, err := rondo.Await(co, func() (int, error) { return i, nil }); n != i || err != nil {
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

// A function that is awaited when the connection closes learns of it, and its
// result is dropped.
func coAwaitIsLeft(w World) {
	s := &script{w: w}
	var cause atomic.Value
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
		ctx := co.Context()
		n, err := rondo.Await(co, func() (int, error) {
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return 42, nil
		})
		if n == 42 && err == nil { // it was quicker than the end
			err = co.Sleep(time.Hour)
		}
		_, again := rondo.Await(co, func() (int, error) {
			w.Error("Await called its function after the connection had closed")
			return 0, nil
		})
		wantErr(w, "Await again", again, net.ErrClosed)
		return err
	})
	w.Until("the coroutine", func() bool { return s.hasBegun(1) })
	p.Reset()
	wantErr(w, "Await", s.untilEnded(1), net.ErrClosed)
	w.Until("the function's end", func() bool { return cause.Load() != nil })
	wantErr(w, "the context's cause", cause.Load().(error), syscall.ECONNRESET)
}

// The Context is done once the connection begins to close.
func coContextEnds(w World) {
	s := &script{w: w}
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
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
	p = s.serve(func(co *rondo.Co, c net.Conn) error {
		c.Close()
		wantErr(w, "a context of a closed connection", co.Context().Err(), context.Canceled)
		return nil
	})
	expectEOF(w, p)
	s.untilEnded(2)
}

// A coroutine dials, and talks to what it dialed.
func coDials(w World) {
	e := &rondo.Engine{Loops: 2}
	echo := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	s := &script{w: w}
	question := pattern(200_000)
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
		for name, dial := range map[string]func(network, address string) (net.Conn, error){
			"Dial":        co.Dial,
			"DialTimeout": func(n, a string) (net.Conn, error) { return co.DialTimeout(n, a, time.Hour) },
			"DialContext": func(n, a string) (net.Conn, error) { return co.DialContext(co.Context(), n, a) },
		} {
			d, err := dial("tcp", echo.String())
			if err != nil {
				return err
			}
			if d.RemoteAddr().String() != echo.String() || d.LocalAddr() == nil {
				w.Errorf("%s: a connection from %v to %v", name, d.LocalAddr(), d.RemoteAddr())
			}
			co.Go(func(*rondo.Co) error {
				_, err := d.Write(question)
				return errors.Join(err, d.(closeWriter).CloseWrite())
			})
			answer, err := io.ReadAll(d)
			if err != nil || mismatch(answer, question) >= 0 {
				w.Errorf("%s: the echo is %d bytes, %v", name, len(answer), err)
			}
			if err := errors.Join(co.Wait(), d.Close()); err != nil {
				return err
			}
			wantErr(w, "Read after Close", second(d.Read(make([]byte, 1))), net.ErrClosed)
			if d.LocalAddr() == nil || d.RemoteAddr() == nil {
				w.Error("a closed connection has no address")
			}
		}
		return nil
	})
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// A dial that fails says why.
func coDialFails(w World) {
	var nobody *rondo.Listener
	e := &rondo.Engine{Loops: 1}
	s := &script{w: w}
	p := w.Dial(w.Listen(e, s.opener(func(co *rondo.Co, c net.Conn) error {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		var op *net.OpError
		_, err := co.Dial("tcp", nobody.Addr().String())
		wantErr(w, "where nobody listens", err, syscall.ECONNREFUSED)
		if !errors.As(err, &op) || op.Op != "dial" {
			w.Errorf("where nobody listens: %v", err)
		}
		if _, err := co.Dial("udp", nobody.Addr().String()); err == nil {
			w.Error("it dialed udp")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = co.DialContext(ctx, "tcp", c.LocalAddr().String())
		wantErr(w, "with a context that is done", err, context.Canceled)
		return nil
	})))
	w.Call(func() {
		var err error
		if nobody, err = e.Listen("tcp", "127.0.0.1:0", rondo.Socket{}, opener(nil)); err != nil {
			w.Errorf("Listen: %v", err)
			return
		}
		nobody.Close()
	})
	send(w, p, []byte("x"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// A proxy is two copies. Each direction ends by itself, the half-closes go
// through, and nothing is lost, whichever ends first.
func coProxies(w World) {
	for _, serverFirst := range []bool{false, true} {
		question, answer := pattern(1_500_000), pattern(2_000_000)
		e := &rondo.Engine{Loops: 1, HighWater: 60_000, LowWater: 20_000}
		back, front := &script{w: w}, &script{w: w}
		backAddr := w.Listen(e, back.opener(func(co *rondo.Co, c net.Conn) error {
			speak := func(*rondo.Co) error {
				_, err := c.Write(answer)
				return errors.Join(err, c.(closeWriter).CloseWrite())
			}
			if serverFirst {
				if err := speak(co); err != nil {
					return err
				}
			}
			got, err := io.ReadAll(c)
			if mismatch(got, question) >= 0 {
				w.Errorf("the question came as %d bytes, %v", len(got), err)
			}
			if !serverFirst {
				return speak(co)
			}
			return err
		}))
		p := w.Dial(w.Listen(&rondo.Engine{Loops: 1, HighWater: 50_000}, front.opener(func(co *rondo.Co, c net.Conn) error {
			up, err := co.Dial("tcp", backAddr.String())
			if err != nil {
				return err
			}
			defer up.Close()
			pass := func(dst, src net.Conn) error {
				_, err := io.Copy(dst, src)
				return errors.Join(err, dst.(closeWriter).CloseWrite())
			}
			co.Go(func(*rondo.Co) error { return pass(up, c) })
			return errors.Join(pass(c, up), co.Wait())
		})))
		if serverFirst {
			expect(w, p, answer)
			expectEOF(w, p)
		}
		send(w, p, question)
		p.CloseWrite()
		if !serverFirst {
			expect(w, p, answer)
			expectEOF(w, p)
		}
		for _, s := range []*script{back, front} {
			if err := s.untilEnded(1); err != nil {
				w.Errorf("a coroutine returned %v", err)
			}
		}
	}
}

// io.CopyN and io.Copy, to and from other things than connections.
func coCopiesPieces(w World) {
	s := &script{w: w}
	sent := pattern(500_000)
	p := s.serve(func(co *rondo.Co, c net.Conn) error {
		if n, err := io.CopyN(c, c, 300_000); n != 300_000 || err != nil {
			w.Errorf("CopyN: %d, %v", n, err)
		}
		var rest buffer
		n, err := io.Copy(&rest, c)
		if n != 200_000 || err != nil || mismatch(rest, sent[300_000:]) >= 0 {
			w.Errorf("Copy to a buffer: %d, %v", n, err)
		}
		if n, err := c.(io.ReaderFrom).ReadFrom(&rest); n != 200_000 || err != nil {
			w.Errorf("ReadFrom a buffer: %d, %v", n, err)
		}
		if n, err := io.CopyN(c, c, 1); n != 0 || err != io.EOF {
			w.Errorf("CopyN at the end: %d, %v", n, err)
		}
		return nil
	})
	for at := 0; at < 300_000; at += 50_000 {
		send(w, p, sent[at:at+50_000])
		expect(w, p, sent[at:at+50_000])
	}
	send(w, p, sent[300_000:])
	p.CloseWrite()
	expect(w, p, sent[300_000:])
	expectEOF(w, p)
	s.untilEnded(1)
}

// buffer is a reader and writer, and nothing else that io.Copy might use.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b *buffer) Read(p []byte) (int, error) {
	if len(*b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, *b)
	*b = (*b)[n:]
	return n, nil
}

// Many coroutines wait in all ways, are woken, and end, some of them in
// the midst of it.
func coMany(w World) {
	const conns, each = 10, 40
	s := &script{w: w}
	e := &rondo.Engine{Loops: 1}
	var awake atomic.Int64
	addr := w.Listen(e, s.opener(func(co *rondo.Co, c net.Conn) error {
		var cond rondo.Cond
		random := rand.New(rand.NewPCG(uint64(s.began), 1))
		for i := range each {
			co.Go(func(co *rondo.Co) (err error) {
				defer s.counts()(&err)
				for {
					if i%2 == 0 {
						err = co.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
					} else {
						err = cond.Wait(co)
					}
					if err != nil {
						return nil
					}
					awake.Add(1)
					if i%2 == 0 {
						cond.Signal()
					}
				}
			})
		}
		return echoAll(c)
	}))
	var peers []Peer
	for range conns {
		peers = append(peers, w.Dial(addr))
	}
	w.Until("all coroutines at work", func() bool {
		return s.hasBegun(conns*(each+1)) && awake.Load() > 2*conns*each
	})
	for i, p := range peers {
		if i%2 == 0 {
			p.Reset()
		} else {
			p.CloseWrite()
			expectEOF(w, p)
			p.Close()
		}
	}
	s.untilEnded(conns * (each + 1))
}
