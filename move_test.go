package rondo_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// stayer is a ShutdownHandler whose connection stays open until somebody ends it.
type stayer struct {
	rondo.HandlerFunc
	told func(*rondo.Conn)
}

func (s stayer) Shutdown(c *rondo.Conn) { s.told(c) }

// afterTurns calls f when a loop has taken two more turns.
func afterTurns(l *rondo.Loop, f func()) {
	l.Post(func() { l.Post(f) })
}

// loopsOf returns the loops of an engine, which it starts.
func loopsOf(t *testing.T, e *rondo.Engine) []*rondo.Loop {
	t.Helper()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(e.Loops())
}

// fullClient is a client that has been sent size bytes and has read none, and its connection.
func fullClient(t *testing.T, e *rondo.Engine, size int, h rondo.Handler) (net.Conn, rondo.Ref) {
	t.Helper()
	refs := make(chan rondo.Ref, 1)
	nc := connTo(t, e, func(c *rondo.Conn) rondo.Handler {
		c.Write(make([]byte, size))
		refs <- c.Ref()
		return h
	})
	ref := <-refs
	until(t, "the system has all output", func() bool { return e.Stats().BytesOut == uint64(size) })
	return nc, ref
}

// getsAll checks that a client gets size bytes and then the end of the stream.
func getsAll(t *testing.T, nc net.Conn, size int64) {
	t.Helper()
	nc.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := io.Copy(io.Discard, nc); n != size || err != nil {
		t.Errorf("the client got %d bytes of %d, and the error %v", n, size, err)
	}
	nc.Close()
}

func shutdown(t *testing.T, e *rondo.Engine) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	return done
}

const unread = 32 << 10

// TestShutdownAwaitsMove: a connection that wants to move to a loop which has closed its own
// connections already closes in order, and Shutdown waits for it.
func TestShutdownAwaitsMove(t *testing.T) {
	for _, name := range backends() {
		t.Run(name, func(t *testing.T) {
			e := &rondo.Engine{Backend: name, NumLoops: 2, Linger: time.Minute}
			loops := loopsOf(t, e)
			moved := make(chan error, 1)
			nc, _ := fullClient(t, e, unread, stayer{(*rondo.Conn).Write, func(c *rondo.Conn) {
				ref, to := c.Ref(), loops[1-c.Loop().ID()]
				afterTurns(to, func() { // most likely it has drained
					ref.Do(func(c *rondo.Conn) { moved <- c.Move(to, echo) })
				})
			}})
			done := shutdown(t, e)
			if err := <-moved; err != nil {
				t.Fatal(err)
			}
			select {
			case <-done:
				t.Error("Shutdown does not wait for the connection")
			case <-time.After(200 * time.Millisecond):
			}
			getsAll(t, nc, unread)
			<-done
		})
	}
}

// TestMoveToShutdown: a connection that wants to move to another engine, whose loop has closed its
// connections already, closes in order, and does not concern that engine.
func TestMoveToShutdown(t *testing.T) {
	for _, name := range backends() {
		t.Run(name, func(t *testing.T) {
			from := &rondo.Engine{Backend: name, NumLoops: 1, Linger: time.Minute}
			to := &rondo.Engine{Backend: name, NumLoops: 2, Linger: time.Minute}
			nc, ref := fullClient(t, from, unread, rondo.HandlerFunc((*rondo.Conn).Write))
			loops := loopsOf(t, to)
			opened, held := make(chan bool, 1), make(chan *rondo.Loop, 1)
			connTo(t, to, func(*rondo.Conn) rondo.Handler {
				opened <- true
				return stayer{(*rondo.Conn).Write, func(c *rondo.Conn) { held <- c.Loop() }}
			})
			<-opened
			done := shutdown(t, to)
			last := <-held
			free := loops[1-last.ID()]
			moved := make(chan error, 1)
			afterTurns(free, func() { // it has drained
				ref.Do(func(c *rondo.Conn) { moved <- c.Move(free, echo) })
			})
			if err := <-moved; err != nil {
				t.Fatal(err)
			}
			until(t, "it closes", func() bool { return ends(ref) })
			last.Post(func() {
				for c := range last.Conns() {
					c.Abort(nil)
				}
			})
			<-done
			getsAll(t, nc, unread)
		})
	}
}

