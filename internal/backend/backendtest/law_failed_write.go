package backendtest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// answerEarly reads the beginning of what the server sends, answers, and closes without
// reading the rest: as an HTTP server does that refuses a long request. It waits until written, if
// given, has returned.
func answerEarly(w World, p Peer, request, answer []byte, written func()) {
	w.Helper()
	if runtime.GOOS == "windows" {
		w.Skip("a reset destroys what has arrived")
	}
	send(w, p, []byte("x"))
	expect(w, p, request[:1000])
	if written != nil {
		written()
	}
	send(w, p, answer)
	w.Sleep(20 * time.Millisecond) // until it has arrived
	p.Close()
}

// endsInBand reports whether the Close of a peer ends its stream even if the connection is
// reset afterwards, as close_notify does.
func endsInBand(p Peer) bool {
	_, encrypted := p.(interface{ ConnectionState() tls.ConnectionState })
	return encrypted
}

// A failed write costs the output alone: what the peer has sent before is read. Then the
// connection ends with the write's error.
func failedWriteKeepsInput(w World) {
	request, answer := pattern(12<<20), pattern(3000)
	var released, drained int
	h := &handler{w: w, drained: func(c *rondo.Conn) {
		drained++
		if _, err := c.Write([]byte("more")); !isErr(err, broken) {
			w.Errorf("Write in Drained: %v", err)
		}
	}}
	var ended atomic.Bool
	h.eof = func(*rondo.Conn) { ended.Store(true) }
	asked := false
	h.data = func(c *rondo.Conn, in []byte) (int, error) {
		if !asked {
			asked = true
			for i := 0; i < len(request); i += 4 << 20 {
				if err := c.WriteOwned(request[i:i+4<<20], func() { released++ }); err != nil {
					w.Errorf("WriteOwned: %v", err)
				}
			}
			return len(in), nil
		}
		if _, err := c.Write(in); !isErr(err, broken) {
			w.Errorf("Write after a failed one: %v", err)
		}
		if err := c.WriteOwned(in, func() { released++ }); !isErr(err, broken) {
			w.Errorf("WriteOwned after a failed write: %v", err)
		}
		released--
		if err := c.Ref().Write(in); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("Ref.Write after a failed write: %v", err)
		}
		if b := c.AvailableBuffer(); b != nil || c.Buffered() > 0 {
			w.Errorf("after a failed write %d bytes wait, and AvailableBuffer is %v", c.Buffered(), b)
		}
		return len(in), nil
	}
	// The input's end is waited for, and not the linger time's.
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Hour}, h.one()))
	answerEarly(w, p, request, answer, func() { h.do(func(*rondo.Conn) {}) }) // Data has called each WriteOwned
	var op *net.OpError
	if err := h.untilClosed(); !isErr(err, broken) || !errors.As(err, &op) || op.Op != "write" {
		w.Errorf("Closed got %v", err)
	}
	if ended.Load() && !endsInBand(p) {
		w.Errorf("EOF was called for a stream that the peer has reset")
	}
	if got := h.got.Bytes(); mismatch(got, append([]byte("x"), answer...)) >= 0 {
		w.Errorf("Data got %d bytes: %.40q; want the answer of %d", len(got), got, len(answer))
	}
	if released != 3 || drained != 1 {
		w.Errorf("%d release functions of 3 were called, and Drained %d times", released, drained)
	}
}

// Whoever has paused a connection whose write fails may resume it and get the answer, until
// the linger time has passed.
func failedWriteOfAPausedConn(w World) {
	request, answer := pattern(12<<20), pattern(3000)
	for _, resumes := range []bool{false, true} {
		var failed atomic.Bool
		h := &handler{w: w, drained: func(*rondo.Conn) { failed.Store(true) }}
		asked := false
		h.data = func(c *rondo.Conn, in []byte) (int, error) {
			if !asked {
				asked = true
				c.Pause()
				c.Write(request)
			}
			return len(in), nil
		}
		linger := 200 * time.Millisecond
		if resumes {
			linger = time.Hour
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: linger}, h.one()))
		begin := w.Now()
		answerEarly(w, p, request, answer, nil)
		want := 1
		if resumes {
			w.Until("the failure", failed.Load)
			h.do((*rondo.Conn).Resume)
			want += len(answer)
		}
		if err := h.untilClosed(); !isErr(err, broken) {
			w.Errorf("Closed got %v", err)
		}
		if h.received() != want {
			w.Errorf("Data got %d bytes, want %d", h.received(), want)
		}
		if d := w.Now().Sub(begin); !resumes && d < linger {
			w.Errorf("the connection ended after %v, before the linger time", d)
		}
	}
}

