package evio

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Connections of several addresses have ids in the order in which they come, and one
// Opened and one Closed each.
func TestEvents(t *testing.T) {
	onStreams(t, func(t *testing.T, scheme string) {
		var remotes []net.Addr
		w := serve(t, Events{
			Opened: func(id int, info Info) ([]byte, Options, Action) {
				remotes = append(remotes, info.RemoteAddr)
				if info.LocalAddr == nil || info.RemoteAddr == nil {
					t.Errorf("addresses %v and %v", info.LocalAddr, info.RemoteAddr)
				}
				return fmt.Appendf(nil, "hello %d\n", id), Options{TCPKeepAlive: time.Minute}, None
			},
			Data: func(id int, in []byte) ([]byte, Action) {
				switch string(in) {
				case "close":
					return []byte("bye"), Close
				case "stop":
					return []byte("bye"), Shutdown
				}
				return in, None
			},
		}, at(t, scheme), at(t, scheme))
		a, b := w.dial(0), net.Conn(nil)
		hear(t, a, "hello 1\n")
		b = w.dial(1)
		hear(t, b, "hello 2\n")
		say(t, a, "echo")
		hear(t, a, "echo")
		c := w.dial(1)
		hear(t, c, "hello 3\n")
		c.Close()
		w.await("closed 3, <nil>")
		say(t, a, "close")
		hear(t, a, "bye")
		hearEnd(t, a)
		w.await("closed 1")
		d := w.dial(0)
		hear(t, d, "hello 4\n")
		say(t, d, "stop")
		hear(t, d, "bye")
		hearEnd(t, d)
		hearEnd(t, b)
		w.end()
		w.wantLog("opened 1 at 0", "opened 2 at 1", "opened 3 at 1", "closed 3, <nil>", "closed 1, <nil>",
			"opened 4 at 0", "closed 4, <nil>", "closed 2, <nil>")
		if strings.HasPrefix(scheme, "tcp") && remotes[0].String() != a.LocalAddr().String() {
			t.Errorf("the peer is %v, want %v", remotes[0], a.LocalAddr())
		}
	})
}

// Each event but Detached and Data, which others show, can end the server.
func TestShutdown(t *testing.T) {
	for name, events := range map[string]Events{
		"Serving":   {Serving: func(Server) Action { return Shutdown }},
		"Opened":    {Opened: func(int, Info) ([]byte, Options, Action) { return []byte("x"), Options{}, Shutdown }},
		"Closed":    {Closed: func(int, error) Action { return Shutdown }},
		"Tick":      {Tick: func() (time.Duration, Action) { return 0, Shutdown }},
		"Prewrite":  {Data: echo, Prewrite: func(int, int) Action { return Shutdown }},
		"Postwrite": {Data: echo, Postwrite: func(int, int, int) Action { return Shutdown }},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, events, "tcp://127.0.0.1:0")
			if c, err := net.Dial("tcp", w.server.Addrs[0].String()); err == nil {
				io.WriteString(c, "x")
				if name == "Closed" {
					c.Close()
				}
				defer c.Close()
			}
			w.end()
			w.wantPairs()
		})
	}
}

// Ticks begin at the start, and come after the delay that the last one returned.
func TestTick(t *testing.T) {
	n := 0
	begin := time.Now()
	w := serve(t, Events{Tick: func() (time.Duration, Action) {
		if n++; n == 10 {
			return time.Hour, Shutdown
		}
		return 5 * time.Millisecond, None
	}}, "tcp://127.0.0.1:0")
	w.end()
	if d := time.Since(begin); n != 10 || d < 45*time.Millisecond {
		t.Errorf("%d ticks in %v", n, d)
	}
}

// Data may keep its input, unless Opened asks for one buffer.
func TestReuseInputBuffer(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		var first []byte
		w := serve(t, Events{
			Opened: func(int, Info) ([]byte, Options, Action) { return nil, Options{ReuseInputBuffer: reuse}, None },
			Data: func(_ int, in []byte) ([]byte, Action) {
				if first == nil {
					first = in
					return in, None
				}
				return in, Shutdown
			},
		}, "tcp://127.0.0.1:0")
		c := w.dial(0)
		for _, s := range []string{"packet1", "packet2"} {
			say(t, c, s)
			hear(t, c, s)
		}
		w.end()
		if !reuse && string(first) != "packet1" {
			t.Errorf("the first input has become %q", first)
		}
	}
}

// Serve reports addresses that cannot be listened on, and leaves none open.
func TestServeFails(t *testing.T) {
	for _, addr := range []string{"tulip://howdy", "howdy", "tcp://127.0.0.1:x", "udp://nowhere.invalid:1"} {
		free := at(t, "unix")
		if err := Serve(Events{}, free, addr); err == nil {
			t.Errorf("Serve on %q succeeds", addr)
		}
		if c, err := net.Dial("unix", strings.TrimPrefix(free, "unix://")); err == nil {
			c.Close()
			t.Errorf("%q: the other address is served", addr)
		}
	}
	w := serve(t, Events{}, "tcp://localhost:0")
	w.dial(0)
	w.await("opened 1")
}