// ends reports whether a connection is closing, or has left its loop.
func ends(ref rondo.Ref) bool {
	closing := make(chan bool, 1)
	if ref.Do(func(c *rondo.Conn) { closing <- bridge.Of(c).IsClosing() }) != nil {
		return true
	}
	select {
	case is := <-closing:
		return is
	case <-time.After(10 * time.Second):
		return true // it has left before its loop came to that
	}
}

// TestAdoptSpreads: LeastConns counts connections from when Move was called for them: so
// those that are accepted in one turn spread over the loops.
func TestAdoptSpreads(t *testing.T) {
	for _, name := range backends() {
		t.Run(name, func(t *testing.T) {
			front := &rondo.Engine{Backend: name, NumLoops: 1}
			back := &rondo.Engine{Backend: name, NumLoops: 4, Balance: rondo.LeastConns}
			ln, err := front.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, back.Adopt(echo))
			if err != nil {
				t.Fatal(err)
			}
			defer front.Close()
			defer back.Close()
			const each = 4
			wait := make(chan bool)
			loopsOf(t, front)[0].Post(func() { <-wait })
			var clients []net.Conn
			for range each * len(loopsOf(t, back)) {
				nc, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				clients = append(clients, nc)
			}
			close(wait)
			for _, nc := range clients {
				echoes(t, nc, "a")
			}
			for i, l := range back.Stats().Loops { // a connection that arrives may count twice for a moment
				if l.Open < each/2 {
					t.Errorf("loop %d has %d connections, want %d or so", i, l.Open, each)
				}
			}
		})
	}
}

// hearer is a Handler that tells with which error its connection has ended.
type hearer struct {
	rondo.HandlerFunc
	ended chan<- error
}

func (h hearer) Closed(_ *rondo.Conn, err error) { h.ended <- err }

// TestEndedMovesDoNotCount: a connection that has ended, before it moved or afterwards, is no load
// of the other loop.
func TestEndedMovesDoNotCount(t *testing.T) {
	for _, name := range backends() {
		for _, when := range []string{"before", "afterwards"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				from := &rondo.Engine{Backend: name, NumLoops: 1}
				to := &rondo.Engine{Backend: name, NumLoops: 2, Balance: rondo.LeastConns}
				ended := make(chan error, 1)
				open := func(*rondo.Conn) rondo.Handler { return hearer{(*rondo.Conn).Write, ended} }
				for range 3 {
					nc := connTo(t, from, func(c *rondo.Conn) rondo.Handler {
						h := hearer{func(c *rondo.Conn, in []byte) (int, error) {
							if err := c.Move(loopsOf(t, to)[0], open); err != nil {
								t.Error(err)
							}
							if when == "before" {
								c.Abort(nil)
							}
							return 0, nil
						}, make(chan error, 1)}
						if when == "before" {
							h.ended = ended
						}
						return h
					})
					nc.Write([]byte("a"))
					if when == "afterwards" {
						nc.Read(make([]byte, 1)) // its echo
						nc.Close()
					}
					<-ended
				}
				for range 2 { // each loop gets one
					echoes(t, connTo(t, to, echo), "a")
				}
				for i, l := range to.Stats().Loops {
					if l.Open != 1 {
						t.Errorf("loop %d has %d connections, want 1", i, l.Open)
					}
				}
			})
		}
	}
}

// TestOpenIsNeverZero: Stats counts a connection that moves round the loops all the time.
func TestOpenIsNeverZero(t *testing.T) {
	for _, name := range backends() {
		t.Run(name, func(t *testing.T) {
			e := &rondo.Engine{Backend: name, NumLoops: 2}
			loops := loopsOf(t, e)
			moved := make(chan bool, 1)
			var hop rondo.OpenFunc
			hop = func(c *rondo.Conn) rondo.Handler {
				select {
				case moved <- true:
				default:
				}
				if err := c.Move(loops[1-c.Loop().ID()], hop); err != nil {
					t.Error(err)
				}
				return nil
			}
			connTo(t, e, hop)
			<-moved
			for looks, end := 0, time.Now().Add(300*time.Millisecond); time.Now().Before(end); looks++ {
				runtime.Gosched() // the loops may have no other processor
				if e.Stats().Open == 0 {
					t.Fatalf("look %d: no connection is open", looks)
				}
			}
		})
	}
}
