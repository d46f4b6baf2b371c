package evio

import (
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
)

const patience = 2 * time.Minute

// A world is a running server with a log of its events.
type world struct {
	t      *testing.T
	server Server
	served chan error
	stop   atomic.Bool // makes Tick shut the server down

	mu  sync.Mutex
	log []string
}

// serve serves events, and logs them. It ends the server when the test ends, if that has
// not happened.
func serve(t *testing.T, events Events, addrs ...string) *world {
	t.Helper()
	w := &world{t: t, served: make(chan error, 1)}
	serving := make(chan struct{})
	then := events
	events.Serving = func(s Server) (action Action) {
		w.server = s
		if then.Serving != nil {
			action = then.Serving(s)
		}
		close(serving)
		return action
	}
	events.Opened = func(id int, info Info) (out []byte, opts Options, action Action) {
		if info.Closing {
			w.note("closing %d at %d", id, info.AddrIndex)
		} else {
			w.note("opened %d at %d", id, info.AddrIndex)
		}
		if then.Opened != nil {
			return then.Opened(id, info)
		}
		return nil, Options{}, None
	}
	events.Closed = func(id int, err error) Action {
		w.note("closed %d, %v", id, err)
		if then.Closed != nil {
			return then.Closed(id, err)
		}
		return None
	}
	if then.Detached != nil {
		events.Detached = func(id int, rwc io.ReadWriteCloser) Action {
			w.note("detached %d", id)
			return then.Detached(id, rwc)
		}
	}
	if then.Tick == nil {
		events.Tick = func() (time.Duration, Action) {
			if w.stop.Load() {
				return time.Hour, Shutdown
			}
			return 2 * time.Millisecond, None
		}
	}
	go func() { w.served <- Serve(events, addrs...) }()
	select {
	case <-serving:
	case err := <-w.served:
		t.Fatal("Serve:", err)
	case <-time.After(patience):
		t.Fatal("Serving is not called")
	}
	t.Cleanup(func() {
		w.stop.Store(true)
		w.end()
	})
	return w
}

// end waits until Serve has returned.
func (w *world) end() {
	w.t.Helper()
	select {
	case err := <-w.served:
		w.served <- nil
		if err != nil {
			w.t.Error("Serve:", err)
		}
	case <-time.After(patience):
		w.t.Fatalf("Serve does not return after %q", w.events())
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) events() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// await waits until an event that begins so has been logged.
func (w *world) await(prefix string) {
	w.t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		if slices.ContainsFunc(w.events(), func(s string) bool { return strings.HasPrefix(s, prefix) }) {
			return
		}
	}
	w.t.Fatalf("%q did not happen; %q did", prefix, w.events())
}

// wantLog compares the whole log.
func (w *world) wantLog(want ...string) {
	w.t.Helper()
	if got := w.events(); !slices.Equal(got, want) {
		w.t.Errorf("events\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// wantPairs wants one Closed or Detached, or one of each as often, for each Opened.
func (w *world) wantPairs() {
	w.t.Helper()
	count := map[string]int{}
	for _, line := range w.events() {
		kind, rest, _ := strings.Cut(line, " ")
		id, _, _ := strings.Cut(rest, " ")
		id = strings.TrimSuffix(id, ",")
		switch kind {
		case "opened", "closing":
			count["opened "+id]++
		case "closed", "detached":
			count["ended "+id]++
		}
	}
	for what, n := range count {
		if n != 1 {
			w.t.Errorf("%s %d times", what, n)
		}
	}
	for what := range count {
		kind, id, _ := strings.Cut(what, " ")
		if kind == "opened" && count["ended "+id] == 0 || kind == "ended" && count["opened "+id] == 0 {
			w.t.Errorf("%s, and not the other", what)
		}
	}
}

// dial connects to one of the server's addresses.
func (w *world) dial(index int) net.Conn {
	w.t.Helper()
	return dialTo(w.t, w.server.Addrs[index])
}

func dialTo(t testing.TB, to net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// say writes, and hear wants an answer.
func say(t testing.TB, c io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

func hear(t testing.TB, c io.Reader, want string) {
	t.Helper()
	p := make([]byte, len(want))
	if n, err := io.ReadFull(c, p); err != nil || string(p) != want {
		t.Fatalf("got %.60q, %v, want %.60q", p[:n], err, want)
	}
}

// hearEnd wants the end of the stream.
func hearEnd(t testing.TB, c io.Reader) {
	t.Helper()
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		t.Errorf("got %.60q, %v, want the end", b, err)
	}
}

// at returns an address of the scheme that nobody else has.
func at(t *testing.T, scheme string) string {
	if !strings.HasPrefix(scheme, "unix") {
		return scheme + "://127.0.0.1:0"
	}
	dir, err := os.MkdirTemp("", "evio")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return scheme + "://" + filepath.Join(dir, "s")
}

// onStreams runs a test for each scheme of streams.
func onStreams(t *testing.T, f func(t *testing.T, scheme string)) {
	for _, scheme := range []string{"tcp", "tcp-net", "unix", "unix-net"} {
		t.Run(scheme, func(t *testing.T) { f(t, scheme) })
	}
}

func echo(_ int, in []byte) ([]byte, Action) { return in, None }
