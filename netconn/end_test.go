package netconn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/netconn"
)

// TestCloseDelivers: all that Write has accepted reaches a peer that is slow, and sends
// meanwhile what nobody reads.
func TestCloseDelivers(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer := pair(t, e, k)
		send(t, peer, "nobody reads this")
		want := pattern(1 << 20)
		written := make(chan error, 1)
		go func() {
			_, err := c.Write(want)
			c.Close()
			written <- err
		}()
		peer.SetDeadline(time.Now().Add(patience))
		time.Sleep(20 * time.Millisecond)
		got, err := io.ReadAll(peer)
		must(t, err)
		must(t, <-written)
		equal(t, got, want)
	})
}

// TestCloseReturns: Close does not wait for a peer that reads nothing, and what is left
// of the connection ends after Linger.
func TestCloseReturns(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1, Linger: 50 * time.Millisecond})
		c, peer := withPeer(t, e)
		accepted := full(t, c)
		must(t, c.Close())
		eventually(t, "the connection is gone", func() bool { return e.Stats().Open == 0 })
		peer.SetDeadline(time.Now().Add(patience))
		n, err := io.Copy(io.Discard, peer)
		if err == nil && n != int64(accepted) || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the peer got %d bytes of %d, %v", n, accepted, err)
		}
	})
}

// full writes to c until it takes no more; on a busy machine perhaps less. It returns how
// much was accepted.
func full(t testing.TB, c *netconn.Conn) (n int) {
	t.Helper()
	p := make([]byte, 1<<20)
	for {
		c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		k, err := c.Write(p)
		n += k
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.SetWriteDeadline(time.Time{})
			return n
		}
		must(t, err)
	}
}

// TestEngineEnds: Engine.Close and Shutdown end Reads, Writes and Accepts that wait.
func TestEngineEnds(t *testing.T) {
	ends := map[string]func(e *rondo.Engine) error{
		"Close": (*rondo.Engine).Close,
		"Shutdown": func(e *rondo.Engine) error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return e.Shutdown(ctx)
		},
	}
	onEach(t, func(t *testing.T, backend string) {
		for _, k := range kinds() {
			for name, end := range ends {
				t.Run(k.name+" "+name, func(t *testing.T) {
					e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 2, Linger: 200 * time.Millisecond})
					ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
					must(t, err)
					c, _ := pair(t, e, k)
					errs := make(chan error, 3)
					go func() {
						_, err := c.Read(make([]byte, 1))
						errs <- err
					}()
					go func() {
						_, err := c.Write(make([]byte, 64<<20))
						errs <- err
					}()
					go func() {
						_, err := ln.Accept()
						errs <- err
					}()
					time.Sleep(20 * time.Millisecond)
					within(t, name, func() {
						if err := end(e); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					})
					within(t, "a call that waited", func() {
						for range 3 {
							if err := <-errs; !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) && !reset(err) {
								t.Errorf("%v", err)
							}
						}
					})
					if _, err := c.Write([]byte("x")); err == nil {
						t.Error("Write after the end")
					}
					if _, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{}); !errors.Is(err, net.ErrClosed) {
						t.Errorf("Listen after the end: %v", err)
					}
					must(t, c.Close())
					must(t, ln.Close())
				})
			}
		}
	})
}

// reset reports whether the peer, whose connection was aborted first, has reset this one.
func reset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF)
}

// TestShutdownDelivers: what Write accepted before a Shutdown reaches a peer that reads.
func TestShutdownDelivers(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		c, peer := withPeer(t, e)
		want := pattern(200 << 10)
		_, err := c.Write(want)
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- e.Shutdown(context.Background()) }()
		peer.SetDeadline(time.Now().Add(patience))
		got, err := io.ReadAll(peer)
		must(t, err)
		equal(t, got, want)
		peer.Close()
		must(t, <-done)
	})
}

// TestNeverTruncated: a peer of a connection whose accepted output does not fit when the
// engine closes it, for whatever reason, sees an error, and no end of the stream.
func TestNeverTruncated(t *testing.T) {
	ends := map[string]func(e *rondo.Engine, c *netconn.Conn){
		"Shutdown":  func(e *rondo.Engine, _ *netconn.Conn) { go e.Shutdown(context.Background()) },
		"Ref.Close": func(_ *rondo.Engine, c *netconn.Conn) { c.Ref().Close() },
		"CloseWith": func(_ *rondo.Engine, c *netconn.Conn) {
			c.Ref().Do(func(c *rondo.Conn) { c.CloseWith(io.ErrNoProgress) })
		},
		"idle": func(_ *rondo.Engine, c *netconn.Conn) {
			c.Ref().Do(func(c *rondo.Conn) { c.SetIdle(time.Millisecond) })
		},
	}
	onEach(t, func(t *testing.T, backend string) {
		for name, end := range ends {
			e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1, Linger: time.Second})
			c, peer := withPeer(t, e)
			accepted := full(t, c)
			c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			n, _ := c.Write(make([]byte, 10<<10)) // which waits behind what the loop has
			accepted += n
			end(e, c)
			peer.SetDeadline(time.Now().Add(patience))
			time.Sleep(20 * time.Millisecond)
			if n, err := io.Copy(io.Discard, peer); err == nil && n != int64(accepted) {
				t.Errorf("%s: the stream ended after %d bytes of %d", name, n, accepted)
			}
		}
	})
}

