package backendtest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// echoAll is an echo server written for package net.
func echoAll(c net.Conn) error {
	buf := make([]byte, 5000)
	for {
		n, err := c.Read(buf)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// closeWriter is the method of connections that net.Conn lacks.
type closeWriter interface{ CloseWrite() error }

// coReadsAndWrites: a coroutine speaks first, and then answers input that comes in any
// pieces.
func coReadsAndWrites(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		if c.RemoteAddr() == nil || c.LocalAddr().String() != co.Conn().LocalAddr().String() {
			w.Errorf("addresses are %v and %v", c.LocalAddr(), c.RemoteAddr())
		}
		if n, err := c.Read(nil); n != 0 || err != nil {
			w.Errorf("Read of nothing: %d, %v", n, err)
		}
		if n, err := c.Write(nil); n != 0 || err != nil {
			w.Errorf("Write of nothing: %d, %v", n, err)
		}
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		return echoAll(c)
	})
	expect(w, p, []byte("hello"))
	sent := pattern(600_000)
	for at, size := 0, 1; at < len(sent); size = size*3 + 1 {
		size = min(size, len(sent)-at, 100_000)
		send(w, p, sent[at:at+size])
		expect(w, p, sent[at:at+size])
		at += size
	}
	p.CloseWrite()
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coReadsWhatWasLeft: input that arrives while a coroutine does something else is there
// for its Read.
func coReadsWhatWasLeft(w World) {
	s := &script{w: w}
	sent := pattern(100_000)
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		r := bufio.NewReaderSize(c, 16)
		for i, want := range sent {
			b, err := r.ReadByte()
			if err != nil {
				return err
			}
			if b != want {
				return errors.New("other bytes than were sent")
			}
			switch {
			case i%10_007 == 0:
				co.Sleep(time.Millisecond)
			case i%503 == 0:
				co.Sleep(0)
			}
		}
		_, err := c.Write([]byte("all"))
		return err
	})
	send(w, p, sent)
	expect(w, p, []byte("all"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coReturnsInOrder: when a coroutine returns nil, its connection closes in order,
// whatever the peer has sent meanwhile, and all output arrives.
func coReturnsInOrder(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		defer c.Write([]byte("goodbye"))
		b := make([]byte, 1)
		_, err := c.Read(b)
		return err
	})
	send(w, p, []byte("one of many"))
	expect(w, p, []byte("goodbye"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}

	// Return at once, without waiting.
	p = s.serve(func(co *coro.Co, c net.Conn) error { return nil })
	expectEOF(w, p)
	p = s.serve(func(co *coro.Co, c net.Conn) error {
		c.Write([]byte("busy"))
		if err := c.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
		wantErr(w, "Close again", c.Close(), net.ErrClosed)
		wantErr(w, "CloseWrite after Close", c.(closeWriter).CloseWrite(), net.ErrClosed)
		wantErr(w, "SetDeadline after Close", c.SetDeadline(time.Time{}), net.ErrClosed)
		_, err := c.Read(make([]byte, 1))
		wantErr(w, "Read after Close", err, net.ErrClosed)
		_, err = c.Write([]byte("x"))
		wantErr(w, "Write after Close", err, net.ErrClosed)
		return nil
	})
	expect(w, p, []byte("busy"))
	expectEOF(w, p)
	s.untilEnded(3)
}

func coReturnFlushesToASlowPeer(w World) {
	s := &script{w: w}
	big := pattern(3 << 20)
	e := &rondo.Engine{NumLoops: 1, Linger: time.Minute, HighWater: 8 << 20}
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		_, err := c.Write(big)
		return err
	})))
	s.untilEnded(1)
	for at := 0; at < len(big); at += 1 << 19 {
		w.Sleep(5 * time.Millisecond)
		expect(w, p, big[at:at+1<<19])
	}
	expectEOF(w, p)
}

