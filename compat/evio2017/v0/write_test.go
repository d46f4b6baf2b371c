package evio

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// Prewrite and Postwrite tell of all bytes, whatever the peer takes at once.
func TestPrewriteAndPostwrite(t *testing.T) {
	onStreams(t, func(t *testing.T, scheme string) {
		const size = 8 << 20
		var tried, total, left, pending int
		w := serve(t, Events{
			Data: func(int, []byte) ([]byte, Action) { pending = size; return make([]byte, size), Close },
			Prewrite: func(id, amount int) Action {
				if tried = amount; id != 1 || amount < 1 || amount > size-total {
					t.Errorf("Prewrite(%d, %d) after %d bytes", id, amount, total)
				}
				return None
			},
			Postwrite: func(id, amount, remaining int) Action {
				total += amount
				left = remaining
				if id != 1 || amount > tried || remaining != pending-total {
					t.Errorf("Postwrite(%d, %d, %d) after Prewrite of %d, and %d bytes", id, amount, remaining, tried, total)
				}
				return None
			},
		}, at(t, scheme))
		c := w.dial(0)
		say(t, c, "x")
		if n, err := io.Copy(io.Discard, c); n != size || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		w.await("closed 1, <nil>")
		w.stop.Store(true)
		w.end()
		if total != size || left != 0 {
			t.Errorf("Postwrite told of %d bytes, and of %d that remain", total, left)
		}
	})
}

// Output that a slow peer has not read is delivered after Close and after Shutdown, in
// the background.
func TestActionsDeliver(t *testing.T) {
	out := make([]byte, 16<<20)
	for _, action := range []Action{Close, Shutdown} {
		w := serve(t, Events{Data: func(int, []byte) ([]byte, Action) { return out, action }}, "tcp://127.0.0.1:0")
		c := w.dial(0)
		say(t, c, "x")
		if n, err := io.Copy(io.Discard, c); n != int64(len(out)) || err != nil {
			t.Errorf("action %d: %d bytes of %d came, %v", action, n, len(out), err)
		}
		w.await("closed 1, <nil>")
	}
}

// Closed comes at the peer's end of stream, though output waits, and is the connection's last
// event. The output is delivered in the background.
func TestPeerEndsFirst(t *testing.T) {
	const size = 250 << 10 // more than a unix socket holds, and less than what makes the server stop reading
	for _, scheme := range []string{"unix", "unix-net"} {
		t.Run(scheme, func(t *testing.T) {
			var closed atomic.Bool
			after := func(event string) {
				if closed.Load() {
					t.Errorf("%s is called after Closed", event)
				}
			}
			w := serve(t, Events{
				Data: func(_ int, in []byte) ([]byte, Action) {
					after("Data")
					if in == nil {
						return []byte("woken"), None
					}
					return make([]byte, size), None
				},
				Prewrite:  func(int, int) Action { after("Prewrite"); return None },
				Postwrite: func(int, int, int) Action { after("Postwrite"); return None },
				Closed:    func(int, error) Action { closed.Store(true); return None },
			}, at(t, scheme))
			c := w.dial(0)
			say(t, c, "x")
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			c.(*net.UnixConn).CloseWrite()
			w.await("closed 1, <nil>")
			if w.server.Wake(1) {
				t.Error("Wake finds a connection after Closed")
			}
			if n, err := io.Copy(io.Discard, c); n != size-1 || err != nil {
				t.Errorf("%d bytes of %d came, %v", n, size-1, err)
			}
		})
	}
}

// Shutdown does not wait for a peer that does not read its output: the peer gets all of it
// after Serve has returned.
func TestShutdownBesideSlowPeer(t *testing.T) {
	for _, scheme := range []string{"tcp", "tcp-net"} {
		for try := 1; !shutsDownBesideSlowPeer(t, scheme); try++ {
			if try == 10 {
				t.Fatalf("%s: Serve returned after Linger each time", scheme)
			}
		}
	}
}

// shutsDownBesideSlowPeer reports whether the result is valid: it is not if the machine stood
// still until the connection had lingered.
func shutsDownBesideSlowPeer(t *testing.T, scheme string) bool {
	const size = 16 << 20
	w := serve(t, Events{Data: func(int, []byte) ([]byte, Action) { return make([]byte, size), Shutdown }}, at(t, scheme))
	c := w.dial(0)
	defer c.Close()
	begin := time.Now()
	say(t, c, "x")
	w.end()
	if n, err := io.Copy(io.Discard, c); n < size {
		if d := time.Since(begin); d < rondo.DefaultLinger {
			t.Errorf("%s: after %v the peer got %d bytes of %d, %v", scheme, d, n, size, err)
		}
		return t.Failed()
	}
	w.wantLog("opened 1 at 0", "closed 1, <nil>")
	return true
}
