package httpd

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// A looked is a server on one loop, for a test that looks at its connections.
type looked struct {
	t      *testing.T
	engine *rondo.Engine
	on     *rondo.Loop
	server *Server
	addr   string
	served []*conn // the loop's
}

func lookAt(t *testing.T, srv *http.Server) *looked {
	var log testkit.Log
	k := &looked{t: t, engine: &rondo.Engine{NumLoops: 1, Logger: log.Logger()}, server: &Server{HTTP: srv}}
	t.Cleanup(func() { k.engine.Close() })
	ln, err := k.engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(rc *rondo.Conn) rondo.Handler {
		h := k.server.Open(rc)
		k.served = append(k.served, h.(*conn))
		return h
	})
	if err != nil {
		t.Fatal(err)
	}
	k.addr = ln.Addr().String()
	for k.on = range k.engine.Loops() {
	}
	return k
}

// dial returns n connections.
func (k *looked) dial(n int) (clients []net.Conn) {
	k.t.Helper()
	for range n {
		c, err := net.Dial("tcp", k.addr)
		if err != nil {
			k.t.Fatal(err)
		}
		k.t.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	return clients
}

func (k *looked) ask(c net.Conn, path string) {
	k.t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		k.t.Fatal(err)
	}
}

func (k *looked) answer(c net.Conn) {
	k.t.Helper()
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		k.t.Fatal(err)
	}
}

// do calls f on the loop, and waits until that has ended.
func (k *looked) do(f func()) {
	done := make(chan bool)
	k.on.Post(func() { defer close(done); f() })
	<-done
}

// idle reports whether all requests have ended.
func (k *looked) idle() bool {
	k.t.Helper()
	busy := false
	k.do(func() { busy = slices.ContainsFunc(k.served, (*conn).busy) })
	return !busy
}

// TestShrink: of many connections that ask now and then, only the last ones hold what a request has
// left, before any sweep.
func TestShrink(t *testing.T) {
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
	for name, h := range map[string]http.Handler{"goroutine": plain, "loop": OnLoop(plain)} {
		t.Run(name, func(t *testing.T) {
			k := lookAt(t, &http.Server{Handler: h})
			clients := k.dial(5 * mostEnded)
			for round := range 3 {
				for _, c := range clients {
					k.ask(c, "/a")
					k.answer(c)
					// A goroutine may stand still between the answer and the end of its request.
					testkit.Until(t, "the end of the request", k.idle)
				}
				requests, abouts := 0, 0
				k.do(func() {
					for _, c := range k.served {
						if c.x != nil {
							requests++
						}
						if c.about != nil {
							abouts++
						}
					}
				})
				if requests > 2*mostEnded {
					t.Errorf("round %d: %d of %d connections hold a request, want at most %d", round, requests, len(k.served), 2*mostEnded)
				}
				if round == 0 && abouts > 2*mostEnded {
					t.Errorf("%d of %d connections hold their addresses, want at most %d", abouts, len(k.served), 2*mostEnded)
				}
			}
		})
	}
}

// TestShrinkWithAHook: a ConnState hook that panics ends its connection, and does not keep the loop
// from looking at the others.
func TestShrinkWithAHook(t *testing.T) {
	const many = mostEnded + 20
	var begun, idle atomic.Int32
	proceed := make(chan bool)
	k := lookAt(t, &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun.Add(1)
			<-proceed
			io.WriteString(w, "a")
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateIdle && idle.Add(1) == 1 {
				panic("of a hook")
			}
		},
	})
	clients := k.dial(many)
	for _, c := range clients {
		k.ask(c, "/")
	}
	testkit.Until(t, "all handlers to run", func() bool { return begun.Load() == many })
	past := true
	k.do(func() {
		past = k.served[0].directly() != nil
		close(proceed)
		for _, c := range k.served { // the goroutines have sent the answers, and the loop was not told yet
			for until := time.Now().Add(2 * time.Minute); past && c.x.phase.Load()&over == 0 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
		}
		c := k.served[0].loop
		c.shrinkSome()
		c.sweep()
	})
	if !past {
		t.Skip("the loop sends all answers here")
	}
	testkit.Until(t, "the end of all requests, and of one connection", func() bool {
		return idle.Load() == many && k.engine.Stats().Open == many-1
	})
	k.do(func() {
		ended := 0
		for i, c := range k.served {
			switch noted := c.loop.noted; {
			case c.over:
				ended++
			case c.x != nil:
				t.Errorf("connection %d holds its request", i)
			case !c.listed:
				t.Errorf("connection %d waits for no sweep", i)
			case c.place > 0 && noted[c.place-1] != c:
				t.Errorf("connection %d is not where it should be in the list of shrinkSome", i)
			}
		}
		if ended != 1 {
			t.Errorf("%d connections have ended, want the one whose hook has panicked", ended)
		}
	})
}

// TestShrinkForgetsTheClosed: the loop holds no connection that has closed, even if only few ask.
func TestShrinkForgetsTheClosed(t *testing.T) {
	release := make(chan bool)
	k := lookAt(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			<-release
		}
	})})
	defer close(release)
	clients := k.dial(mostEnded)
	k.ask(clients[0], "/wait") // while it waits, there are sweeps
	for _, c := range clients[1:] {
		k.ask(c, "/")
		k.answer(c)
		c.Close()
	}
	testkit.Until(t, "the ends of the connections", func() bool { return k.engine.Stats().Open == 1 })
	k.do(func() {
		held := 0
		for _, c := range k.served[0].loop.noted {
			if c != nil {
				held++
			}
		}
		if held > 1 {
			t.Errorf("the loop holds %d connections, want the one that is open", held)
		}
	})
}
