package backendtest

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/bridge"
)

// idleCloses: a connection without traffic is closed after its idle time, not before.
func idleCloses(w World) {
	const idle = 150 * time.Millisecond
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, opener(func(c *rondo.Conn) *handler {
		c.SetIdle(idle)
		return h
	})))
	begin := w.Now()
	send(w, p, []byte("x"))
	expect(w, p, []byte("x"))
	expectEOF(w, p)
	if d := w.Now().Sub(begin); d < idle {
		w.Errorf("closed after %v", d)
	}
	p.Close()
	if err := h.untilClosed(); err != rondo.ErrIdle || !errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("Closed got %v", err)
	}
}

// unspoilt repeats f until f reports a valid result. A result is invalid if the machine
// stood still for so long that it proves nothing.
func unspoilt(w World, f func(World) bool) {
	for range 20 {
		if f(w) {
			return
		}
	}
	w.Fatal("the machine stood still each time")
}

// A loop stamps what it does in a turn with the time at which the turn began. If it stands still
// within a turn, deadlines come as much too early. stalls returns the longest time for which a loop
// has stood still since stalls was called.
func stalls(w World, l *rondo.Loop) func() time.Duration {
	const tick = 20 * time.Millisecond
	var last time.Time
	var longest time.Duration
	look := func() {
		longest = max(longest, l.Now().Sub(last))
		last = l.Now()
	}
	err := l.Post(func() {
		last = l.Now()
		l.Every(tick, look)
	})
	if err != nil {
		w.Fatal(err)
	}
	return func() time.Duration {
		// The present turn may be the longest: the next one knows.
		looked := make(chan time.Duration, 1)
		if err := l.Post(func() { l.Post(func() { look(); looked <- longest }) }); err != nil {
			w.Fatal(err)
		}
		w.Until("the loop's next turn", func() bool { return len(looked) > 0 })
		return <-looked
	}
}

// activityIsNotIdle: received and sent bytes keep a connection from being idle.
func activityIsNotIdle(w World) { unspoilt(w, staysBusy) }

func staysBusy(w World) bool {
	const idle = 400 * time.Millisecond
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	defer p.Close()
	stood, last := stalls(w, h.conn().Loop()), w.Now()
	began := last
	h.do(func(c *rondo.Conn) { c.SetIdle(idle) }) // not before stalls looks
	for i := range 12 {
		begin := w.Now()
		p.SetDeadline(begin.Add(patience))
		if i%2 == 0 {
			p.Write([]byte("x")) // Read returns its error too
		} else {
			h.conn().Write([]byte("x"))
		}
		if _, err := p.Read(make([]byte, 1)); err != nil {
			if d := w.Now().Sub(last); d+stood() < idle {
				p.Close()
				w.Fatalf("round %d: %v after bytes went, the peer read: %v; the loop stood still for %v; Closed got %v", i, d, err, stood(), h.untilClosed())
			}
			return false
		}
		// What a Write has put into a turn does not help a connection that this turn finds idle:
		// it is sent, and the connection closes. So the round before this one counts.
		last, began = began, begin
		w.Sleep(idle / 5)
	}
	closing := make(chan bool, 1) // when the limit was lifted: Closed comes later
	h.conn().Do(func(c *rondo.Conn) {
		c.SetIdle(0)
		closing <- bridge.Of(c).IsClosing()
	})
	w.Until("the end of the idle time, or of the connection", func() bool { return len(closing) > 0 || h.isClosed() })
	d := w.Now().Sub(last)
	if len(closing) == 0 || <-closing {
		if d+stood() < idle {
			w.Errorf("closed %v after bytes went, or later; the loop stood still for %v", d, stood())
		}
		return false
	}
	w.Sleep(2 * idle)
	send(w, p, []byte("no limit"))
	expect(w, p, []byte("no limit"))
	return true
}

// readDeadlineCloses: a read deadline closes the connection unless it is moved.
func readDeadlineCloses(w World) { unspoilt(w, closesLate) }

func closesLate(w World) bool {
	const wait = 300 * time.Millisecond
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.CloseAt(c.Loop().Now().Add(wait))
		return c.Write(in)
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	defer p.Close()
	w.Sleep(2 * wait) // no deadline is set yet
	last, stood := w.Now(), stalls(w, h.conn().Loop())
	for range 3 {
		begin := w.Now()
		p.SetDeadline(begin.Add(patience))
		p.Write([]byte("x")) // Read returns its error too
		if _, err := p.Read(make([]byte, 1)); err != nil {
			if d := w.Now().Sub(last); d+stood() < wait {
				w.Fatalf("%v after the deadline was set, the peer read: %v; the loop stood still for %v", d, err, stood())
			}
			return false
		}
		last = begin
		w.Sleep(wait / 4)
	}
	expectEOF(w, p)
	if d := w.Now().Sub(last); d+stood() < wait {
		w.Errorf("closed %v after the deadline was set; the loop stood still for %v", d, stood())
	}
	p.Close()
	if err := h.untilClosed(); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("Closed got %v", err)
	}
	return true
}

// writeDeadlineAborts: a write deadline aborts a connection whose peer does not read.
// If there is nothing to send, the connection stays, but its writes fail.
func writeDeadlineAborts(w World) {
	const wait = 200 * time.Millisecond
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.AbortUnsentAt(c.Loop().Now().Add(wait))
		c.Write([]byte("ok"))
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	send(w, p, []byte("x"))
	expect(w, p, []byte("ok"))
	w.Sleep(2 * wait)
	h.do(func(c *rondo.Conn) {
		if _, err := c.Write([]byte("late")); !errors.Is(err, os.ErrDeadlineExceeded) {
			w.Errorf("Write after the deadline: %v", err)
		}
		c.AbortUnsentAt(time.Time{})
		c.Write([]byte("and on"))
	})
	expect(w, p, []byte("and on"))
	h.do(func(c *rondo.Conn) {
		c.AbortUnsentAt(c.Loop().Now().Add(wait))
		c.Write(pattern(12 << 20))
	})
	if err := h.untilClosed(); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("Closed got %v", err)
	}
	expectReset(w, p)
}

// farDeadlinesNeverCome: a deadline beyond the clock's range, such as the year 9999,
// never comes.
func farDeadlinesNeverCome(w World) {
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	e := &rondo.Engine{NumLoops: 1}
	h := &handler{w: w}
	p := w.Dial(w.Listen(e, h.one()))
	h.do(func(c *rondo.Conn) {
		c.CloseAt(far)
		c.AbortUnsentAt(far)
		c.SetIdle(math.MaxInt64)
	})
	co := w.Dial(w.Listen(e, coro.Handler(func(_ *coro.Co, c net.Conn) error {
		if err := c.SetDeadline(far); err != nil {
			return err
		}
		_, err := io.Copy(c, c)
		return err
	})))
	for range 3 {
		h.do(func(*rondo.Conn) {}) // a turn
		for _, peer := range []Peer{p, co} {
			send(w, peer, []byte("still there?"))
			expect(w, peer, []byte("still there?"))
		}
	}
	leaveInOrder(w, p, h)
	co.Close()
}
