package netconn_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/netconn"
)

// halfCloser is what a *net.TCPConn has beside a net.Conn.
type halfCloser interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
}

// script does everything that a net.Conn's contract is about, and tells what happened. c and
// peer are the ends of a connection.
func script(c, peer halfCloser) (log []string) {
	note := func(what string, n int, err error) {
		log = append(log, fmt.Sprintf("%s: %d, %s", what, n, describe(err)))
	}
	buf := make([]byte, 100)
	long := time.Now().Add(patience)
	past := time.Unix(1, 0)
	read := func(what string) {
		n, err := c.Read(buf)
		note(what, n, err)
	}
	write := func(what, s string) {
		n, err := c.Write([]byte(s))
		note(what, n, err)
	}

	n, err := c.Read(nil)
	note("empty read", n, err)
	write("empty write", "")
	write("write", "hello")
	n, err = io.ReadFull(peer, buf[:5])
	note("peer: "+string(buf[:n]), n, err)

	note("deadline that has passed", 0, c.SetDeadline(past))
	read("read after the deadline")
	write("write after the deadline", "x")
	write("empty write after the deadline", "")
	n, err = c.Read(nil)
	note("empty read after the deadline", n, err)
	peer.Write([]byte("waits"))
	time.Sleep(10 * time.Millisecond)
	read("read of what waits after the deadline")
	note("deadline that is far", 0, c.SetDeadline(long))
	read("read of what waits")
	note("deadline soon", 0, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	read("read until the deadline")
	note("no deadline", 0, c.SetDeadline(time.Time{}))

	note("CloseWrite", 0, c.CloseWrite())
	write("write after CloseWrite", "x")
	n, err = peer.Read(buf)
	note("peer's read after CloseWrite", n, err)
	peer.Write([]byte("answer"))
	read("read after CloseWrite")
	note("CloseWrite again", 0, c.CloseWrite())
	note("peer's CloseWrite", 0, peer.CloseWrite())
	read("read at the end")
	read("read at the end again")
	write("write after both ends", "x")

	note("close", 0, c.Close())
	read("read after close")
	n, err = c.Read(nil)
	note("empty read after close", n, err)
	write("write after close", "x")
	write("empty write after close", "")
	note("close again", 0, c.Close())
	note("CloseWrite after close", 0, c.CloseWrite())
	note("CloseRead after close", 0, c.CloseRead())
	note("SetDeadline after close", 0, c.SetDeadline(long))
	note("SetReadDeadline after close", 0, c.SetReadDeadline(long))
	note("SetWriteDeadline after close", 0, c.SetWriteDeadline(long))
	return log
}

// describe tells what a caller can find out about an error.
func describe(err error) string {
	if err == nil {
		return "nil"
	}
	text := fmt.Sprintf("%T", err)
	var op *net.OpError
	if errors.As(err, &op) {
		text += fmt.Sprintf(" op=%s net=%s source=%t addr=%t", op.Op, op.Net, op.Source != nil, op.Addr != nil)
	}
	var ne net.Error
	if errors.As(err, &ne) {
		text += fmt.Sprintf(" timeout=%t", ne.Timeout())
	}
	for name, target := range map[string]error{"EOF": io.EOF} {
		if err == target {
			text += " " + name
		}
	}
	for _, target := range []error{net.ErrClosed, os.ErrDeadlineExceeded, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, target) {
			text += " is " + target.Error()
		}
	}
	return text
}

// TestContract does the same with a netconn.Conn and with a *net.TCPConn: the same happens.
func TestContract(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	b, err := ln.Accept()
	must(t, err)
	defer b.Close()
	want := script(a.(*net.TCPConn), b.(*net.TCPConn))

	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer := pair(t, e, k)
		var got []string
		within(t, "the script", func() { got = script(c, peer) })
		if !slices.Equal(got, want) {
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Errorf("%q, package net has %q", append(got, "nothing")[min(i, len(got))], want[i])
				}
			}
		}
	})
}