// TestEnginesDeadline: an idle timeout or a deadline of the rondo.Conn's is the end, and no
// timeout of a Read's or a Write's that could be moved.
func TestEnginesDeadline(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		for name, set := range map[string]func(*rondo.Conn){
			"idle": func(c *rondo.Conn) { c.SetIdle(time.Millisecond) },
			"read": func(c *rondo.Conn) { c.CloseAt(c.Loop().Now().Add(time.Millisecond)) },
		} {
			c, _ := withPeer(t, engine(t, &rondo.Engine{Backend: backend, NumLoops: 1}))
			c.SetDeadline(time.Now().Add(patience))
			must(t, c.Ref().Do(set))
			_, err := c.Read(make([]byte, 1))
			is(t, err, "read", net.ErrClosed)
			_, writeErr := c.Write([]byte("x"))
			is(t, writeErr, "write", net.ErrClosed)
			for _, err := range []error{err, writeErr} {
				if ne, ok := err.(net.Error); !ok || ne.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: %v is a timeout", name, err)
				}
			}
		}
	})
}

// TestReadAfterEnd: what came before the peer's end, or its reset, can be read afterwards.
func TestReadAfterEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		e = engine(t, &rondo.Engine{Backend: e.Backend, NumLoops: 2, Linger: 10 * time.Millisecond})
		c, peer := pair(t, e, k)
		send(t, peer, "last words")
		must(t, peer.Close())
		time.Sleep(5 * time.Millisecond)
		got, err := io.ReadAll(c)
		if err != nil || string(got) != "last words" {
			t.Errorf("%q, %v", got, err)
		}
		// And writes fail, soon: the peer has closed.
		c.SetWriteDeadline(time.Now().Add(patience))
		eventually(t, "Write fails", func() bool {
			_, err := c.Write([]byte("x"))
			return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
		})
	})
}

// TestPeerResets: Read says so.
func TestPeerResets(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		for _, state := range []string{"waiting", "direct"} {
			c, peer := withPeer(t, engine(t, &rondo.Engine{Backend: backend, NumLoops: 1}))
			if state == "direct" { // the loop does not read
				_, err := peer.Write(make([]byte, 300<<10))
				must(t, err)
				time.Sleep(10 * time.Millisecond)
				peer.SetLinger(0)
				peer.Close()
			} else {
				time.AfterFunc(10*time.Millisecond, func() {
					peer.SetLinger(0)
					peer.Close()
				})
			}
			c.SetDeadline(time.Now().Add(patience))
			_, err := io.Copy(io.Discard, struct{ io.Reader }{c})
			is(t, err, "read", syscall.ECONNRESET)
		}
	})
}

// TestPeerKilled: the peer's process is killed in the middle of a stream.
func TestPeerKilled(t *testing.T) {
	if address := os.Getenv("NETCONN_PEER"); address != "" {
		c, err := net.Dial("tcp", address)
		must(t, err)
		for {
			c.Write(make([]byte, 10000))
		}
	}
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
		must(t, err)
		exe, err := os.Executable()
		must(t, err)
		cmd := exec.Command(exe, "-test.run=^TestPeerKilled$")
		cmd.Env = append(os.Environ(), "NETCONN_PEER="+ln.Addr().String())
		must(t, cmd.Start())
		defer cmd.Wait()
		defer cmd.Process.Kill()
		ln.SetDeadline(time.Now().Add(patience))
		c, err := ln.Accept()
		must(t, err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		_, err = io.ReadFull(c, make([]byte, 1<<20))
		must(t, err)
		must(t, cmd.Process.Kill())
		_, err = io.Copy(io.Discard, c)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("the end of a killed peer: %v", err)
		}
		eventually(t, "Write fails", func() bool { _, err := c.Write([]byte("x")); return err != nil })
	})
}

// breaking is a filter that panics, or fails, when "!" comes.
type breaking struct {
	rondo.PassThrough
	end func() error
}

func (b *breaking) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	s.Deliver(in)
	if in[len(in)-1] == '!' {
		return len(in), b.end()
	}
	return len(in), nil
}