// coReturnsAnError: an error from a coroutine closes the connection after its output, like
// a Handler's. Its children's calls return that error.
func coReturnsAnError(w World) {
	s := &script{w: w}
	sorry := errors.New("sorry")
	var cause atomic.Value
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		c.Write([]byte("sorry"))
		co.Go(func(co *coro.Co) error {
			err := co.Sleep(time.Hour)
			cause.Store(err)
			return nil
		})
		co.Sleep(0)
		return sorry
	})
	expect(w, p, []byte("sorry"))
	expectEOF(w, p)
	p.Close()
	wantErr(w, "the coroutine's result", s.untilEnded(1), sorry)
	w.Until("the child's end", func() bool { return cause.Load() != nil })
	wantErr(w, "the child's Sleep", cause.Load().(error), sorry)
	wantErr(w, "the child's Sleep", cause.Load().(error), net.ErrClosed)
}

// coPeerHalfCloses: after the peer's end of stream Read returns io.EOF, and Write still
// works.
func coPeerHalfCloses(w World) {
	s := &script{w: w}
	answer := pattern(1 << 20)
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		question, err := io.ReadAll(c)
		if err != nil || string(question) != "question" {
			w.Errorf("read %q, %v", question, err)
		}
		for range 3 {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				w.Errorf("Read after the end: %d, %v", n, err)
			}
		}
		co.Sleep(10 * time.Millisecond)
		_, err = c.Write(answer)
		return err
	})
	send(w, p, []byte("question"))
	p.CloseWrite()
	expect(w, p, answer)
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coHalfCloses: after CloseWrite the peer sees the end of the stream, and Read still
// works.
func coHalfCloses(w World) {
	s := &script{w: w}
	answer := pattern(300_000)
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		c.Write([]byte("question"))
		if err := c.(closeWriter).CloseWrite(); err != nil {
			w.Errorf("CloseWrite: %v", err)
		}
		_, err := c.Write([]byte("x"))
		wantErr(w, "Write after CloseWrite", err, net.ErrClosed)
		got, err := io.ReadAll(c)
		if mismatch(got, answer) >= 0 {
			w.Errorf("read %d bytes that differ from those sent", len(got))
		}
		return err
	})
	expect(w, p, []byte("question"))
	expectEOF(w, p)
	send(w, p, answer)
	p.CloseWrite()
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coStaysThoughBothEnded: a coroutine continues, and can wait, after both streams have
// ended.
func coStaysThoughBothEnded(w World) {
	s := &script{w: w}
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		c.(closeWriter).CloseWrite()
		if _, err := io.ReadAll(c); err != nil {
			return err
		}
		if err := co.Sleep(50 * time.Millisecond); err != nil {
			return err
		}
		n, err := coro.Await(co, func() (int, error) { return 42, nil })
		if n != 42 {
			return errors.Join(err, errors.New("nothing came of Await"))
		}
		return err
	})
	expectEOF(w, p)
	p.CloseWrite()
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coIdleReaderIsNotRead: while no coroutine reads, the engine does not read: the peer's
// sends block.
func coIdleReaderIsNotRead(w World) {
	s := &script{w: w}
	var more coro.Cond
	e := &rondo.Engine{NumLoops: 1, MaxInput: 10_000}
	var got atomic.Int64
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		if err := more.Wait(co); err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, c)
		got.Store(n)
		return err
	})))
	block := pattern(1 << 20)
	sent := 0
	for n := 1; n > 0; sent += n {
		if n = push(w, p, block, 300*time.Millisecond); sent > 64<<20 {
			w.Fatal("64 MiB went to a coroutine that does not read")
		}
	}
	for l := range e.Loops() {
		l.Post(more.Broadcast)
	}
	p.CloseWrite()
	if err := s.untilEnded(1); err != nil || got.Load() != int64(sent) {
		w.Errorf("%d bytes were read of %d, %v", got.Load(), sent, err)
	}
}

