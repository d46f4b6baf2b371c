package backendtest

import (
	"errors"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// slowly reads want in small pieces, with pauses.
func slowly(w World, p Peer, want []byte) {
	w.Helper()
	for len(want) > 0 {
		n := min(len(want), 64<<10)
		expect(w, p, want[:n])
		want = want[n:]
		w.Sleep(time.Millisecond)
	}
}

// leaveInOrder ends the peer's stream, reads on to the end of the connection's, and wants h to
// be closed without an error. A peer that closes at once resets a connection that answers the
// end, as one with TLS does.
func leaveInOrder(w World, p Peer, h *handler) {
	w.Helper()
	if err := p.CloseWrite(); err != nil {
		w.Errorf("CloseWrite: %v", err)
	}
	expectEOF(w, p)
	p.Close()
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
}

// closeFlushesToASlowPeer: Close delivers all output, however slow the peer.
func closeFlushesToASlowPeer(w World) {
	big := pattern(3 << 20)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if _, err := c.Write(big); err != nil {
			w.Errorf("Write: %v", err)
		}
		c.Close()
		if _, err := c.Write([]byte("more")); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("Write after Close: %v", err)
		}
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Minute}, h.one()))
	send(w, p, []byte("x"))
	slowly(w, p, big)
	expectEOF(w, p)
	p.Close()
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
}

// closeSurvivesUnreadInput: a peer that keeps sending while the connection closes still
// gets all output. Closing a socket with unread input would reset the connection.
func closeSurvivesUnreadInput(w World) {
	big := pattern(1 << 20)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(big)
		c.Close()
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Minute}, h.one()))
	for range 20 {
		send(w, p, []byte("request after request"))
	}
	expect(w, p, big[:1000])
	send(w, p, pattern(100_000))
	expect(w, p, big[1000:])
	expectEOF(w, p)
	p.Close()
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
}

// lingerEndsUndelivered: a peer that reads nothing is given up when the linger time is
// over.
func lingerEndsUndelivered(w World) {
	const linger = 200 * time.Millisecond
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(pattern(12 << 20))
		c.Close()
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: linger}, h.one()))
	begin := w.Now()
	send(w, p, []byte("x"))
	if err := h.untilClosed(); err != rondo.ErrLinger {
		w.Errorf("Closed got %v, want ErrLinger", err)
	}
	if d := w.Now().Sub(begin); d < linger {
		w.Errorf("the connection was given up after %v, before the linger time", d)
	}
	expectReset(w, p)
}

// lingerEndsUnclosed: a peer that reads everything and never closes is given up when
// the linger time is over.
func lingerEndsUnclosed(w World) {
	const linger = 100 * time.Millisecond
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write([]byte("bye"))
		c.Close()
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: linger}, h.one()))
	begin := w.Now()
	send(w, p, []byte("x"))
	expect(w, p, []byte("bye"))
	expectEOF(w, p)
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
	if d := w.Now().Sub(begin); d < linger {
		w.Errorf("the connection waited for its peer for only %v", d)
	}
}

// closeWithinIsForTheEnd: after CloseWithin a slow peer gets all output, whatever Linger is, and
// the time begins behind the output. Little is read of a peer that goes on sending.
func closeWithinIsForTheEnd(w World) {
	const brief = 200 * time.Millisecond
	big := pattern(3 << 20)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if _, err := c.Write(big); err != nil {
			w.Errorf("Write: %v", err)
		}
		bridge.Of(c).CloseWithin(brief, 100_000)
		if _, err := c.Write([]byte("more")); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("Write after CloseWithin: %v", err)
		}
		return len(in), nil
	}}
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 4 << 20, Linger: time.Millisecond}
	p := w.Dial(w.Listen(e, h.one()))
	send(w, p, []byte("x"))
	w.Sleep(2 * brief)
	slowly(w, p, big[:2<<20])
	slowly(w, p, big[2<<20:])
	expectEOF(w, p)
	begin := w.Now()
	p.SetWriteDeadline(begin.Add(time.Second))
	for range 16 {
		if _, err := p.Write(pattern(64 << 10)); err != nil {
			break // nobody reads, or the connection has ended
		}
	}
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
	if d := w.Now().Sub(begin); d > 5*time.Second {
		w.Errorf("the connection ended after %v", d)
	}
	if n := e.Stats().BytesIn; n > 500_000 {
		w.Errorf("%d bytes were read", n)
	}
}

