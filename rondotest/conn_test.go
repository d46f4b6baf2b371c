package rondotest

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// echo echoes its input, and closes when the peer does.
func echo(*rondo.Conn) rondo.Handler {
	return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) })
}

// keeper records what happened to its connection.
type keeper struct {
	in     string
	eof    bool
	closed bool
	err    error
}

func (k *keeper) Data(c *rondo.Conn, in []byte) (int, error) {
	k.in += string(in)
	return len(in), nil
}
func (k *keeper) EOF(c *rondo.Conn)               { k.eof = true }
func (k *keeper) Closed(c *rondo.Conn, err error) { k.closed, k.err = true, err }

// deaf never reads.
func deaf(c *rondo.Conn) rondo.Handler {
	c.Pause()
	return &keeper{}
}

func TestConnReadEnds(t *testing.T) {
	n := New(t, Options{})
	n.Serve(":7", echo)
	c := n.Dial("tcp", "127.0.0.1:7")
	buf := make([]byte, 10)
	if k, err := c.Read(buf); k != 0 || !errors.Is(err, ErrIdle) {
		t.Errorf("with nothing to come: %d, %v", k, err)
	}
	began := n.Now()
	c.SetReadDeadline(began.Add(time.Hour))
	if k, err := c.Read(buf); k != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with a deadline: %d, %v", k, err)
	}
	if d := n.Now().Sub(began); d != time.Hour {
		t.Errorf("the deadline came after %v", d)
	}
	c.Send("x")
	n.Run()
	var timeout net.Error
	if k, err := c.Read(buf); k != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("after the deadline: %d, %v", k, err)
	}
	c.SetDeadline(time.Time{})
	c.Expect("x")
	if k, err := c.Read(nil); k != 0 || err != nil {
		t.Errorf("into nothing: %d, %v", k, err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Error(err)
	}
	c.ExpectEOF()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for what, f := range map[string]func() error{
		"Read":       func() error { _, err := c.Read(buf); return err },
		"Write":      func() error { _, err := c.Write(buf); return err },
		"Close":      c.Close,
		"CloseWrite": c.CloseWrite,
		"Reset":      c.Reset,
	} {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

// Write proceeds while there is room, then waits for more room.
func TestConnWriteWaits(t *testing.T) {
	n := New(t, Options{Buffer: 1000})
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		c.Loop().AfterFunc(time.Hour, c.Resume)
		return deaf(c)
	})
	c := n.Dial("tcp", "127.0.0.1:7")
	began := n.Now()
	c.SetWriteDeadline(began.Add(time.Minute))
	k, err := c.Write(make([]byte, 5000))
	if k < 1000 || k == 5000 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("to a deaf peer: %d, %v", k, err)
	}
	c.SetDeadline(time.Time{})
	if k, err := c.Write(make([]byte, 5000)); k != 5000 || err != nil {
		t.Errorf("to a peer that reads in the end: %d, %v", k, err)
	}
	if d := n.Now().Sub(began); d < 59*time.Minute {
		t.Errorf("the peer read after %v", d)
	}

	n.Serve(":8", deaf)
	c = n.Dial("tcp", "127.0.0.1:8")
	if k, err := c.Write(make([]byte, 5000)); k == 5000 || !errors.Is(err, ErrIdle) {
		t.Errorf("to a peer that never reads: %d, %v", k, err)
	}
}

// The handler sees Close, CloseWrite and Reset.
func TestConnEnds(t *testing.T) {
	n := New(t, Options{})
	k := &keeper{}
	n.Serve(":7", func(*rondo.Conn) rondo.Handler { k = &keeper{}; return k })

	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("hello")
	c.CloseWrite()
	n.Run()
	if k.in != "hello" || !k.eof || k.closed {
		t.Errorf("after CloseWrite: %+v", *k)
	}

	c = n.Dial("tcp", "127.0.0.1:7")
	n.Run()
	c.Reset()
	n.Run()
	if k.eof || !k.closed || !errors.Is(k.err, syscall.ECONNRESET) {
		t.Errorf("after Reset: %+v", *k)
	}
}

func TestConnBuffered(t *testing.T) {
	n := New(t, Options{})
	n.Serve(":7", echo)
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("hello")
	if got := c.Buffered(); got != 0 {
		t.Errorf("%d bytes have arrived in no time", got)
	}
	n.Run()
	if got := c.Buffered(); got != 5 {
		t.Errorf("%d bytes have arrived, want 5", got)
	}
	c.Expect("hello")
}

func TestDial(t *testing.T) {
	n := New(t, Options{})
	var remote []net.Addr
	open := func(c *rondo.Conn) rondo.Handler {
		remote = append(remote, c.RemoteAddr())
		return echo(c)
	}
	n.Serve("tcp://:7", open)
	n.Serve("unix:///run/server", open)
	conns := []*Conn{
		n.Dial("tcp", "127.0.0.1:7"),
		n.Dial("tcp", "[::1]:7"),
		n.DialFrom("192.0.2.1", "tcp", "127.0.0.1:7"),
		n.Dial("unix", "/run/server"),
	}
	for i, c := range conns {
		c.Send("x")
		c.Expect("x")
		n.Run()
		if len(remote) != len(conns) {
			t.Fatalf("%d connections were opened", len(remote))
		}
		if got, want := remote[i].String(), c.LocalAddr().String(); got != want {
			t.Errorf("the handler sees %v, the client is %v", got, want)
		}
	}
	if !strings.HasPrefix(remote[2].String(), "192.0.2.1:") {
		t.Errorf("DialFrom came from %v", remote[2])
	}

	_, err := n.DialContext(context.Background(), "tcp", "127.0.0.1:8")
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
	if _, err = n.DialContext(context.Background(), "tcp", "nowhere:8"); err == nil || !strings.Contains(err.Error(), "dial tcp nowhere:8") {
		t.Errorf("where there is nothing: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = n.DialContext(ctx, "tcp", "127.0.0.1:7"); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}

// A deadline that is set while Read waits counts.
func TestConnDeadlineMoves(t *testing.T) {
	n := New(t, Options{})
	n.Serve(":7", echo)
	c := n.Dial("tcp", "127.0.0.1:7")
	waiting := make(chan bool)
	n.Await(func() {
		go func() {
			_, err := c.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			close(waiting)
		}()
		n.Until(func() bool { return true })
		c.SetReadDeadline(n.Now().Add(-time.Second))
		<-waiting
	})
}

func TestExpectations(t *testing.T) {
	for name, test := range map[string]struct {
		f    func(c *Conn)
		want string
	}{
		"other bytes":   {func(c *Conn) { c.Send("hello"); c.Expect("help!") }, `received "hello", want "help!"`},
		"no bytes":      {func(c *Conn) { c.Send("hel"); c.Expect("hello") }, `received "hel", want "hello"`},
		"no end":        {func(c *Conn) { c.Send("x"); c.ExpectEOF() }, `received "x", want the end of the stream`},
		"no end either": {func(c *Conn) { c.ExpectEOF() }, "wait for ever"},
		"no sending":    {func(c *Conn) { c.Close(); c.Send("x") }, `sending "x": after 0 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			n := New(nil, Options{Seed: 5, Fragment: -1})
			defer n.Close()
			n.Serve(":7", echo)
			c := n.Dial("tcp", "127.0.0.1:7")
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, test.want) || !strings.Contains(got, "seed 5") {
					t.Errorf("panicked with %q, want %q", got, test.want)
				}
			}()
			test.f(c)
		})
	}
}
