package backendtest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// coReadDeadline: a read deadline ends a waiting Read, and later Reads, but not the
// connection. After the deadline is moved, Reads return input again.
func coReadDeadline(w World) {
	const wait = 50 * time.Millisecond
	s := &script{w: w}
	var first atomic.Bool // the answer was read
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		b := make([]byte, 10)
		now := co.Loop().Now
		for range 3 {
			began := now()
			c.SetReadDeadline(began.Add(wait))
			n, err := c.Read(b)
			timedOut(w, "a Read that waits", n, 0, err)
			if d := now().Sub(began); d < wait {
				w.Errorf("the deadline came after %v", d)
			}
			n, err = c.Read(b)
			timedOut(w, "the next Read", n, 0, err)
			co.Sleep(0)
		}
		c.SetDeadline(now().Add(-time.Hour))
		n, err := c.Read(b)
		timedOut(w, "a deadline in the past", n, 0, err)
		n, err = c.Write(b)
		timedOut(w, "a Write with a deadline in the past", n, 0, err)
		c.SetWriteDeadline(time.Time{})
		c.Write([]byte("x"))

		co.Sleep(wait) // the answer has arrived, but the deadline counts first
		n, err = c.Read(b)
		timedOut(w, "a Read of what is there", n, 0, err)
		c.SetReadDeadline(now().Add(time.Hour))
		if n, err = c.Read(b); string(b[:n]) != "y" || err != nil {
			w.Errorf("with the deadline moved: %q, %v", b[:n], err)
		}
		first.Store(true)
		c.SetReadDeadline(time.Time{})
		if n, err = c.Read(b); string(b[:n]) != "z" || err != nil {
			w.Errorf("with no deadline: %q, %v", b[:n], err)
		}
		_, err = c.Write([]byte("end"))
		return err
	})
	expect(w, p, []byte("x"))
	send(w, p, []byte("y"))
	w.Until("a Read of what is there", first.Load)
	w.Sleep(2 * wait) // no deadline ends the next Read
	send(w, p, []byte("z"))
	expect(w, p, []byte("end"))
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coReadDeadlineMoves: another coroutine may move the deadline of a waiting Read: to
// now, to a later time, to never.
func coReadDeadlineMoves(w World) {
	const wait = 100 * time.Millisecond
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		b := make([]byte, 10)
		now := co.Loop().Now
		late := false // the machine stood still until the old deadline
		move := func(t func() time.Time) {
			began := now()
			late = true
			co.Go(func(co *coro.Co) error {
				co.Sleep(wait / 4)
				late = now().Sub(began) >= wait
				return c.SetReadDeadline(t())
			})
		}
		c.SetReadDeadline(now().Add(time.Hour))
		move(func() time.Time { return now().Add(-time.Second) })
		began := now()
		n, err := c.Read(b)
		timedOut(w, "a deadline moved to the past", n, 0, err)
		if d := now().Sub(began); d > time.Minute {
			w.Errorf("Read ended %v after its deadline was moved to the past", d)
		}

		began = now()
		c.SetReadDeadline(began.Add(wait))
		move(func() time.Time { return began.Add(2 * wait) })
		n, err = c.Read(b)
		timedOut(w, "a deadline moved on", n, 0, err)
		if d := now().Sub(began); d < 2*wait && !late {
			w.Errorf("Read ended after %v, before the moved deadline", d)
		}

		c.SetReadDeadline(now().Add(wait))
		move(func() time.Time { return time.Time{} })
		c.Write([]byte("now"))
		n, err = io.ReadFull(c, b[:4])
		if late && errors.Is(err, os.ErrDeadlineExceeded) {
			c.SetReadDeadline(time.Time{})
			n, err = io.ReadFull(c, b[:4])
		}
		if string(b[:n]) != "late" || err != nil {
			w.Errorf("a deadline taken away: %q, %v", b[:n], err)
		}
		return co.Wait()
	})
	expect(w, p, []byte("now"))
	w.Sleep(2 * wait)
	send(w, p, []byte("late"))
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coWriteDeadline: a write deadline ends a Write that waits for the peer. The stream
// has exactly the bytes that Write counted, and continues after them.
func coWriteDeadline(w World) {
	const wait = 50 * time.Millisecond
	s := &script{w: w}
	sent := pattern(16 << 20)
	e := &rondo.Engine{NumLoops: 1, HighWater: 50_000}
	var taken atomic.Int64
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		now := co.Loop().Now
		began := now()
		c.SetWriteDeadline(began.Add(wait))
		n, err := c.Write(sent)
		timedOut(w, "a Write that waits", n, n, err)
		if n == 0 || n == len(sent) {
			w.Errorf("%d bytes were taken for a peer that reads nothing", n)
		}
		if d := now().Sub(began); d < wait {
			w.Errorf("the deadline came after %v", d)
		}
		m, err := c.Write(sent)
		timedOut(w, "the next Write", m, 0, err)

		// Move the deadline of a waiting Write.
		c.SetWriteDeadline(now().Add(time.Hour))
		co.Go(func(co *coro.Co) error {
			co.Sleep(wait / 2)
			return c.SetWriteDeadline(now().Add(wait / 2))
		})
		m, err = c.Write(sent[n:])
		timedOut(w, "a Write whose deadline was moved", m, m, err)
		n += m
		taken.Store(int64(n))

		c.SetWriteDeadline(time.Time{})
		_, err = c.Write([]byte("end"))
		return err
	})))
	w.Until("the deadlines", func() bool { return taken.Load() > 0 || s.hasBegun(1) && s.running() == 0 })
	expect(w, p, sent[:taken.Load()])
	expect(w, p, []byte("end"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coDeadlineFromElsewhere: other goroutines end a Read by its deadline, and by Close,
// as libraries do when a context is canceled. The test uses Await's goroutines, because
// a simulated clock waits for them.
func coDeadlineFromElsewhere(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		elsewhere := func(f func() error) {
			co.Go(func(co *coro.Co) error {
				_, err := coro.Await(co, func() (bool, error) { return true, f() })
				if err != nil && !errors.Is(err, net.ErrClosed) {
					w.Errorf("elsewhere: %v", err)
				}
				return nil
			})
		}
		past := co.Loop().Now().Add(-time.Second)
		elsewhere(func() error { return c.SetReadDeadline(past) })
		n, err := c.Read(make([]byte, 1))
		timedOut(w, "a deadline set from elsewhere", n, 0, err)
		c.SetReadDeadline(time.Time{})
		elsewhere(c.Close)
		_, err = c.Read(make([]byte, 1))
		wantErr(w, "Read", err, net.ErrClosed)
		return nil
	})
	expectEOF(w, p)
	p.Close()
	s.untilEnded(1)
}
