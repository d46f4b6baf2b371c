package evio

import (
	"io"
	"net"
	"strings"
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

// At the peer's end of stream what waits is delivered first. Then Closed is called, as the
// last event: each Prewrite has had its Postwrite. What Data returns, for Wake too, is never lost.
func TestPeerEndsFirst(t *testing.T) {
	const size = 250 << 10 // more than a unix socket holds, and less than what makes the server stop reading
	for _, scheme := range []string{"unix", "unix-net"} {
		t.Run(scheme, func(t *testing.T) {
			var tried, done, left, woken int
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
						woken++
						return []byte("woken"), None
					}
					return make([]byte, size), None
				},
				Prewrite: func(int, int) Action { after("Prewrite"); tried++; return None },
				Postwrite: func(_, _, remaining int) Action {
					after("Postwrite")
					done++
					left = remaining
					return None
				},
				Closed: func(int, error) Action { closed.Store(true); return None },
			}, at(t, scheme))
			c := w.dial(0)
			say(t, c, "x")
			c.(*net.UnixConn).CloseWrite()
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // time for the end, and for a Closed that comes too early
			w.server.Wake(1)
			if closed.Load() {
				t.Error("Closed is called before the output is sent")
			}
			n, err := io.Copy(io.Discard, c)
			w.await("closed 1, <nil>")
			w.stop.Store(true)
			w.end()
			if want := int64(size - 1 + woken*len("woken")); n != want || err != nil {
				t.Errorf("%d bytes of %d came, %v", n, want, err)
			}
			if tried != done || left != 0 {
				t.Errorf("%d times Prewrite, %d times Postwrite, of %d bytes that remain", tried, done, left)
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

// A write's error ends the connection: a peer that stops reading and goes on sending does not
// get questions answered into nothing.
func TestWriteFails(t *testing.T) {
	for _, scheme := range []string{"unix", "unix-net"} {
		var questions, ends atomic.Int64
		w := serve(t, Events{
			Data:   func(int, []byte) ([]byte, Action) { questions.Add(1); return []byte("answer"), None },
			Closed: func(int, error) Action { ends.Add(1); return None },
		}, at(t, scheme))
		c := w.dial(0)
		c.(*net.UnixConn).CloseRead()
		for n := int64(1); ; n++ {
			if _, err := io.WriteString(c, "x"); err != nil {
				break
			}
			for questions.Load() < n && ends.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		w.await("closed 1, ")
		w.stop.Store(true)
		w.end()
		if log := w.events(); len(log) != 2 || !strings.HasSuffix(log[1], "broken pipe") {
			t.Errorf("%s: %q", scheme, log)
		}
		if n := questions.Load(); n > 20 {
			t.Errorf("%s: %d questions were answered into nothing", scheme, n)
		}
	}
}