// TestFilterBreaks: Reads and Writes of a connection whose filter panics or fails return
// the reason, after what came before.
func TestFilterBreaks(t *testing.T) {
	boom := errors.New("boom")
	ends := map[string]func() error{
		"panic": func() error { panic(boom) },
		"error": func() error { return boom },
	}
	onEach(t, func(t *testing.T, backend string) {
		for name, end := range ends {
			e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1, Logger: quietLog})
			k := kind{server: []rondo.FilterOpenFunc{func(*rondo.Conn) rondo.Filter { return &breaking{end: end} }}}
			c, peer := pair(t, e, k)
			wrote := make(chan error, 1)
			go func() {
				_, err := c.Write(make([]byte, 64<<20))
				wrote <- err
			}()
			time.Sleep(5 * time.Millisecond)
			send(t, peer, "x!")
			c.SetDeadline(time.Now().Add(patience))
			got, err := io.ReadAll(struct{ io.Reader }{c})
			if string(got) != "x!" {
				t.Errorf("%s: read %q", name, got)
			}
			is(t, err, "read", boom)
			is(t, <-wrote, "write", boom)
		}
	})
}

// TestEarlyAnswer: a server answers in the middle of a request and closes without reading
// the rest. Write fails, and Read gets the answer.
func TestEarlyAnswer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a reset destroys what has arrived")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				io.ReadFull(c, make([]byte, 64<<10))
				time.Sleep(time.Millisecond)
				io.WriteString(c, "no, thanks")
				c.Close()
			}()
		}
	}()
	onEach(t, func(t *testing.T, backend string) {
		// The input's end is waited for, and not the linger time's.
		d := netconn.Dialer{Engine: engine(t, &rondo.Engine{Backend: backend, NumLoops: 1, Linger: time.Hour})}
		for range 50 {
			c, err := d.Dial("tcp", ln.Addr().String())
			must(t, err)
			c.SetDeadline(time.Now().Add(patience))
			written := make(chan error, 1)
			go func() {
				_, err := c.Write(make([]byte, 16<<20))
				written <- err
			}()
			expect(t, c, "no, thanks")
			within(t, "Write", func() {
				if err := <-written; !reset(err) {
					t.Errorf("Write: %v", err)
				}
			})
			if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF && !reset(err) {
				t.Errorf("Read after the answer: %d, %v", n, err)
			}
			if _, err := c.Write([]byte("x")); !reset(err) {
				t.Errorf("Write after a failed one: %v", err)
			}
			must(t, c.Close())
		}
	})
}

// TestResetDuringAWrite: a reset that a Write has got from the system is not the end of the peer's
// stream for the Read beside it.
func TestResetDuringAWrite(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Wine shows a reset as an end")
	}
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		out, ended := pattern(4<<20), 0
		const conns = 100
		for i := range conns {
			c, peer := withPeer(t, e)
			go func() {
				for err := error(nil); err == nil; {
					_, err = c.Write(out)
				}
			}()
			go io.CopyN(io.Discard, peer, 1<<20)
			time.Sleep(time.Duration(i%6) * 200 * time.Microsecond)
			peer.SetLinger(0)
			peer.Close()
			if _, err := c.Read(make([]byte, 1)); err == io.EOF {
				ended++
			}
			c.Close()
		}
		if ended > 0 {
			t.Errorf("Read returned io.EOF for %d of %d connections that were reset", ended, conns)
		}
	})
}

// TestResetAfterWrites: the loop has left input in the system, so Reads get it past the loop. They
// return the error of a connection that was reset, whoever has got that from the system: a Write, of
// which there are more, or the loop, which sends a part of a long one.
func TestResetAfterWrites(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Wine shows a reset as an end")
	}
	onEach(t, func(t *testing.T, backend string) {
		for _, long := range []bool{false, true} {
			e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
			c, peer := withPeer(t, e)
			const size = netconn.DefaultReadAhead + 100_000
			send(t, peer, string(pattern(size)))
			time.Sleep(20 * time.Millisecond) // until the loop has paused
			failed := make(chan error, 1)
			reset := func() {
				must(t, peer.SetLinger(0))
				must(t, peer.Close())
			}
			if !long {
				reset()
				time.Sleep(10 * time.Millisecond)
			}
			go func() {
				p := []byte("x")
				if long {
					p = make([]byte, 1<<20)
				}
				var err error
				for err == nil {
					_, err = c.Write(p)
				}
				c.Write(p)
				failed <- err
			}()
			if long {
				time.Sleep(20 * time.Millisecond) // until the Write waits for the loop
				reset()
			}
			if err := <-failed; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("long: %t: Write to a connection that was reset: %v", long, err)
			}
			if got, err := io.ReadAll(c); err == nil {
				t.Errorf("long: %t: Read returned io.EOF after %d bytes, for a reset", long, len(got))
			}
		}
	})
}
