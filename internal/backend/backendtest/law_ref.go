package backendtest

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

// refOfAClosedConn: a Ref of a closed connection gives ErrClosed, also after its slot
// is reused.
func refOfAClosedConn(w World) {
	made := make(chan *handler, 1)
	addr := w.Listen(&rondo.Engine{NumLoops: 1}, opener(func(*rondo.Conn) *handler {
		h := &handler{w: w}
		made <- h
		return h
	}))
	var old []rondo.Ref
	for range 20 {
		p := w.Dial(addr)
		send(w, p, []byte("hello"))
		expect(w, p, []byte("hello"))
		h := <-made
		ref := h.conn()
		for _, r := range old {
			if r == ref {
				w.Fatal("two connections have equal Refs")
			}
			called := false
			if err := r.Do(func(*rondo.Conn) { called = true }); !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("Do: %v, want ErrClosed", err)
			}
			if err := r.Write([]byte("for somebody else")); !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("Write: %v, want ErrClosed", err)
			}
			r.Close()
			h.do(func(*rondo.Conn) {})
			if called || !r.Closed() {
				w.Error("a Ref of a closed connection reached another")
			}
		}
		send(w, p, []byte("still here"))
		expect(w, p, []byte("still here"))
		p.Close()
		h.untilClosed()
		old = append(old, ref)
	}
}

// refWritesKeepOrder: several goroutines write to one connection. The writes of each
// keep their order, and none is lost or torn.
func refWritesKeepOrder(w World) {
	const writers, each = 4, 500
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
	ref := h.conn()
	w.Call(func() {
		var wg sync.WaitGroup
		for i := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for n := range each {
					msg := binary.BigEndian.AppendUint32([]byte{byte(i)}, uint32(n))
					if err := ref.Write(msg); err != nil {
						w.Errorf("Write: %v", err)
					}
				}
			}()
		}
		wg.Wait()
	})
	var next [writers]uint32
	for range writers * each {
		var msg [5]byte
		p.SetReadDeadline(w.Now().Add(patience))
		for n := 0; n < len(msg); {
			k, err := p.Read(msg[n:])
			if err != nil {
				w.Fatalf("peer's read: %v", err)
			}
			n += k
		}
		i, n := int(msg[0]), binary.BigEndian.Uint32(msg[1:])
		if i >= writers || n != next[i] {
			w.Fatalf("message %d of writer %d came out of order", n, i)
		}
		next[i]++
	}
}

// refWriteIsBounded: the bytes of Ref.Write in flight are limited, and so are bytes
// that wait for a peer that does not read: the connection is aborted.
func refWriteIsBounded(w World) {
	const most = 1 << 20
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: most}, h.one()))
	ref := h.conn()
	block := make([]byte, most/4)
	sent, refused := 0, false
	for begin := w.Now(); !h.isClosed() && w.Now().Sub(begin) < patience; {
		switch err := ref.Write(block); {
		case err == nil:
			sent += len(block)
		case errors.Is(err, rondo.ErrOutputFull):
			refused = true
			fallthrough
		default:
			w.Sleep(time.Millisecond)
		}
	}
	if err := h.untilClosed(); !errors.Is(err, rondo.ErrOutputFull) {
		w.Errorf("Closed got %v, want ErrOutputFull", err)
	}
	if sent > 64<<20 {
		w.Errorf("%d bytes were taken for a peer that does not read (refused: %v)", sent, refused)
	}
	p.Close()
}

// smallRefWritesAreBounded: the limit counts the memory that small writes take, not
// only their bytes. One write of MaxOutput bytes is accepted if there are no others.
func smallRefWritesAreBounded(w World) {
	const most = 1 << 20
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, MaxOutput: most}, h.one()))
	ref := h.conn()
	h.do(func(c *rondo.Conn) { // meanwhile the loop takes nothing
		for _, size := range []int{0, 1} {
			n := 0
			for ; n <= most; n++ {
				if err := ref.Write(make([]byte, size)); errors.Is(err, rondo.ErrOutputFull) {
					break
				} else if err != nil {
					w.Errorf("Write: %v", err)
				}
			}
			if n > most/32 {
				w.Errorf("%d writes of %d bytes were accepted, with MaxOutput at %d", n, size, most)
			}
		}
	})
	h.do(func(c *rondo.Conn) {
		if err := ref.Write(pattern(most)); err != nil {
			w.Errorf("Write of MaxOutput bytes: %v", err)
		}
	})
	p.Reset()
	h.untilClosed()
}

// refWriteAfterTheEnd: after Close and CloseWrite, Ref.Write returns ErrClosed, not nil
// for bytes that nobody will get.
func refWriteAfterTheEnd(w World) {
	for name, end := range map[string]func(*rondo.Conn){
		"Close": (*rondo.Conn).Close, "CloseWrite": (*rondo.Conn).CloseWrite,
		"Abort": func(c *rondo.Conn) { c.Abort(nil) },
	} {
		h := &handler{w: w}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
		ref := h.conn()
		h.do(func(c *rondo.Conn) {
			end(c)
			if err := ref.Write([]byte("late")); !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("after %s: %v", name, err)
			}
		})
		p.Close()
		h.untilClosed()
	}
}