// closeWithinBehindCloseWrite: the time of CloseWithin begins at once if the output has ended.
func closeWithinBehindCloseWrite(w World) {
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if string(in) == "x" {
			c.Write([]byte("bye"))
			c.CloseWrite()
		} else {
			bridge.Of(c).CloseWithin(10*time.Millisecond, 1000)
		}
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Hour}, h.one()))
	send(w, p, []byte("x"))
	expect(w, p, []byte("bye"))
	expectEOF(w, p)
	send(w, p, []byte("y"))
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
}

// closeWithinOfAnUnreadyFilter: Linger bounds the end of a connection that has no output, and
// whose filter does not let it end.
func closeWithinOfAnUnreadyFilter(w World) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: 50 * time.Millisecond}, h.one()))
	h.do(func(c *rondo.Conn) {
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return unready{} })
		bridge.Of(c).CloseWithin(10*time.Millisecond, 1000)
	})
	h.untilClosed()
	p.Close()
}

// closeWithinOfUnreadyOutput: Linger bounds the end of a connection whose output waits for a
// filter that is not ready.
func closeWithinOfUnreadyOutput(w World) {
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: 50 * time.Millisecond}, h.one()))
	h.do(func(c *rondo.Conn) {
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return unready{} })
		c.Write([]byte("never"))
		bridge.Of(c).CloseWithin(10*time.Millisecond, 1000)
	})
	if err := h.untilClosed(); err != rondo.ErrLinger {
		w.Errorf("Closed got %v", err)
	}
	p.Close()
}

// closeWithinOfAClosing: CloseWithin shortens a Close.
func closeWithinOfAClosing(w World) {
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write([]byte("bye"))
		c.Close()
		bridge.Of(c).CloseWithin(10*time.Millisecond, 1000)
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Hour}, h.one()))
	send(w, p, []byte("x"))
	expect(w, p, []byte("bye"))
	expectEOF(w, p)
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
}

// abortDropsOutput: Abort drops output, and the peer sees an error.
func abortDropsOutput(w World) {
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		c.Write(pattern(12 << 20))
		c.Abort(nil)
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	send(w, p, []byte("x"))
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrClosed) {
		w.Errorf("Closed got %v, want ErrClosed", err)
	}
	expectReset(w, p)
}

// peerHalfCloses: a peer that ends its stream still gets later output.
func peerHalfCloses(w World) {
	h := &handler{w: w,
		data: func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil },
		eof: func(c *rondo.Conn) {
			c.Write([]byte("I heard: "))
			c.Loop().AfterFunc(20*time.Millisecond, func() {
				c.Write([]byte("everything"))
				c.Close()
			})
		},
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	question := pattern(100_000)
	send(w, p, question)
	p.CloseWrite()
	expect(w, p, []byte("I heard: everything"))
	expectEOF(w, p)
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
	if h.calls != "DEC" || h.got.Len() != len(question) {
		w.Errorf("calls %s with %d bytes, want DEC with %d", h.calls, h.got.Len(), len(question))
	}
}

// serverHalfCloses: CloseWrite ends the output after all bytes written. Input
// continues; its end closes the connection.
func serverHalfCloses(w World) {
	big := pattern(500_000)
	h := &handler{w: w, eof: func(*rondo.Conn) {}}
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		if h.got.Len() == 0 {
			c.Write(big)
			c.CloseWrite()
			if _, err := c.Write([]byte("more")); !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("Write after CloseWrite: %v", err)
			}
		}
		return len(in), nil
	}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	send(w, p, []byte("begin"))
	expect(w, p, big)
	expectEOF(w, p)
	send(w, p, []byte(" and end"))
	w.Until("the rest of the input", func() bool { return h.received() == len("begin and end") })
	if h.isClosed() {
		w.Fatal("the connection closed before the peer ended its stream")
	}
	p.CloseWrite()
	if err := h.untilClosed(); err != nil {
		w.Errorf("Closed got %v", err)
	}
}

// eofWithoutEOFHandlerCloses: without an EOFHandler the peer's end of stream closes the
// connection, after its output.
func eofWithoutEOFHandlerCloses(w World) {
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	p := w.Dial(addr)
	send(w, p, []byte("hello"))
	p.CloseWrite()
	expect(w, p, []byte("hello"))
	expectEOF(w, p)
}
