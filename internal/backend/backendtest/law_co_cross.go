package backendtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// coIsClosedByAnotherLoop: a coroutine of another loop may close a connection and set
// its deadlines, as when an administrator of a chat removes a user.
func coIsClosedByAnotherLoop(w World) {
	for name, end := range map[string]func(net.Conn, time.Time) error{
		"Close":            func(c net.Conn, _ time.Time) error { return c.Close() },
		"SetDeadline":      func(c net.Conn, past time.Time) error { return c.SetDeadline(past) },
		"SetReadDeadline":  func(c net.Conn, past time.Time) error { return c.SetReadDeadline(past) },
		"SetWriteDeadline": func(c net.Conn, past time.Time) error { return c.SetWriteDeadline(past) },
	} {
		s := &script{w: w}
		var member atomic.Pointer[net.Conn]
		var began atomic.Int32
		ofA := w.Listen(&rondo.Engine{NumLoops: 1, HighWater: 1 << 10}, s.opener(func(co *coro.Co, c net.Conn) error {
			member.Store(&c)
			if name == "SetWriteDeadline" {
				began.Add(1)
				_, err := c.Write(pattern(16 << 20))
				return err
			}
			began.Add(1)
			_, err := c.Read(make([]byte, 1))
			return err
		}))
		ofB := w.Listen(&rondo.Engine{NumLoops: 1}, s.opener(func(co *coro.Co, c net.Conn) error {
			m := *member.Load()
			if _, err := m.Read(make([]byte, 1)); !errors.Is(err, coro.ErrNotCoroutine) {
				w.Errorf("Read by a coroutine of another loop: %v", err)
			}
			return end(m, co.Loop().Now().Add(-time.Hour))
		}))
		thrownOut := w.Dial(ofA)
		w.Until("the member", func() bool { return began.Load() == 1 })
		admin := w.Dial(ofB)
		expectEOF(w, admin)
		if name == "SetWriteDeadline" {
			io.Copy(io.Discard, thrownOut)
		} else {
			expectEOF(w, thrownOut)
		}
		thrownOut.Close()
		s.untilEnded(2)
	}
}

// coClosesNoOthersConn: a net.Conn is closed once its connection has another Handler.
// Closing it or setting its deadlines, from any goroutine, does not affect that
// Handler.
func coClosesNoOthersConn(w World) {
	s := &script{w: w}
	var old atomic.Pointer[net.Conn]
	ofA := w.Listen(&rondo.Engine{NumLoops: 1}, s.opener(func(co *coro.Co, c net.Conn) error {
		co.Conn().SetHandler(rondo.HandlerFunc((*rondo.Conn).Write))
		old.Store(&c)
		return nil
	}))
	ofB := w.Listen(&rondo.Engine{NumLoops: 1}, s.opener(func(co *coro.Co, _ net.Conn) error {
		c := *old.Load()
		c.SetDeadline(co.Loop().Now().Add(-time.Hour))
		return c.Close()
	}))
	a := w.Dial(ofA)
	w.Until("the other handler", func() bool { return old.Load() != nil })
	b := w.Dial(ofB)
	expectEOF(w, b)
	send(w, a, []byte("still there?"))
	expect(w, a, []byte("still there?"))
	a.Close()
	b.Close()
	s.untilEnded(2)
}

// coReadsOnWhatItTookOver: a connection that coroutines got by NetConn is read while
// its output is full, like every connection of coroutines.
func coReadsOnWhatItTookOver(w World) {
	s := &script{w: w}
	var first atomic.Pointer[rondo.Conn]
	serve := s.opener(func(co *coro.Co, c net.Conn) error {
		conn := first.Load()
		nc := coro.NetConn(conn)
		conn.Write(pattern(8 << 20))
		question := make([]byte, 3)
		if _, err := io.ReadFull(nc, question); err != nil {
			return err
		}
		_, err := c.Write(question)
		return err
	})
	addr := w.Listen(&rondo.Engine{NumLoops: 1, HighWater: 1 << 10}, func(c *rondo.Conn) rondo.Handler {
		if first.CompareAndSwap(nil, c) {
			return rondo.HandlerFunc(nil)
		}
		return serve(c)
	})
	a := w.Dial(addr)
	w.Until("the first", func() bool { return first.Load() != nil })
	b := w.Dial(addr)
	w.Until("the second", func() bool { return s.hasBegun(1) })
	w.Sleep(time.Millisecond)
	send(w, a, []byte("why"))
	expect(w, b, []byte("why"))
	a.Close()
	b.Close()
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coUpgrades: a coroutine calls Use in the middle of a connection, with filters that
// are ready at once, or with none. From then on another coroutine serves the
// connection, and the first one ends.
func coUpgrades(w World) {
	for name, filters := range map[string][]rondo.FilterOpenFunc{
		"no filter":    nil,
		"ready filter": {func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }},
	} {
		s := &script{w: w}
		p := s.serve(func(co *coro.Co, c net.Conn) error {
			io.WriteString(c, "one ")
			co.Conn().Use(s.opener(func(co *coro.Co, c net.Conn) error {
				io.WriteString(c, "two ")
				co.Sleep(time.Millisecond)
				line := make([]byte, 5)
				if _, err := io.ReadFull(c, line); err != nil {
					return err
				}
				_, err := c.Write(line)
				return err
			}), filters...)
			wantErr(w, name+": the context of one that was handed over", co.Context().Err(), context.Canceled)
			wantErr(w, name+": Write of one that was handed over", second(c.Write([]byte("lost"))), net.ErrClosed)
			wantErr(w, name+": Sleep after handing over", co.Sleep(time.Hour), net.ErrClosed)
			return nil
		})
		send(w, p, []byte("three"))
		expect(w, p, []byte("one two three"))
		expectEOF(w, p)
		p.Close()
		if err := s.untilEnded(2); err != nil {
			w.Errorf("%s: the coroutine returned %v", name, err)
		}
	}
}

