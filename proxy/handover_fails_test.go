//go:build unix

package proxy_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// A stranger is the other process of an upgrade, which does what a test says.
type stranger struct {
	t      *testing.T
	engine *rondo.Engine
	loop   *rondo.Loop
	ch     *fdpass.Channel
	answer func(kind string) // on the loop, for each message

	mu    sync.Mutex
	kinds []string
	ended bool
}

func newStranger(t *testing.T, backend string, nc *net.UnixConn) *stranger {
	t.Helper()
	s := &stranger{t: t, engine: &rondo.Engine{Backend: backend, NumLoops: 1}, answer: func(string) {}}
	if err := s.engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.engine.Close() })
	for l := range s.engine.Loops() {
		s.loop = l
	}
	s.do(func() {
		var err error
		if s.ch, err = fdpass.New(s.loop, nc, s); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *stranger) do(f func()) {
	done := make(chan struct{})
	if s.loop.Post(func() { defer close(done); f() }) == nil {
		<-done
	}
}

// Message notes a message, and closes its files.
func (s *stranger) Message(_ *fdpass.Channel, in *fdpass.Message) {
	var m struct{ Kind string }
	if err := json.Unmarshal(in.Data[4:4+binary.BigEndian.Uint32(in.Data)], &m); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.kinds = append(s.kinds, m.Kind)
	s.mu.Unlock()
	s.answer(m.Kind)
}

func (s *stranger) Closed(*fdpass.Channel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// said returns the kinds of the messages that have come.
func (s *stranger) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.kinds, " ")
}

func (s *stranger) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// say sends a message; it is called on the loop. text is JSON, rest follows it.
func (s *stranger) say(text, rest string, files ...syscall.Conn) {
	data := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	s.ch.Send(append(append(data, text...), rest...), nil, files...)
}

// talkers are connections through a proxy.
func talkers(t *testing.T, g *generation, conns chan *net.TCPConn, n int) (clients, targets []*net.TCPConn) {
	t.Helper()
	for range n {
		c := testkit.Dial(t, g.Addrs()[0].String())
		say(t, c, "a")
		target := <-conns
		hear(t, target, "a")
		clients, targets = append(clients, c), append(targets, target)
	}
	return clients, targets
}

// handOver calls HandOver, and wants it to return.
func handOver(t *testing.T, g *generation, limit time.Duration, nc *net.UnixConn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- g.HandOver(ctx, nc) }()
	select {
	case err := <-result:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("HandOver does not return")
	}
	return nil
}

// goesOn wants a proxy to serve new clients and these old ones.
func goesOn(t *testing.T, g *generation, conns chan *net.TCPConn, clients, targets []*net.TCPConn) {
	t.Helper()
	for i, c := range clients {
		say(t, c, "b")
		hear(t, targets[i], "b")
		say(t, targets[i], "c")
		hear(t, c, "c")
	}
	talkers(t, g, conns, 1)
}

// A new process that gets the first connections and then takes nothing: the old one goes on.
func TestHandOverStalls(t *testing.T) {
	proxy.SetPatience(t, 500*time.Millisecond)
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		old := newGeneration(t, backend, 2)
		if err := old.Apply(configOf("127.0.0.1:0", address)); err != nil {
			t.Fatal(err)
		}
		clients, targets := talkers(t, old, conns, 40)
		ends := sockets(t)
		ends[0].SetWriteBuffer(1)
		other := newStranger(t, backend, ends[1])
		hold := make(chan struct{})
		defer close(hold)
		other.answer = func(kind string) {
			if kind == "sockets" {
				other.say(`{"Kind":"ready"}`, "")
			}
			if kind == "pair" {
				<-hold
			}
		}
		other.do(func() { other.say(`{"Kind":"hello","Version":2,"Name":"rondo proxy"}`, "") })
		if err := handOver(t, old, time.Minute, ends[0]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("HandOver: %v; want that the other process takes nothing", err)
		}
		open := int(old.Stats().Pools[0].Targets[0].Open)
		var left [2][]*net.TCPConn
		var mu sync.Mutex // for left
		var all sync.WaitGroup
		for i, c := range clients {
			say(t, c, "x")
			all.Add(1)
			go func() {
				defer all.Done()
				targets[i].SetReadDeadline(time.Now().Add(3 * time.Second))
				if n, _ := targets[i].Read(make([]byte, 1)); n > 0 {
					mu.Lock()
					defer mu.Unlock()
					left[0], left[1] = append(left[0], c), append(left[1], targets[i])
				}
			}()
		}
		all.Wait()
		if len(left[0]) < 20 || len(left[0]) != open {
			t.Errorf("%d of %d connections go on, and the target has %d", len(left[0]), len(clients), open)
		}
		goesOn(t, old, conns, left[0], left[1])
	})
}