// coWriteWaits: a Write of any size waits for the peer and never holds more than
// HighWater.
func coWriteWaits(w World) {
	const high, low = 100_000, 10_000
	s := &script{w: w}
	big := pattern(6 << 20)
	var most atomic.Int64
	var written atomic.Bool
	e := &rondo.Engine{NumLoops: 1, HighWater: high, LowWater: low, MaxOutput: 150_000}
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		tick := co.Loop().Every(time.Millisecond, func() {
			most.Store(max(most.Load(), int64(co.Conn().Buffered())))
		})
		defer tick.Stop()
		n, err := c.Write(big)
		if n != len(big) {
			w.Errorf("Write: %d, %v", n, err)
		}
		written.Store(true)
		_, err = c.Write([]byte("end"))
		return err
	})))
	w.Until("output that waits", func() bool { return most.Load() > 0 })
	if written.Load() {
		w.Error("6 MiB were written to a peer that reads nothing")
	}
	expect(w, p, big)
	expect(w, p, []byte("end"))
	expectEOF(w, p)
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
	if m := most.Load(); m == 0 || m > high {
		w.Errorf("%d bytes of output waited, with HighWater at %d", m, high)
	}
}

// coWritesDoNotMix: Writes of several coroutines do not mix, however large they are.
func coWritesDoNotMix(w World) {
	const writers, size = 5, 300_000
	s := &script{w: w}
	e := &rondo.Engine{NumLoops: 1, HighWater: 20_000, LowWater: 5_000}
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		for i := range writers {
			co.Go(func(*coro.Co) error {
				_, err := c.Write(bytes.Repeat([]byte{byte('a' + i)}, size))
				return err
			})
		}
		return co.Wait()
	})))
	var order []byte
	for range writers {
		first := make([]byte, 1)
		p.SetReadDeadline(w.Now().Add(patience))
		if _, err := io.ReadFull(p, first); err != nil {
			w.Fatalf("peer's read: %v", err)
		}
		order = append(order, first[0])
		expect(w, p, bytes.Repeat(first, size-1))
	}
	expectEOF(w, p)
	if string(order) != "abcde" {
		w.Errorf("the writes arrived in the order %s", order)
	}
	s.untilEnded(1)
}

// coReadsWhileItsWriteWaits: a Write that waits for the peer does not stop another
// coroutine's Read.
func coReadsWhileItsWriteWaits(w World) {
	s := &script{w: w}
	e := &rondo.Engine{NumLoops: 1, HighWater: 50_000, LowWater: 5_000}
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		co.Go(func(*coro.Co) error {
			for {
				if _, err := c.Write(pattern(200_000)); err != nil {
					return nil
				}
			}
		})
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if string(b) != "stop" {
			w.Errorf("read %q", b)
		}
		return nil
	})))
	w.Sleep(100 * time.Millisecond) // until the peer's buffers are full
	send(w, p, []byte("stop"))
	if err := s.untilEnded(1); err != nil {
		w.Errorf("the coroutine returned %v", err)
	}
}

// coHandsOver: a coroutine may give its connection to a Handler, which gets the unread
// input.
func coHandsOver(w World) {
	s := &script{w: w}
	h := &handler{w: w}
	var late atomic.Value
	p := s.serve(func(co *coro.Co, c net.Conn) error {
		name := make([]byte, 3)
		if _, err := io.ReadFull(c, name); err != nil {
			return err
		}
		c.Write([]byte("hello "))
		co.Conn().SetHandler(h.one()(co.Conn()))
		_, err := c.Read(name)
		late.Store(err)
		wantErr(w, "Sleep afterwards", co.Sleep(time.Hour), net.ErrClosed)
		return nil
	})
	send(w, p, []byte("bob and so on"))
	expect(w, p, []byte("hello  and so on"))
	s.untilEnded(1)
	wantErr(w, "Read afterwards", late.Load().(error), net.ErrClosed)
	send(w, p, []byte("more"))
	expect(w, p, []byte("more"))
	p.CloseWrite()
	expectEOF(w, p)
	h.untilClosed()
}
