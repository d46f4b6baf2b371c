package suite

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/compat/evio"
)

var (
	useOriginal = flag.Bool("original", false, "play the scripts with evio itself")
	record      = flag.Bool("record", false, "with -original: keep what happens")
)

const recorded = "testdata/original.txt"

// TestSame plays each script with compat/evio. Events and clients must see the same, in the
// same order, as with the original. The original's results are recorded, since the original
// has data races and sometimes does not end (it loses a signal to end that arrives before
// Serve waits for it):
//
//	go test -run TestSame -original          # does the record hold?
//	go test -run TestSame -original -record
func TestSame(t *testing.T) {
	serve := evio.Serve
	if *useOriginal {
		serve = serveOriginal
	}
	b, err := os.ReadFile(recorded)
	if err != nil && !*record {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for _, section := range strings.Split(string(b), "\n\n") {
		title, text, _ := strings.Cut(section, "\n")
		want[title] = strings.TrimSpace(text)
	}
	var all strings.Builder
	for _, s := range scripts {
		schemes := s.schemes
		if schemes == nil {
			schemes = []string{"tcp", "unix", "tcp-net", "unix-net"}
		}
		for _, scheme := range schemes {
			title := s.name + ", " + scheme
			t.Run(title, func(t *testing.T) {
				got := play(t, serve, scheme, s)
				if *record {
					fmt.Fprintf(&all, "%s\n%s\n\n", title, got)
				} else if got != want[title] {
					t.Errorf("%s\nwant:\n%s", got, want[title])
				}
			})
		}
	}
	if *record && *useOriginal && !t.Failed() {
		if err := os.WriteFile(recorded, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A script is a server and what its clients do.
type script struct {
	name    string
	schemes []string // nil: all of streams
	events  func(*world, *evio.Events)
	clients func(*world)
	stops   bool // the server stops without a signal
}

// answers makes Data return what a line of input asks for.
func answers(what map[string]func() ([]byte, evio.Action)) func(*world, *evio.Events) {
	return func(w *world, e *evio.Events) {
		e.Data = func(c evio.Conn, in []byte) ([]byte, evio.Action) {
			w.note("data %v %q", c.Context(), in)
			if f := what[string(in)]; f != nil {
				return f()
			}
			return in, evio.None
		}
	}
}

// long is more than a socket's buffer holds.
var long = strings.Repeat("0123456789", 1<<20)

var scripts = []script{
	{name: "echo", clients: func(w *world) {
		a, b := w.dial(0), w.dial(0)
		w.await("opened 1 at 0 from " + addrType(w))
		a.say("hello")
		a.hear(5)
		b.say("you")
		b.hear(3)
		a.Close()
		w.await("closed 0, <nil>")
		b.say("again")
		b.hear(5)
		b.closeWrite()
		b.end()
		w.await("closed 1, <nil>")
	}},
	{name: "addresses", events: func(w *world, e *evio.Events) { e.NumLoops = 3 }, clients: func(w *world) {
		b := w.dial(1)
		w.await("opened 0 at 1 from " + addrType(w))
		b.say("to b")
		b.hear(4)
		b.Close()
		w.await("closed 0, <nil>")
	}},
	{name: "greeting", events: func(w *world, e *evio.Events) {
		e.Opened = func(c evio.Conn) ([]byte, evio.Options, evio.Action) {
			w.open(c)
			return []byte("hello\n"), evio.Options{TCPKeepAlive: time.Minute, ReuseInputBuffer: true}, evio.None
		}
	}, clients: func(w *world) {
		c := w.dial(0)
		c.hear(6)
		c.say("x")
		c.hear(1)
		c.Close()
		w.await("closed 0, <nil>")
	}},
	{name: "refuses", events: func(w *world, e *evio.Events) {
		e.Opened = func(c evio.Conn) ([]byte, evio.Options, evio.Action) {
			w.open(c)
			return []byte("go away\n"), evio.Options{}, evio.Close
		}
	}, clients: func(w *world) {
		c := w.dial(0)
		w.await("closed 0, <nil>") // though the client has not closed
		c.end()
	}},
	{name: "closes", events: answers(map[string]func() ([]byte, evio.Action){
		"bye": func() ([]byte, evio.Action) { return []byte("bye"), evio.Close },
	}), clients: func(w *world) {
		c := w.dial(0)
		c.say("hello")
		c.hear(5)
		c.say("bye")
		w.await("closed 0, <nil>")
		c.end()
	}},
	{name: "closes a slow one", events: answers(map[string]func() ([]byte, evio.Action){
		"all": func() ([]byte, evio.Action) { return []byte(long), evio.Close },
	}), clients: func(w *world) {
		c := w.dial(0)
		c.say("all")
		w.await(`data 0 "all"`)
		time.Sleep(30 * time.Millisecond) // time for a Closed that comes too early
		w.note("the client begins to read")
		c.end()
		w.await("closed 0, <nil>")
	},
		// With -net the original's loop blocks until the client has read.
		schemes: []string{"tcp", "unix"}},
	{name: "half-closed", clients: func(w *world) {
		c := w.dial(0)
		c.say("question")
		c.closeWrite()
		c.end()
		w.await("closed 0, <nil>")
	}},
	{name: "half-closed and slow", events: answers(map[string]func() ([]byte, evio.Action){
		"all": func() ([]byte, evio.Action) { return []byte(long[:250<<10]), evio.None }, // the server still reads
	}), clients: func(w *world) {
		c := w.dial(0)
		c.say("all")
		w.await(`data 0 "all"`)
		c.closeWrite()
		time.Sleep(30 * time.Millisecond) // time for a Closed that comes too early
		w.note("the client begins to read")
		c.end()
		w.await("closed 0, <nil>")
	}, schemes: []string{"unix", "unix-net"}},
	{name: "only data", events: func(w *world, e *evio.Events) { e.Opened, e.Closed = nil, nil }, clients: func(w *world) {
		c := w.dial(0)
		c.say("x")
		c.hear(1)
		c.Close()
	}},
	{name: "no data", events: func(w *world, e *evio.Events) { e.Data = nil }, clients: func(w *world) {
		c := w.dial(0)
		c.say("nobody listens")
		c.closeWrite()
		c.end()
		w.await("closed 0, <nil>")
	}},
	{name: "wake", events: func(w *world, e *evio.Events) {
		wakes := 0
		e.Data = func(c evio.Conn, in []byte) ([]byte, evio.Action) {
			w.note("data %v %q %v", c.Context(), in, in == nil)
			if in != nil {
				go c.Wake() // -net: on the loop it would never return
				return nil, evio.None
			}
			if wakes++; wakes == 2 {
				return []byte("closing"), evio.Close
			}
			return []byte("awake"), evio.None
		}
	}, clients: func(w *world) {
		c := w.dial(0)
		c.say("a")
		c.hear(5)
		c.say("b")
		c.end()
		w.await("closed 0, <nil>")
	}},
	{name: "detach", events: func(w *world, e *evio.Events) {
		answers(map[string]func() ([]byte, evio.Action){
			"detach": func() ([]byte, evio.Action) { return []byte("detached\n"), evio.Detach },
		})(w, e)
		e.Detached = func(c evio.Conn, rwc io.ReadWriteCloser) evio.Action {
			w.note("detached %v", c.Context())
			go func() {
				defer rwc.Close()
				io.WriteString(rwc, "from a goroutine\n")
				io.Copy(rwc, rwc)
			}()
			return evio.None
		}
	}, clients: func(w *world) {
		c := w.dial(0)
		c.say("x")
		c.hear(1)
		c.say("detach")
		c.hear(len("detached\nfrom a goroutine\n"))
		c.say("hello")
		c.hear(5)
		c.closeWrite()
		c.end()
	}},
	{name: "detach at once", events: func(w *world, e *evio.Events) {
		e.Opened = func(c evio.Conn) ([]byte, evio.Options, evio.Action) {
			w.open(c)
			return []byte("detached\n"), evio.Options{}, evio.Detach
		}
		e.Detached = func(c evio.Conn, rwc io.ReadWriteCloser) evio.Action {
			w.note("detached %v", c.Context())
			io.WriteString(rwc, "bye\n")
			rwc.Close()
			return evio.Shutdown
		}
	}, clients: func(w *world) { w.dial(0).end() }, stops: true},
	{name: "detach for nobody", events: answers(map[string]func() ([]byte, evio.Action){
		"detach": func() ([]byte, evio.Action) { return []byte("no"), evio.Detach },
	}), clients: func(w *world) {
		c := w.dial(0)
		c.say("detach")
		w.await("closed 0, <nil>")
		c.end()
	}},
	{name: "reset", clients: func(w *world) {
		c := w.dial(0)
		c.say("x")
		c.hear(1)
		c.Conn.(*net.TCPConn).SetLinger(0)
		c.Close()
		w.await("closed 0, connection reset by peer")
	}, schemes: []string{"tcp"}},
	{name: "shutdown by data", events: answers(map[string]func() ([]byte, evio.Action){
		"stop": func() ([]byte, evio.Action) { return []byte("OK"), evio.Shutdown },
	}), clients: func(w *world) {
		c := w.dial(0)
		c.say("stop")
		c.end()
	}, stops: true},
	{name: "shutdown by opened", events: func(w *world, e *evio.Events) {
		e.Opened = func(c evio.Conn) ([]byte, evio.Options, evio.Action) {
			w.open(c)
			return []byte("bye"), evio.Options{}, evio.Shutdown
		}
	}, clients: func(w *world) { w.dial(0).end() }, stops: true},
	{name: "shutdown by closed", events: func(w *world, e *evio.Events) {
		e.Closed = func(c evio.Conn, err error) evio.Action {
			w.note("closed %v, %v", c.Context(), err)
			return evio.Shutdown
		}
	}, clients: func(w *world) { w.dial(0).Close() }, stops: true},
	{name: "shutdown by serving", events: func(w *world, e *evio.Events) {
		e.Serving = func(evio.Server) evio.Action { return evio.Shutdown }
	}, stops: true},
	{name: "early", events: func(w *world, e *evio.Events) {
		e.Serving = func(evio.Server) evio.Action {
			c := w.dial(0)
			c.say("early")
			c.closeWrite()
			time.Sleep(20 * time.Millisecond) // time for events that must not happen yet
			w.note("serving ends")
			go func() {
				defer c.Close()
				io.Copy(io.Discard, c)
			}()
			return evio.None
		}
	}, clients: func(w *world) { w.await("closed 0, <nil>") }},
	{name: "early datagrams", events: func(w *world, e *evio.Events) {
		e.Serving = func(evio.Server) evio.Action {
			c := w.dial(0)
			c.say("early")
			time.Sleep(20 * time.Millisecond)
			w.note("serving ends")
			go func() {
				c.hear(5)
				w.note("the answer came")
			}()
			return evio.None
		}
	}, clients: func(w *world) { w.await("the answer came") }, schemes: []string{"udp", "udp-net"}},
	{name: "shutdown by tick", events: func(w *world, e *evio.Events) {
		ticks := 0
		e.Tick = func() (time.Duration, evio.Action) {
			w.note("tick")
			if ticks++; ticks == 5 {
				return never, evio.Shutdown
			}
			return 0, evio.None
		}
	}, stops: true},
	{name: "shutdown with clients", clients: func(w *world) {
		c := w.dial(0)
		w.await("opened 0 at 0 from " + addrType(w))
		w.stop.Store(true)
		w.await("closed 0, <nil>")
		w.await("served, <nil>") // though the client has not closed
		c.end()
	}},
	{name: "prewrite", events: func(w *world, e *evio.Events) {
		e.PreWrite = func() { w.note("prewrite") }
		e.Opened = func(c evio.Conn) ([]byte, evio.Options, evio.Action) {
			w.open(c)
			return []byte("hello\n"), evio.Options{}, evio.None
		}
	}, clients: func(w *world) {
		c := w.dial(0)
		c.hear(6)
		c.say("x")
		c.hear(1)
		c.Close()
		w.await("closed 0, <nil>")
	}},
	{name: "datagrams", events: func(w *world, e *evio.Events) {
		e.PreWrite = func() { w.note("prewrite") }
		e.Data = func(c evio.Conn, in []byte) ([]byte, evio.Action) {
			w.note("data %v %q at %d", c.Context(), in, c.AddrIndex())
			c.SetContext("ignored")
			c.Wake()
			switch string(in) {
			case "close":
				return in, evio.Close
			case "stop":
				return in, evio.Shutdown
			}
			return in, evio.None
		}
	}, clients: func(w *world) {
		a, b := w.dial(0), w.dial(1)
		a.say("hello")
		a.hear(5)
		b.say("close")
		b.hear(5)
		b.say("stop")
		b.hear(4)
	}, schemes: []string{"udp", "udp-net"}, stops: true},
}

// addrType is the type of a stream's RemoteAddr.
func addrType(w *world) string {
	if w.addrs[0].Network() == "unix" {
		return "*net.UnixAddr"
	}
	return "*net.TCPAddr"
}