// slowResolver answers when it may.
type slowResolver struct{ may chan struct{} }

func (r slowResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	<-r.may
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// The new process is ready when the old one waits no more. Only one of them may go on.
func TestHandOverTooLate(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		old := newGeneration(t, backend, 2)
		if err := old.Apply(configOf("127.0.0.1:0", address)); err != nil {
			t.Fatal(err)
		}
		clients, targets := talkers(t, old, conns, 3)
		next := newGeneration(t, backend, 1)
		slow := slowResolver{make(chan struct{})}
		next.Engine.Resolver = slow
		_, port, _ := net.SplitHostPort(address)
		took := make(chan error, 1)
		ends := sockets(t)
		go func() { took <- next.TakeOver(t.Context(), ends[1], configOf("127.0.0.1:0", "name.example:"+port)) }()
		if err := handOver(t, old, 50*time.Millisecond, ends[0]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("HandOver: %v", err)
		}
		close(slow.may)
		if err := <-took; err == nil || !strings.Contains(err.Error(), "goes on: ") {
			t.Errorf("both processes serve; TakeOver: %v", err)
		}
		for range 10 {
			goesOn(t, old, conns, clients, targets)
		}
		if n := next.Engine.Stats().Accepted; n > 0 {
			t.Errorf("the process that was too late has %d clients", n)
		}
	})
}

// The new process gets all and does not say so. The old one goes on, and tells it.
func TestHandOverWithoutDone(t *testing.T) {
	proxy.SetPatience(t, time.Second)
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		old := newGeneration(t, backend, 2)
		if err := old.Apply(configOf("127.0.0.1:0", address)); err != nil {
			t.Fatal(err)
		}
		ends := sockets(t)
		other := newStranger(t, backend, ends[1])
		other.answer = func(kind string) {
			if kind == "sockets" {
				other.say(`{"Kind":"ready"}`, "")
			}
		}
		other.do(func() { other.say(`{"Kind":"hello","Version":2,"Name":"rondo proxy"}`, "") })
		if err := handOver(t, old, time.Minute, ends[0]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("HandOver: %v", err)
		}
		testkit.Until(t, "the end", other.isOver)
		if said := other.said(); said != "socket sockets end back" {
			t.Errorf("the old process said: %s", said)
		}
		goesOn(t, old, conns, nil, nil)
		if err := old.Apply(configOf("127.0.0.1:0", address)); err != nil {
			t.Error(err)
		}
	})
}

// What a new process may say wrongly: the old one goes on.
func TestHandOverToAStranger(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		old := newGeneration(t, backend, 2)
		if err := old.Apply(configOf("127.0.0.1:0", address)); err != nil {
			t.Fatal(err)
		}
		clients, targets := talkers(t, old, conns, 2)
		const hello = `{"Kind":"hello","Version":2,"Name":"rondo proxy"}`
		for what, says := range map[string][]string{
			"another version": {`{"Kind":"hello","Version":1,"Name":"rondo proxy"}`},
			"another server":  {`{"Kind":"hello","Version":2,"Name":"rondo http"}`},
			"ready at once":   {`{"Kind":"ready"}`},
			"done at once":    {hello, `{"Kind":"done"}`},
			"a client":        {hello, `{"Kind":"client"}`},
			"no kind":         {hello, `{}`},
			"no JSON":         {hello, `{"Kind"`},
			"a kind to come":  {`{"Kind":"ask"}`},
		} {
			ends := sockets(t)
			other := newStranger(t, backend, ends[1])
			other.do(func() {
				for _, text := range says {
					other.say(text, "")
				}
			})
			if err := handOver(t, old, time.Minute, ends[0]); err == nil {
				t.Errorf("%s: the stranger has taken over", what)
			}
			testkit.Until(t, "the end", other.isOver)
		}
		goesOn(t, old, conns, clients, targets)
		if n := old.Engine.Stats().Panics; n > 0 {
			t.Errorf("%d panics", n)
		}
	})
}

