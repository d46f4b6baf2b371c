package suite

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo/compat/evio"
	original "github.com/tidwall/evio"
)

// serveOriginal is the original's Serve with compat/evio's types. A Conn of one package is
// also a Conn of the other.
func serveOriginal(events evio.Events, addrs ...string) error {
	e := original.Events{NumLoops: events.NumLoops, LoadBalance: original.LoadBalance(events.LoadBalance), PreWrite: events.PreWrite}
	if f := events.Serving; f != nil {
		e.Serving = func(s original.Server) original.Action { return original.Action(f(evio.Server(s))) }
	}
	if f := events.Opened; f != nil {
		e.Opened = func(c original.Conn) ([]byte, original.Options, original.Action) {
			out, o, a := f(c)
			return out, original.Options(o), original.Action(a)
		}
	}
	if f := events.Closed; f != nil {
		e.Closed = func(c original.Conn, err error) original.Action { return original.Action(f(c, err)) }
	}
	if f := events.Detached; f != nil {
		e.Detached = func(c original.Conn, rwc io.ReadWriteCloser) original.Action { return original.Action(f(c, rwc)) }
	}
	if f := events.Data; f != nil {
		e.Data = func(c original.Conn, in []byte) ([]byte, original.Action) {
			out, a := f(c, in)
			return out, original.Action(a)
		}
	}
	if f := events.Tick; f != nil {
		e.Tick = func() (time.Duration, original.Action) {
			d, a := f()
			return d, original.Action(a)
		}
	}
	return original.Serve(e, addrs...)
}

// A world is one server in one run of a script, and its log: events write to it with note,
// clients with tell.
type world struct {
	t      testing.TB
	addrs  []net.Addr
	opened int
	stop   atomic.Bool // makes Tick shut the server down

	mu     sync.Mutex
	server []string
	client []string
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = append(w.server, fmt.Sprintf(format, args...))
}

func (w *world) tell(format string, args ...any) {
	w.client = append(w.client, fmt.Sprintf(format, args...))
}

const (
	patience = 2 * time.Minute
	never    = time.Hour
)

// await waits until an event has noted line.
func (w *world) await(line string) {
	w.t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		found := slices.Contains(w.server, line)
		w.mu.Unlock()
		if found {
			return
		}
	}
	w.t.Errorf("%q did not happen; %q did", line, w.server)
	w.stop.Store(true)
}

// dial connects to the i-th address.
func (w *world) dial(i int) client {
	w.t.Helper()
	c, err := net.Dial(w.addrs[i].Network(), w.addrs[i].String())
	if err != nil {
		w.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return client{w, c}
}

type client struct {
	w *world
	net.Conn
}

func (c client) say(s string) { io.WriteString(c, s) }

// hear reads and tells the next n bytes.
func (c client) hear(n int) {
	p := make([]byte, n)
	n, err := io.ReadFull(c, p)
	c.w.tell("got %q, %v", p[:n], err)
}

// end reads and tells everything until the end of the stream, and closes.
func (c client) end() {
	b, err := io.ReadAll(c)
	c.w.tell("got %d bytes %.40q and the end, %s", len(b), b, kind(err))
	c.Close()
}

func (c client) closeWrite() { c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// kind returns the part of an error that is the same on every path.
func kind(err error) string {
	var number interface {
		error
		Temporary() bool
	}
	if errors.As(err, &number) {
		return fmt.Sprint(number)
	}
	return fmt.Sprint(err)
}

// noting returns the events that every script starts from: they note what happens, number the
// connections, and echo.
func (w *world) noting() evio.Events {
	return evio.Events{
		Opened: func(c evio.Conn) ([]byte, evio.Options, evio.Action) {
			w.open(c)
			return nil, evio.Options{}, evio.None
		},
		Data: func(c evio.Conn, in []byte) ([]byte, evio.Action) {
			w.note("data %v %q", c.Context(), in)
			return in, evio.None
		},
		Closed: func(c evio.Conn, err error) evio.Action {
			w.note("closed %v, %v", c.Context(), err)
			return evio.None
		},
		Tick: func() (time.Duration, evio.Action) {
			if w.stop.Load() {
				return never, evio.Shutdown
			}
			return 5 * time.Millisecond, evio.None
		},
	}
}

func (w *world) open(c evio.Conn) {
	c.SetContext(w.opened)
	w.note("opened %d at %d from %T", w.opened, c.AddrIndex(), c.RemoteAddr())
	w.opened++
}

// addresses returns two different addresses of a scheme.
func addresses(t testing.TB, scheme string) []string {
	if !strings.HasPrefix(scheme, "unix") {
		return []string{scheme + "://127.0.0.1:0", scheme + "://127.0.0.1:0?reuseport=true"}
	}
	dir, err := os.MkdirTemp("", "evio")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return []string{scheme + "://" + filepath.Join(dir, "a"), scheme + "://" + filepath.Join(dir, "b")}
}

// play runs a script on one of the two packages, and returns its log, line by line.
func play(t *testing.T, serve func(evio.Events, ...string) error, scheme string, s script) string {
	w := &world{t: t}
	events := w.noting()
	if s.stops {
		// The original's ticker outlives Serve by one delay, and then writes to a descriptor
		// that may belong to something else.
		events.Tick = nil
	}
	if s.events != nil {
		s.events(w, &events)
	}
	ready := make(chan struct{})
	then := events.Serving
	events.Serving = func(server evio.Server) evio.Action {
		w.addrs = server.Addrs
		w.note("serving %d addresses, %d loops", len(server.Addrs), server.NumLoops)
		close(ready)
		if then != nil {
			return then(server)
		}
		return evio.None
	}
	ended := make(chan error, 1)
	go func() {
		err := serve(events, addresses(t, scheme)...)
		w.note("served, %v", err)
		ended <- err
	}()
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("Serve does not call Serving")
	}
	if s.clients != nil {
		s.clients(w)
	}
	if !s.stops {
		w.stop.Store(true)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatalf("Serve does not return after %q", w.server)
	}
	for _, a := range w.addrs {
		if _, err := os.Stat(a.String()); a.Network() == "unix" && err == nil {
			w.note("the socket's file is there")
		}
	}
	var b strings.Builder
	for _, line := range w.server {
		fmt.Fprintf(&b, "event %s\n", line)
	}
	for _, line := range w.client {
		fmt.Fprintf(&b, "client %s\n", line)
	}
	return strings.TrimSpace(b.String())
}
