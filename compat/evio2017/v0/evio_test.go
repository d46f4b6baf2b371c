package evio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// Wake calls Data with nil, once for all Wakes that came before the call, and tells
// whether the connection exists.
func TestWake(t *testing.T) {
	onStreams(t, func(t *testing.T, scheme string) {
		var server Server
		var mu sync.Mutex
		answers := map[int]string{}
		var calls atomic.Int32
		w := serve(t, Events{
			Serving: func(s Server) Action {
				server = s
				if s.Wake(1) {
					t.Error("a connection could be woken before there was one")
				}
				return None
			},
			Opened: func(id int, _ Info) ([]byte, Options, Action) {
				for range 3 {
					if !server.Wake(id) {
						t.Error("Opened cannot wake its connection")
					}
				}
				return nil, Options{}, None
			},
			Data: func(id int, in []byte) ([]byte, Action) {
				if in != nil {
					text := string(in)
					go func() {
						mu.Lock()
						answers[id] += text
						mu.Unlock()
						server.Wake(id)
					}()
					return nil, None
				}
				calls.Add(1)
				mu.Lock()
				defer mu.Unlock()
				out := answers[id]
				answers[id] = ""
				return []byte(out), None
			},
		}, at(t, scheme))
		c := w.dial(0)
		for i := range 200 {
			line := fmt.Sprintf("line %d\n", i)
			say(t, c, line)
			hear(t, c, line)
		}
		if n := calls.Load(); n > 201 {
			t.Errorf("Data was called %d times with nil for 201 wakes and 2 more", n)
		}
		c.Close()
		w.await("closed 1")
		if server.Wake(1) || server.Wake(2) {
			t.Error("a connection could be woken that does not exist")
		}
		w.stop.Store(true)
		w.end()
		if server.Wake(1) {
			t.Error("a connection could be woken after the end")
		}
	})
}

// Wakes of a connection whose peer reads nothing wait, and others are served.
func TestWakesWait(t *testing.T) {
	chunk := make([]byte, 64<<10)
	var made atomic.Int64
	var server Server
	w := serve(t, Events{
		Serving: func(s Server) Action { server = s; return None },
		Data: func(id int, in []byte) ([]byte, Action) {
			if id == 2 {
				return in, None
			}
			server.Wake(id)
			made.Add(1)
			return chunk, None
		},
	}, "tcp://127.0.0.1:0")
	slow := w.dial(0)
	w.await("opened 1")
	say(t, slow, "go")
	quick := w.dial(0)
	for range 200 {
		say(t, quick, "ping")
		hear(t, quick, "ping")
	}
	time.Sleep(20 * time.Millisecond)
	before := made.Load()
	if before > 1<<10 {
		t.Errorf("%d MB of output were made for a peer that takes none", before>>4)
	}
	if _, err := io.CopyN(io.Discard, slow, 64<<20); err != nil {
		t.Error(err)
	}
}

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

// A detached connection belongs to the program, with what the peer sent too early.
func TestDetach(t *testing.T) {
	onStreams(t, func(t *testing.T, scheme string) {
		w := serve(t, Events{
			Data: func(_ int, in []byte) ([]byte, Action) { return append(in, '!'), Detach },
			Detached: func(_ int, rwc io.ReadWriteCloser) Action {
				go func() {
					defer rwc.Close()
					io.WriteString(rwc, "from a goroutine\n")
					io.Copy(rwc, rwc)
				}()
				return None
			},
		}, at(t, scheme))
		c := w.dial(0)
		say(t, c, "away")
		hear(t, c, "away!from a goroutine\n")
		say(t, c, "echo")
		hear(t, c, "echo")
		c.(interface{ CloseWrite() error }).CloseWrite()
		hearEnd(t, c)
		w.stop.Store(true)
		w.end()
		w.wantLog("opened 1 at 0", "detached 1")
	})
}

// Without Detached the action Detach closes.
func TestDetachForNobody(t *testing.T) {
	w := serve(t, Events{Data: func(_ int, in []byte) ([]byte, Action) { return in, Detach }}, "tcp://127.0.0.1:0")
	c := w.dial(0)
	say(t, c, "x")
	hear(t, c, "x")
	hearEnd(t, c)
	w.await("closed 1, <nil>")
}

// Dial connects from any goroutine, and from Serving, to TCP and unix sockets. The
// connection can be woken at once.
func TestDial(t *testing.T) {
	onStreams(t, func(t *testing.T, scheme string) {
		there := serve(t, Events{Data: echo}, at(t, scheme))
		to := strings.TrimSuffix(scheme, "-net") + "://" + there.server.Addrs[0].String()
		got := make(chan string, 10)
		w := serve(t, Events{
			Serving: func(s Server) Action {
				if id := s.Dial(to, 0); id != 1 || !s.Wake(id) {
					t.Error("Dial in Serving has id", id)
				}
				return None
			},
			Opened: func(id int, info Info) ([]byte, Options, Action) {
				if info.LocalAddr == nil || info.RemoteAddr.String() != there.server.Addrs[0].String() {
					t.Errorf("%+v", info)
				}
				return fmt.Appendf(nil, "from %d", id), Options{}, None
			},
			Data: func(id int, in []byte) ([]byte, Action) {
				if in == nil {
					return []byte(", woken"), None
				}
				got <- string(in)
				return nil, None
			},
		}) // no address
		var text string
		for text != "from 1, woken" {
			select {
			case s := <-got:
				text += s
			case <-time.After(patience):
				t.Fatalf("got %q", text)
			}
		}
		if id := w.server.Dial(to, patience); id != 2 {
			t.Error("the second Dial has id", id)
		}
		if s := <-got; s != "from 2" {
			t.Errorf("got %q", s)
		}
		there.stop.Store(true)
		there.end()
		w.await("closed 1")
		w.await("closed 2")
		w.stop.Store(true)
		w.end()
		if id := w.server.Dial(to, 0); id != 0 {
			t.Error("Dial after the end has id", id)
		}
		w.wantPairs()
		there.wantPairs()
	})
}