// What an old process may say wrongly: the new one does not start, and keeps nothing.
func TestTakeOverFromAStranger(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, _ := plainTarget(t)
		config := configOf("127.0.0.1:0", address)
		for what, says := range map[string][][2]string{
			"nothing":                {},
			"a pair at once":         {{`{"Kind":"pair"}`}},
			"a client at once":       {{`{"Kind":"client"}`}},
			"the end at once":        {{`{"Kind":"end"}`}},
			"a half listener":        {{`{"Kind":"socket","Key":"tcp|127.0.0.1:0","More":true}`}, {`{"Kind":"sockets"}`}},
			"listeners twice":        {{`{"Kind":"sockets"}`}, {`{"Kind":"sockets"}`}},
			"a late listener":        {{`{"Kind":"sockets"}`}, {`{"Kind":"socket"}`}},
			"hello":                  {{`{"Kind":"hello","Version":2,"Name":"rondo proxy"}`}},
			"more bytes than come":   {{`{"Kind":"client","A":{"Unread":3}}`, "ab"}},
			"fewer bytes than come":  {{`{"Kind":"client","A":{"Unread":1}}`, "ab"}},
			"numbers below zero":     {{`{"Kind":"client","A":{"Unread":-1,"Unsent":3}}`, "ab"}},
			"another kind of value":  {{`{"Kind":7}`}},
			"it goes on, at once":    {{`{"Kind":"back","Why":"so"}`}},
			"it goes on, and is not": {{`{"Kind":"back","Why":"so"}`}, {`{"Kind":"sockets"}`}},
		} {
			ends := sockets(t)
			other := newStranger(t, backend, ends[0])
			f, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			other.do(func() {
				for _, m := range says {
					other.say(m[0], m[1], f, f)
				}
				other.ch.Close()
			})
			next := newGeneration(t, backend, 2)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if err := next.TakeOver(ctx, ends[1], config); err == nil {
				t.Errorf("%s: the new process serves", what)
			}
			cancel()
			if n := next.Engine.Stats().Panics; n > 0 {
				t.Errorf("%s: %d panics", what, n)
			}
			f.Close()
		}
	})
}

// An old process that says something wrong in the middle: the new one ends, since the old one
// lives and goes on.
func TestTakeOverFromAWrongOne(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, _ := plainTarget(t)
		for what, says := range map[string]string{
			"no sockets":       `{"Kind":"pair"}`,
			"no connections":   `{"Kind":"pair","Client":"nonsense","Age":-1,"Idle":-5,"Connected":9223372036854775807}`,
			"half of it":       `{"Kind":"client","B":{"Ended":true}}`,
			"what is not done": `{"Kind":"done"}`,
			"another listener": `{"Kind":"socket"}`,
		} {
			ends := sockets(t)
			other := newStranger(t, backend, ends[0])
			file, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			other.answer = func(kind string) {
				switch {
				case kind == "ready" && what == "no connections":
					other.say(says, "", file, file)
				case kind == "ready":
					other.say(says, "")
				}
			}
			other.do(func() { other.say(`{"Kind":"sockets"}`, "") })
			next := newGeneration(t, backend, 2)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if err := next.TakeOver(ctx, ends[1], configOf("127.0.0.1:0", address)); err == nil {
				t.Errorf("%s: the new process serves, too", what)
			}
			cancel()
			if s := next.Engine.Stats(); s.Panics > 0 || s.Open > 0 {
				t.Errorf("%s: %d panics, %d connections", what, s.Panics, s.Open)
			}
			file.Close()
		}
	})
}

