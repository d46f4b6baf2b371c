package netconn_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/netconn"
	"github.com/rondo-go/rondo/rtls"
)

// TestOnLoop: what may wait panics on a loop of the engine's, at once, and says what to do.
// What does not wait may be called there.
func TestOnLoop(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 2})
		ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
		must(t, err)
		c, peer := pair(t, e, kinds()[0])
		d := netconn.Dialer{Engine: e}
		own := c.Ref().Loop()
		var other *rondo.Loop
		for l := range e.Loops() {
			if l != own {
				other = l
			}
		}
		calls := map[string]func(){
			"Conn.Read":       func() { c.Read(make([]byte, 1)) },
			"Conn.Write":      func() { c.Write(make([]byte, 64<<20)) },
			"Listener.Accept": func() { ln.Accept() },
			"Engine.Dial":     func() { d.Dial("tcp", ln.Addr().String()) },
		}
		for name, call := range calls {
			for where, l := range map[string]*rondo.Loop{"own": own, "other": other} {
				panicked := make(chan string)
				l.Post(func() {
					defer func() { panicked <- fmt.Sprint(recover()) }()
					call()
				})
				select {
				case text := <-panicked:
					if !strings.Contains(text, name) || !strings.Contains(text, "goroutine") && !strings.Contains(text, "Loop.Dial") {
						t.Errorf("%s on the %s loop: %q", name, where, text)
					}
				case <-time.After(patience):
					t.Fatalf("%s on the %s loop hangs", name, where)
				}
			}
		}
		done := make(chan error)
		own.Post(func() {
			c.SetDeadline(time.Now().Add(time.Hour))
			c.CloseWrite()
			c.CloseRead()
			done <- c.Close()
		})
		must(t, <-done)
		peer.SetDeadline(time.Now().Add(patience))
		if _, err := peer.Read(make([]byte, 64<<10)); err != nil {
			// The Write that panicked may have written something.
			t.Log(err)
		}
	})
}

// TestNew: a Handler gives its connection to a goroutine in the middle of a dialogue, with
// the bytes that it did not want.
func TestNew(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		given := make(chan *netconn.Conn, 1)
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				line, _, ok := strings.Cut(string(in), "\n")
				if !ok {
					return 0, nil
				}
				c.Write([]byte("hello " + line + "\n"))
				nc := netconn.New(c)
				if again := netconn.New(c); again != nc {
					t.Error("a second New has made another net.Conn")
				}
				given <- nc
				return len(line) + 1, nil
			})
		})
		must(t, err)
		peer, err := net.Dial("tcp", ln.Addr().String())
		must(t, err)
		defer peer.Close()
		peer.SetDeadline(time.Now().Add(patience))
		send(t, peer, "na")
		time.Sleep(time.Millisecond)
		send(t, peer, "me\nand the rest")
		expect(t, peer, "hello name\n")
		c := <-given
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		expect(t, c, "and the rest")
		send(t, c, "goodbye")
		expect(t, peer, "goodbye")
	})
}

// TestNewOfClosing: a net.Conn of a connection that is closing says so.
func TestNewOfClosing(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		given := make(chan *netconn.Conn, 1)
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
			c.Close()
			given <- netconn.New(c)
			return c.Handler()
		})
		must(t, err)
		peer, err := net.Dial("tcp", ln.Addr().String())
		must(t, err)
		defer peer.Close()
		c := <-given
		_, err = c.Read(make([]byte, 1))
		is(t, err, "read", net.ErrClosed)
		_, err = c.Write(make([]byte, 1))
		is(t, err, "write", net.ErrClosed)
		must(t, c.Close())
	})
}

// TestTaken: a Handler that is set takes the connection away, which Reads and Writes are
// told; it comes behind what these have accepted.
func TestTaken(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer := pair(t, e, k)
		peer.SetDeadline(time.Now().Add(patience))
		type result struct {
			n   int
			err error
		}
		read, wrote := make(chan result, 1), make(chan result, 1)
		go func() {
			n, err := c.Read(make([]byte, 1))
			read <- result{n, err}
		}()
		out := pattern(16 << 20)
		go func() {
			n, err := c.Write(out)
			wrote <- result{n, err}
		}()
		time.Sleep(20 * time.Millisecond)
		c.Ref().Do(func(rc *rondo.Conn) {
			rc.SetHandler(rondo.HandlerFunc((*rondo.Conn).Write))
			if got := rc.Limits(); got.HighWater != rondo.DefaultHighWater {
				t.Errorf("the limits are %+v", got)
			}
		})
		within(t, "Read", func() { is(t, (<-read).err, "read", net.ErrClosed) })
		var w result
		within(t, "Write", func() { w = <-wrote })
		is(t, w.err, "write", net.ErrClosed)
		got := make([]byte, w.n)
		if n, err := io.ReadFull(peer, got); err != nil {
			t.Fatalf("the peer got %d bytes of %d: %v", n, w.n, err)
		}
		equal(t, got, out[:w.n])
		must(t, c.Close())
		send(t, peer, "the new one's")
		expect(t, peer, "the new one's")
	})
}

// TestNewOfCoroutine: a coroutine gives its connection to a goroutine. That one's reading
// does not stop for full output.
func TestNewOfCoroutine(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		given := make(chan *netconn.Conn, 1)
		serve := coro.Handler(func(co *coro.Co, c net.Conn) error {
			if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
				return err
			}
			given <- netconn.New(co.Conn())
			return nil
		})
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(serve, rtls.Server(serverConfig())))
		must(t, err)
		peer, err := tls.Dial("tcp", ln.Addr().String(), clientConfig()) // TLS makes output a little more than full
		must(t, err)
		defer peer.Close()
		peer.SetDeadline(time.Now().Add(patience))
		send(t, peer, "name\nand the rest")
		c := <-given
		defer c.Close()
		accepted := full(t, c)
		c.SetDeadline(time.Now().Add(patience))
		expect(t, c, "and the rest")
		send(t, peer, "and more")
		expect(t, c, "and more")
		_, err = io.CopyN(io.Discard, peer, int64(accepted))
		must(t, err)
	})
}