// A Dial that fails has one Opened, which says so, and one Closed with the error.
func TestDialFails(t *testing.T) {
	for _, suffix := range []string{"", "-net"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nobody := "tcp://" + ln.Addr().String()
		ln.Close()
		errs := make(chan error, 1)
		w := serve(t, Events{Closed: func(_ int, err error) Action { errs <- err; return None }}, "tcp"+suffix+"://127.0.0.1:0")
		for i, test := range []struct {
			addr    string
			timeout time.Duration
			want    func(error) bool
		}{
			{nobody, 0, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
			{nobody, time.Minute, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
			{nobody, -1, func(err error) bool {
				if suffix == "" && err == syscall.ECONNREFUSED || errors.Is(err, syscall.ECONNREFUSED) {
					return true // it was quicker
				}
				var n net.Error
				return err == syscall.ETIMEDOUT || suffix != "" && errors.As(err, &n) && n.Timeout()
			}},
			{"tulip://howdy", 0, func(err error) bool { return err != nil && strings.Contains(err.Error(), "tulip") }},
			{"tcp://howdy", 0, func(err error) bool { return err != nil && strings.Contains(err.Error(), "howdy") }},
			{"unix:///nowhere/socket", 0, func(err error) bool { return errors.Is(err, syscall.ENOENT) }},
		} {
			if id := w.server.Dial(test.addr, test.timeout); id != i+1 {
				t.Errorf("%s has id %d", test.addr, id)
			}
			select {
			case err := <-errs:
				if _, number := err.(syscall.Errno); !test.want(err) || suffix == "" && errors.As(err, new(syscall.Errno)) != number {
					t.Errorf("Dial(%s, %v)%s: %v (%T)", test.addr, test.timeout, suffix, err, err)
				}
			case <-time.After(patience):
				t.Fatal("no Closed for", test.addr)
			}
			w.await(fmt.Sprintf("closing %d at -1", i+1))
		}
		w.wantPairs()
	}
}

// Dials that are under way when the server ends have Opened and Closed too.
func TestShutdownOfDials(t *testing.T) {
	there := serve(t, Events{}, "tcp://127.0.0.1:0")
	to := "tcp://" + there.server.Addrs[0].String()
	for range 20 {
		w := serve(t, Events{
			Serving: func(s Server) Action {
				for range 10 {
					s.Dial(to, 0)
				}
				return None
			},
			Opened: func(id int, info Info) ([]byte, Options, Action) {
				if id == 5 {
					return nil, Options{}, Shutdown
				}
				return nil, Options{}, None
			},
		})
		w.end()
		w.wantPairs()
		if n := len(w.events()); n != 20 {
			t.Errorf("%d events of 20: %q", n, w.events())
		}
	}
}

// Peers of datagrams have an id each until they are closed.
func TestDatagrams(t *testing.T) {
	for _, scheme := range []string{"udp", "udp-net", "udp4"} {
		t.Run(scheme, func(t *testing.T) {
			var w *world
			var before, after int
			w = serve(t, Events{
				Opened: func(id int, info Info) ([]byte, Options, Action) {
					if _, ok := info.RemoteAddr.(*net.UDPAddr); !ok {
						t.Errorf("the peer is a %T", info.RemoteAddr)
					}
					return fmt.Appendf(nil, "hello %d", id), Options{}, None
				},
				Data: func(id int, in []byte) ([]byte, Action) {
					switch string(in) {
					case "close":
						return []byte("bye"), Close
					case "stop":
						return []byte("bye"), Shutdown
					}
					return fmt.Appendf(nil, "%d: %s", id, in), None
				},
				Prewrite:  func(id, amount int) Action { before += amount; return None },
				Postwrite: func(id, amount, remaining int) Action { after += amount + remaining; return None },
			}, scheme+"://127.0.0.1:0")
			a, b := w.dial(0), w.dial(0)
			ask := func(c net.Conn, question string, answers ...string) {
				t.Helper()
				say(t, c, question)
				p := make([]byte, 100)
				for _, want := range answers {
					if n, err := c.Read(p); string(p[:n]) != want {
						t.Fatalf("%q: got %q, %v, want %q", question, p[:n], err, want)
					}
				}
			}
			ask(a, "x", "hello 1", "1: x")
			ask(b, "y", "hello 2", "2: y")
			if w.server.Wake(1) {
				t.Error("a peer of datagrams could be woken")
			}
			ask(a, "close", "bye")
			ask(a, "z", "hello 3", "3: z")
			ask(b, "stop", "bye")
			w.end()
			w.wantPairs()
			if want := len("hello 1") + len("1: x"); before != 3*want+2*3 || after != before {
				t.Errorf("%d bytes before writes, %d after", before, after)
			}
		})
	}
}

// Only so many peers are remembered; the one that has been silent longest goes.
func TestPeersAreBounded(t *testing.T) {
	var p peers
	key := func(i int) peer { return peer{index: i} }
	for i := 1; i <= maxPeers; i++ {
		if old := p.add(key(i), i); old != 0 {
			t.Fatalf("%d goes at %d", old, i)
		}
	}
	p.find(key(1))
	if old := p.add(key(0), 0); old != 2 {
		t.Errorf("%d goes", old)
	}
	if _, ok := p.find(key(2)); ok || len(p.all()) != maxPeers {
		t.Errorf("%d peers are left", len(p.all()))
	}
	p.remove(key(1))
	if _, ok := p.find(key(1)); ok {
		t.Error("a peer was not removed")
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