// An answering filter delivers input when it gets output, like a protocol that answers
// by itself.
type answering struct{ rondo.PassThrough }

func (answering) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Send(out)
	s.Deliver([]byte("!"))
	return nil
}

// coWriteIsDelivered: input that a filter delivers inside a coroutine's Write waits
// until that coroutine waits, whether another one already reads or does so later.
func coWriteIsDelivered(w World) {
	for _, waits := range []bool{true, false} {
		s := &script{w: w}
		got := make(chan byte, 2)
		read := func(c net.Conn) error {
			var b [1]byte
			_, err := c.Read(b[:])
			got <- b[0]
			return err
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(s.opener(func(co *coro.Co, c net.Conn) error {
			if waits {
				co.Go(func(*coro.Co) error { return read(c) })
				co.Sleep(0)
			}
			c.Write(bytes.Repeat([]byte("x"), 20_000)) // calls Outbound inside Write
			if !waits {
				if err := read(c); err != nil {
					return err
				}
			}
			if err := co.Wait(); err != nil {
				return err
			}
			_, err := c.Write([]byte("y"))
			return err
		}), func(*rondo.Conn) rondo.Filter { return answering{} })))
		expect(w, p, bytes.Repeat([]byte("x"), 20_000))
		if err := s.untilEnded(1); err != nil {
			w.Errorf("the coroutine returned %v", err)
		}
		expect(w, p, []byte("y"))
		expectEOF(w, p)
		p.Close()
		if err := s.untilEnded(1); err != nil {
			w.Errorf("the coroutine returned %v", err)
		}
		if b := <-got; b != '!' {
			w.Errorf("read %q", b)
		}
	}
}

// coWriteTurnIsPassedOn: a coroutine may be ended in a Write to another connection,
// because its own connection is gone. Then the next writer gets its turn.
func coWriteTurnIsPassedOn(w World) {
	s := &script{w: w}
	big := pattern(8 << 20)
	var to atomic.Pointer[net.Conn]
	var step atomic.Int32
	addr := w.Listen(&rondo.Engine{NumLoops: 1, HighWater: 64 << 10}, s.opener(func(co *coro.Co, c net.Conn) error {
		switch step.Add(1) {
		case 1: // the other two write to it
			to.Store(&c)
			for step.Load() < 4 {
				if err := co.Sleep(time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		case 2: // writes until it ends
			for {
				(*to.Load()).Write(big)
			}
		default:
			_, err := (*to.Load()).Write([]byte("passed on"))
			step.Add(1)
			return err
		}
	}))
	y := w.Dial(addr)
	w.Until("the first", func() bool { return s.hasBegun(1) })
	x := w.Dial(addr)
	w.Until("the second", func() bool { return s.hasBegun(2) })
	w.Sleep(5 * time.Millisecond)
	x.Reset()
	w.Until("its end", func() bool { return s.running() == 1 })
	z := w.Dial(addr)
	w.Until("the third", func() bool { return s.hasBegun(3) })
	y.SetReadDeadline(w.Now().Add(patience))
	got, err := io.ReadAll(y)
	if err != nil || !bytes.HasSuffix(got, []byte("passed on")) {
		w.Errorf("after %d bytes: %v; want the third coroutine's bytes at the end", len(got), err)
	}
	expectEOF(w, z)
	y.Close()
	z.Close()
	s.untilEnded(3)
}
