package mistakes_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/rondotest"
)

// What docs/mistakes.md shows instead of a mistake has a file each. Here it is tried, and
// so are the mistakes whose symptoms come each time.

func handle(f rondo.HandlerFunc) rondo.OpenFunc {
	return func(*rondo.Conn) rondo.Handler { return f }
}

// serve serves open on a simulated network.
func serve(t *testing.T, open rondo.OpenFunc) *rondotest.Network {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5000", open)
	return n
}

func dial(n *rondotest.Network) *rondotest.Conn { return n.Dial("tcp", "127.0.0.1:5000") }

func TestKept(t *testing.T) {
	n := serve(t, func(*rondo.Conn) rondo.Handler { return &keeper{} })
	c := dial(n)
	c.Send("one")
	n.Run()
	c.Send("two")
	c.CloseWrite()
	answer, err := io.ReadAll(c)
	if !strings.HasPrefix("onetwo", string(answer)) || len(answer) < 1 || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestKeptInput: what is kept without a copy becomes something else.
func TestKeptInput(t *testing.T) {
	var kept []byte
	n := serve(t, handle(func(_ *rondo.Conn, in []byte) (int, error) {
		if kept == nil {
			kept = in
		}
		return len(in), nil
	}))
	c := dial(n)
	c.Send("one")
	n.Run()
	c.Send("two")
	n.Run()
	if strings.HasPrefix("one", string(kept)) {
		t.Errorf("%q is as it was: rondotest does not show the mistake", kept)
	}
}

func TestPieces(t *testing.T) {
	n := serve(t, handle(lines))
	c := dial(n)
	c.Send("hello\nwor")
	n.Run()
	c.Send("ld\n")
	c.Expect("HELLO\nWORLD\n")
}

func TestDelayed(t *testing.T) {
	n := serve(t, func(*rondo.Conn) rondo.Handler { return delayed{} })
	c := dial(n)
	began := n.Now()
	c.Send("hello")
	c.CloseWrite()
	c.Expect("hello")
	if waited := n.Now().Sub(began); waited < time.Second {
		t.Errorf("answered after %v", waited)
	}
	c.ExpectEOF()
}

func TestSubscriber(t *testing.T) {
	news := make(chan string, 2)
	news <- "war\n"
	news <- "peace\n"
	close(news)
	n := serve(t, openSubscriber(news))
	c := dial(n)
	c.Expect("war\npeace\n")
	c.ExpectEOF()
}

// TestElsewhere: Engine.Check finds a call by another goroutine.
func TestElsewhere(t *testing.T) {
	found := make(chan any, 1)
	e := &rondo.Engine{Check: true}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		go func() {
			defer func() { found <- recover() }()
			c.Write([]byte("hello"))
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-found; err == nil {
		t.Error("the call was not found")
	}
}

func TestOracle(t *testing.T) {
	n := serve(t, func(*rondo.Conn) rondo.Handler { return &oracle{} })
	c := dial(n)
	c.Send("x")
	c.CloseWrite()
	c.Expect("the answer to x")
	c.ExpectEOF()
}

// TestLate: without an EOF method the connection closes before the answer.
func TestLate(t *testing.T) {
	answered := make(chan struct{})
	n := serve(t, handle(func(c *rondo.Conn, in []byte) (int, error) {
		c.Loop().AfterFunc(time.Second, func() {
			if _, err := c.Write([]byte("late")); !errors.Is(err, rondo.ErrClosed) {
				t.Errorf("error %v", err)
			}
			close(answered)
		})
		return len(in), nil
	}))
	c := dial(n)
	c.Send("x")
	c.CloseWrite()
	c.ExpectEOF()
	n.Advance(time.Second)
	<-answered
}

func TestVisited(t *testing.T) {
	e, open := visited()
	n := rondotest.New(t, rondotest.Options{})
	n.Listen(e, "tcp", ":5000", open)
	dial(n).Expect("visit 1\n")
	dial(n).Expect("visit 2\n")
}

func TestSender(t *testing.T) {
	for _, ends := range []bool{false, true} {
		n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
		file := bytes.Repeat([]byte("0123456789"), 1<<16)
		n.Serve(":5000", func(c *rondo.Conn) rondo.Handler { return openSender(c, bytes.NewReader(file)) })
		c := dial(n)
		if ends {
			c.CloseWrite()
		}
		n.Run()
		got, err := io.ReadAll(c)
		if !bytes.Equal(got, file) || err != nil {
			t.Errorf("%d bytes of %d, %v", len(got), len(file), err)
		}
	}
}

// TestHole: who ignores ErrOutputFull leaves a hole in the stream.
func TestHole(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Buffer: 100})
	n.Listen(&rondo.Engine{MaxOutput: 1000}, "tcp", ":5000", func(c *rondo.Conn) rondo.Handler {
		for range 10 {
			c.Write(bytes.Repeat([]byte("x"), 300))
		}
		return nil
	})
	got, err := io.ReadAll(dial(n))
	if len(got) != 900 || err != nil {
		t.Errorf("%d bytes, %v; want 900 of 3000", len(got), err)
	}
}

func TestBoard(t *testing.T) {
	n := serve(t, coro.Handler((&board{text: "hello"}).show))
	c := dial(n)
	c.Expect("hello\n")
	c.ExpectEOF()
}

func TestPatient(t *testing.T) {
	n := serve(t, openPatient)
	silent, c := dial(n), dial(n)
	c.Send("hello")
	c.Expect("hello")
	n.Advance(time.Hour)
	silent.ExpectEOF()
	c.Send("still here")
	c.Expect("still here")
}

// TestBroadcast: one who reads gets all, one who does not is cut off.
func TestBroadcast(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Buffer: 1000})
	e := &rondo.Engine{HighWater: 10_000}
	n.Listen(e, "tcp", ":5000", handle(func(c *rondo.Conn, in []byte) (int, error) {
		broadcast(c.Loop(), bytes.Repeat(in[:1], 1000))
		return len(in), nil
	}))
	c, slow := dial(n), dial(n)
	n.Run()
	for range 20 {
		c.Send("x")
		c.Expect(strings.Repeat("x", 1000))
	}
	n.Run()
	if open := e.Stats().Open; open != 1 {
		t.Errorf("%d connections are open, want 1", open)
	}
	slow.Close()
}

func TestClock(t *testing.T) {
	n := serve(t, openClock)
	c := dial(n)
	c.Expect("00:00:01\n00:00:02\n")
}