// Close ends an upgrade whose new process is not ready.
func TestCloseBeforeReady(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, _ := plainTarget(t)
		path := filepath.Join(socketDir(t), "socket")
		config := configOf("", address)
		config.Listeners[0] = proxy.Listener{Network: "unix", Address: path}
		old := newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		ends := sockets(t)
		other := newStranger(t, backend, ends[1])
		listeners := make(chan struct{})
		other.answer = func(kind string) {
			if kind == "sockets" {
				close(listeners)
			}
		}
		other.do(func() { other.say(`{"Kind":"hello","Version":2,"Name":"rondo proxy"}`, "") })
		failed := make(chan error, 1)
		go func() { failed <- old.HandOver(t.Context(), ends[0]) }()
		<-listeners
		if err := old.Close(); err != nil {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("HandOver: %v", err)
		}
		testkit.Until(t, "the end", other.isOver)
		if said := other.said(); said != "socket sockets back" {
			t.Errorf("the old process said: %s", said)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket's file is still there: %v", err)
		}
	})
}

// socketDir is a directory with a short name.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rondo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Close in the middle of an upgrade waits for its end, so the new process has everything, and the
// file of its socket stays.
func TestCloseInTheMiddle(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		address, conns := plainTarget(t)
		path := filepath.Join(socketDir(t), "socket")
		config := configOf("", address)
		config.Listeners = append(config.Listeners[:0], proxy.Listener{Network: "tcp", Address: "127.0.0.1:0"}, proxy.Listener{Network: "unix", Address: path})
		old := newGeneration(t, backend, 2)
		if err := old.Apply(config); err != nil {
			t.Fatal(err)
		}
		clients, targets := talkers(t, old, conns, 50)
		next := newGeneration(t, backend, 2)
		ends := sockets(t)
		took := make(chan error, 1)
		go func() { took <- next.TakeOver(t.Context(), ends[1], config) }()
		gave := make(chan error, 1)
		go func() { gave <- old.HandOver(t.Context(), ends[0]) }()
		testkit.Until(t, "a connection has come", func() bool { return next.Engine.Stats().Open > 0 })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := old.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := errors.Join(<-gave, <-took); err != nil {
			t.Error(err)
		}
		goesOn(t, next, conns, clients, targets)
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		say(t, c, "a")
		hear(t, <-conns, "a")
	})
}

// The engine of either process ends in the middle: HandOver and TakeOver return, and nothing
// waits for ever.
func TestHandOverMeetsEngineClose(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		for _, which := range []string{"old", "new"} {
			address, conns := plainTarget(t)
			config := configOf("127.0.0.1:0", address)
			old, next := newGeneration(t, backend, 3), newGeneration(t, backend, 2)
			if err := old.Apply(config); err != nil {
				t.Fatal(err)
			}
			clients, targets := talkers(t, old, conns, 60)
			ends := sockets(t)
			took, gave := make(chan error, 1), make(chan error, 1)
			go func() { took <- next.TakeOver(t.Context(), ends[1], config) }()
			go func() { gave <- old.HandOver(t.Context(), ends[0]) }()
			testkit.Until(t, "a connection has come", func() bool { return next.Engine.Stats().Open > 0 })
			if which == "old" {
				old.Engine.Close()
			} else {
				next.Engine.Close()
			}
			for _, result := range []chan error{took, gave} {
				select {
				case <-result:
				case <-time.After(30 * time.Second):
					t.Fatalf("%s: an upgrade does not end", which)
				}
			}
			end := time.Now().Add(time.Second)
			for _, c := range clients {
				c.SetReadDeadline(end)
				if _, err := c.Read(make([]byte, 1)); err == io.EOF {
					t.Errorf("%s: a client reads the end of a stream that its target has not ended", which)
				}
			}
			runtime.KeepAlive(targets) // the collector would close them
			next.Engine.Close()
			old.Engine.Close()
		}
	})
}