// A reset of a connection whose output waits ends it at once, whatever state it is in. Only whoever
// has paused it has the linger time: see failedWriteOfAPausedConn.
func resetEndsWaitingOutput(w World) {
	request, input := pattern(12<<20), pattern(40_000)
	for _, state := range []string{
		"full", "reads when full", "a file", "unread input", "input that nobody takes", "a part of a message",
		"the peer's end is told", "the peer's end is not told", "our end", "closing", "leaving",
	} {
		h := &handler{w: w, eof: func(*rondo.Conn) {}}
		h.data = func(c *rondo.Conn, in []byte) (int, error) {
			switch state {
			case "input that nobody takes":
				return 0, nil
			case "a part of a message":
				c.Want(2 * len(input))
				return 0, nil
			}
			return len(in), nil
		}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Hour}, h.one()))
		if state == "the peer's end is told" {
			p.CloseWrite()
			w.Until("EOF", h.hasEOF)
		}
		h.do(func(c *rondo.Conn) {
			limit(c, func(l *rondo.Limits) { l.ReadWhenFull = state == "reads when full" })
			if state == "a file" {
				c.SendFile(tempFile(w, request), 0, int64(len(request)), nil)
			} else {
				c.Write(request)
			}
		})
		switch state {
		case "unread input", "input that nobody takes", "a part of a message":
			send(w, p, input)
		case "the peer's end is not told":
			p.CloseWrite()
		}
		h.do(func(c *rondo.Conn) {
			switch state {
			case "our end":
				c.CloseWrite()
			case "closing":
				c.Close()
			case "leaving":
				if err := c.Detach(func(net.Conn, error) {}); err != nil {
					c.Close() // it has filters
				}
			}
		})
		w.Sleep(10 * time.Millisecond)
		p.Reset()
		if err := h.untilClosed(); !isErr(err, broken) {
			w.Errorf("%s: Closed got %v", state, err)
		}
	}
}

// A reset while the system sends is not told as the end of the peer's stream. The send may take the
// reset, and then the receive beside it finds an end, perhaps before the send has completed.
func resetDuringASend(w World) {
	if resetIsEnd() {
		w.Skip("a read after a reset shows an end")
	}
	const conns = 60
	output := pattern(2 << 20)
	file := tempFile(w, output)
	e := &rondo.Engine{NumLoops: 1, HighWater: 2 * len(output), MaxOutput: 4 * len(output)}
	for _, what := range []string{"bytes", "a file"} {
		var ended atomic.Int32
		addr := w.Listen(e, opener(func(*rondo.Conn) *handler {
			h := &handler{w: w}
			h.eof = func(c *rondo.Conn) { ended.Add(1); c.Close() }
			h.data = func(c *rondo.Conn, in []byte) (int, error) {
				if what == "a file" {
					c.SendFile(file, 0, int64(len(output)), nil)
				} else {
					c.WriteOwned(output, nil)
				}
				return len(in), nil
			}
			return h
		}))
		for i := range conns {
			p := w.Dial(addr)
			send(w, p, []byte("x"))
			expect(w, p, output[:1])
			w.Sleep(time.Duration(i%6) * 100 * time.Microsecond)
			p.Reset()
		}
		w.Until("the end", func() bool { return e.Stats().Open == 0 })
		if n := ended.Load(); n > 0 {
			w.Errorf("%s: EOF was called for %d of %d connections that were reset", what, n, conns)
		}
	}
}

// A coroutine whose Write fails reads the answer, and then gets the error, unless the peer
// has ended its stream.
func coReadsAfterAFailedWrite(w World) {
	request, answer := pattern(16<<20), pattern(3000)
	s := &script{w: w}
	var last error
	e := &rondo.Engine{NumLoops: 1, Linger: time.Hour}
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		for range 2 { // both are told
			if _, err := c.Write(request); !isErr(err, broken) {
				w.Errorf("Write: %v", err)
			}
		}
		got := make([]byte, len(answer))
		if n, err := io.ReadFull(c, got); err != nil || mismatch(got, answer) >= 0 {
			w.Errorf("read %d bytes of the answer's %d: %v", n, len(got), err)
		}
		_, last = c.Read(got)
		return nil
	})))
	answerEarly(w, p, request, answer, nil)
	s.untilEnded(1)
	if !isErr(last, broken) && !(last == io.EOF && endsInBand(p)) {
		w.Errorf("Read after the answer: %v", last)
	}
	w.Until("the end", func() bool { return e.Stats().Open == 0 })
}