// TestAddresses: they are what package net's other end says.
func TestAddresses(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		c, peer := withPeer(t, engine(t, &rondo.Engine{Backend: backend, NumLoops: 1}))
		if got, want := c.LocalAddr().String(), peer.RemoteAddr().String(); got != want {
			t.Errorf("LocalAddr %s, want %s", got, want)
		}
		if got, want := c.RemoteAddr().String(), peer.LocalAddr().String(); got != want {
			t.Errorf("RemoteAddr %s, want %s", got, want)
		}
		c.Close()
		if c.LocalAddr() == nil || c.RemoteAddr() == nil {
			t.Error("no address after Close")
		}
	})
}

// TestCloseRead: what comes afterwards is dropped, and the peer is not held up.
func TestCloseRead(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer := pair(t, e, k)
		send(t, peer, "x")
		waiting := make(chan error, 1)
		expect(t, c, "x")
		go func() {
			_, err := c.Read(make([]byte, 1))
			waiting <- err
		}()
		time.Sleep(5 * time.Millisecond)
		must(t, c.CloseRead())
		if err := <-waiting; err != io.EOF {
			t.Errorf("a Read that waited: %v", err)
		}
		peer.SetDeadline(time.Now().Add(patience))
		if n, err := peer.Write(make([]byte, 8<<20)); err != nil {
			t.Errorf("the peer could write %d bytes: %v", n, err)
		}
		send(t, c, "still")
		expect(t, peer, "still")
		must(t, c.CloseRead())
	})
}

// TestReadWakes: Close, a deadline and the peer's end wake Reads, all that wait.
func TestReadWakes(t *testing.T) {
	ends := map[string]struct {
		end  func(c, peer *netconn.Conn)
		want error
	}{
		"Close":        {func(c, _ *netconn.Conn) { c.Close() }, net.ErrClosed},
		"deadline":     {func(c, _ *netconn.Conn) { c.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"peer's close": {func(_, peer *netconn.Conn) { peer.Close() }, io.EOF},
	}
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		for name, end := range ends {
			c, peer := pair(t, e, k)
			errs := make(chan error)
			for range 3 {
				go func() {
					_, err := c.Read(make([]byte, 10))
					errs <- err
				}()
			}
			time.Sleep(5 * time.Millisecond)
			end.end(c, peer)
			for range 3 {
				if err := <-errs; !errors.Is(err, end.want) {
					t.Errorf("%s: %v, want %v", name, err, end.want)
				}
			}
		}
	})
}

// TestWriteWakes: Close, CloseWrite and a deadline end Writes that wait for a peer that
// does not read; n tells how much was accepted.
func TestWriteWakes(t *testing.T) {
	ends := map[string]struct {
		end  func(c *netconn.Conn) error
		want error
	}{
		"Close":      {(*netconn.Conn).Close, net.ErrClosed},
		"CloseWrite": {(*netconn.Conn).CloseWrite, syscall.EPIPE},
		"deadline":   {func(c *netconn.Conn) error { return c.SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	}
	p := make([]byte, 64<<20)
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		for name, end := range ends {
			c, _ := pair(t, e, k)
			type result struct {
				n   int
				err error
			}
			results := make(chan result)
			for range 2 {
				go func() {
					n, err := c.Write(p)
					results <- result{n, err}
				}()
			}
			time.Sleep(30 * time.Millisecond)
			must(t, end.end(c))
			total := 0
			for range 2 {
				r := <-results
				if total += r.n; !errors.Is(r.err, end.want) {
					t.Errorf("%s: %d, %v, want %v", name, r.n, r.err, end.want)
				}
			}
			if total == 0 || total > 32<<20 {
				t.Errorf("%s: %d bytes were accepted", name, total)
			}
		}
	})
}

// TestErrorText: the texts are package net's.
func TestErrorText(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		c, _ := withPeer(t, engine(t, &rondo.Engine{Backend: backend, NumLoops: 1}))
		c.Close()
		_, err := c.Read(make([]byte, 1))
		if want := fmt.Sprintf("read tcp %s->%s: use of closed network connection", c.LocalAddr(), c.RemoteAddr()); err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
		if err := c.Close(); !strings.HasPrefix(err.Error(), "close tcp ") {
			t.Errorf("a second Close: %v", err)
		}
	})
}
