package watchdog_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/mark"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// A witness is called by callbacks, and looks whether each of them shows itself as another
// one than the one before: otherwise many short ones would pass for one that takes long.
type witness struct {
	t     *testing.T
	mark  *mark.Mark
	last  mark.Sight
	calls atomic.Int64
}

func (w *witness) see() {
	s := w.mark.Sight()
	if s.Rests() || s == w.last {
		w.t.Errorf("call %d: %x after %x", w.calls.Load(), s, w.last)
	}
	w.last = s
	w.calls.Add(1)
}

// many is how often each callback is made at least.
const many = 20

// An observed backend notes whether the loop is in no callback when the backend makes its
// system calls. They may take long together, and no callback is to blame for that.
type observed struct {
	backend.PacketBackend
	w *witness
}

func (o observed) Next(c *backend.Completion) bool {
	if m := o.w.mark; m != nil && !m.Sight().Rests() {
		o.w.t.Errorf("the backend works during call %d", o.w.calls.Load())
	}
	return o.PacketBackend.Next(c)
}

// observe makes a backend whose loop w watches, and returns its name.
func (w *witness) observe(name string) string {
	open, _, err := pick.Find(name)
	if err != nil {
		w.t.Fatal(err)
	}
	name = fmt.Sprintf("%s observed by %p", name, w)
	w.t.Cleanup(pick.Register(name, func() (backend.Backend, error) {
		b, err := open()
		if err != nil {
			return nil, err
		}
		return observed{b.(backend.PacketBackend), w}, nil
	}))
	return name
}

// TestEachCallbackShowsItself: no two callbacks look the same from outside, and what the loop
// does between them looks like none.
func TestEachCallbackShowsItself(t *testing.T) {
	for _, name := range pick.Available() {
		for what, begin := range callers {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				w := &witness{t: t}
				e := &rondo.Engine{NumLoops: 1, Backend: w.observe(name)}
				t.Cleanup(func() { e.Close() })
				if err := e.Start(); err != nil {
					t.Fatal(err)
				}
				l := anyLoop(e)
				made := make(chan bool)
				l.Post(func() { w.mark = bridge.LoopOf(l).Mark().(*mark.Mark); close(made) })
				<-made
				begin(t, e, w)
				testkit.Until(t, what, func() bool { return w.calls.Load() >= many })
			})
		}
	}
}

// callers make a loop call w.see again and again.
var callers = map[string]func(t *testing.T, e *rondo.Engine, w *witness){
	"Post": func(t *testing.T, e *rondo.Engine, w *witness) {
		l := anyLoop(e)
		l.Post(func() {
			for range many {
				l.Post(w.see)
			}
		})
	},
	"AfterFunc": func(t *testing.T, e *rondo.Engine, w *witness) {
		l := anyLoop(e)
		l.Post(func() {
			for range many {
				l.AfterFunc(1, w.see)
			}
		})
	},
	"Defer": func(t *testing.T, e *rondo.Engine, w *witness) {
		l := anyLoop(e)
		l.Post(func() {
			for range many {
				l.Defer(w.see)
			}
		})
	},
	"OnClose": func(t *testing.T, e *rondo.Engine, w *witness) {
		l := anyLoop(e)
		l.Post(func() {
			for range many {
				l.OnClose(w.see)
			}
			e.Close()
		})
	},
	"OpenFunc, Data, EOF, Closed": func(t *testing.T, e *rondo.Engine, w *witness) {
		address := testkit.Listen(t, e, func(*rondo.Conn) rondo.Handler {
			w.see()
			return handler{eof: w.see, closed: w.see, HandlerFunc: func(c *rondo.Conn, in []byte) (int, error) {
				w.see()
				return c.Write(in)
			}}
		})
		for range many {
			c := testkit.RoundTrip(t, "tcp", address, "hello")
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		}
	},
	"Ref.Do, Broadcast, WriteOwned": func(t *testing.T, e *rondo.Engine, w *witness) {
		testkit.ConnTo(t, e, func(c *rondo.Conn) rondo.Handler {
			c.SetLimits(rondo.Limits{MaxInput: 1, MaxOutput: 1 << 10, HighWater: 1 << 10})
			for range many {
				c.Ref().Do(func(*rondo.Conn) { w.see() })
				c.WriteOwned([]byte("x"), w.see)
				rondo.Broadcast(func(yield func(rondo.Ref) bool) { yield(c.Ref()) }, make([]byte, 2<<10), func(*rondo.Conn) { w.see() })
			}
			return rondo.HandlerFunc(nil)
		})
	},
	"Packet": func(t *testing.T, e *rondo.Engine, w *witness) {
		s, err := e.ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.PacketHandlerFunc(
			func(*rondo.PacketConn, []byte, netip.AddrPort) { w.see() }))
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("udp", s.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for w.calls.Load() < many { // they may be lost
			io.WriteString(c, "hello")
		}
	},
	"httpd.OnLoop": func(t *testing.T, e *rondo.Engine, w *witness) {
		s := &httpd.Server{HTTP: &http.Server{Handler: httpd.OnLoop(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.see() }))}}
		address := testkit.Listen(t, e, s.Open)
		var clients []net.Conn
		for range many {
			c := testkit.Dial(t, address)
			go io.Copy(io.Discard, c)
			clients = append(clients, c)
		}
		anyLoop(e).Post(func() { // so that the loop has all of them in the next turn
			for _, c := range clients {
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			}
		})
	},
	"coroutine": func(t *testing.T, e *rondo.Engine, w *witness) {
		address := testkit.Listen(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			for range many {
				w.see()
				if err := co.Sleep(0); err != nil {
					return err // the test is over
				}
			}
			return nil
		}))
		for range 3 {
			testkit.Dial(t, address)
		}
	},
}

// TestRestAfterTraffic: a loop that waits shows so.
func TestRestAfterTraffic(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &rondo.Engine{NumLoops: 1, Backend: name}
			address := testkit.Listen(t, e, testkit.Echo)
			l := anyLoop(e)
			marks := make(chan *mark.Mark, 1)
			l.Post(func() { marks <- bridge.LoopOf(l).Mark().(*mark.Mark) })
			m := <-marks
			for range 5 {
				testkit.RoundTrip(t, "tcp", address, "hello").Close()
				testkit.Until(t, "rest", func() bool { return m.Sight().Rests() })
			}
		})
	}
}
