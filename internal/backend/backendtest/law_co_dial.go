package backendtest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// coDials: a coroutine dials and uses the new connection.
func coDials(w World) {
	e := &rondo.Engine{NumLoops: 2}
	echo := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	s := &script{w: w}
	question := pattern(200_000)
	p := s.serve(func(co *coro.Co, c net.Conn) error {
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
			co.Go(func(*coro.Co) error {
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

// coDialFails: a failed dial returns the reason.
func coDialFails(w World) {
	var nobody *rondo.Listener
	e := &rondo.Engine{NumLoops: 1}
	s := &script{w: w}
	p := w.Dial(w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
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
			w.Error("a dial of network udp succeeded")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = co.DialContext(ctx, "tcp", c.LocalAddr().String())
		wantErr(w, "with a context that is done", err, context.Canceled)
		return nil
	})))
	w.Call(func() {
		var err error
		if nobody, err = e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, opener(nil)); err != nil {
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

// coProxies: a proxy is two copies. Each direction ends on its own, half-closes pass
// through, and nothing is lost, whichever direction ends first.
func coProxies(w World) {
	for _, serverFirst := range []bool{false, true} {
		question, answer := pattern(1_500_000), pattern(2_000_000)
		e := &rondo.Engine{NumLoops: 1, HighWater: 60_000, LowWater: 20_000}
		back, front := &script{w: w}, &script{w: w}
		backAddr := w.Listen(e, back.opener(func(co *coro.Co, c net.Conn) error {
			speak := func(*coro.Co) error {
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
				w.Errorf("the question arrived as %d bytes, %v", len(got), err)
			}
			if !serverFirst {
				return speak(co)
			}
			return err
		}))
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, HighWater: 50_000}, front.opener(func(co *coro.Co, c net.Conn) error {
			up, err := co.Dial("tcp", backAddr.String())
			if err != nil {
				return err
			}
			defer up.Close()
			pass := func(dst, src net.Conn) error {
				_, err := io.Copy(dst, src)
				return errors.Join(err, dst.(closeWriter).CloseWrite())
			}
			co.Go(func(*coro.Co) error { return pass(up, c) })
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

// coCopiesPieces: io.CopyN and io.Copy work with connections and with other readers and
// writers.
func coCopiesPieces(w World) {
	s := &script{w: w}
	sent := pattern(500_000)
	p := s.serve(func(co *coro.Co, c net.Conn) error {
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

// buffer has Read and Write and no other methods that io.Copy could use.
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

// coMany: many coroutines wait in every way, wake and end, some of them while others
// wait.
func coMany(w World) {
	const conns, each = 10, 40
	s := &script{w: w}
	e := &rondo.Engine{NumLoops: 1}
	var awake atomic.Int64
	addr := w.Listen(e, s.opener(func(co *coro.Co, c net.Conn) error {
		var cond coro.Cond
		random := rand.New(rand.NewPCG(uint64(s.began), 1))
		for i := range each {
			co.Go(func(co *coro.Co) (err error) {
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
