//go:build unix

package fdpass_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

var until = testkit.Until

// sockets is a pair of connected unix sockets.
func sockets(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	one, two := pair(t, "unix", filepath.Join(t.TempDir(), "s"))
	return one.(*net.UnixConn), two.(*net.UnixConn)
}

// pair is the two ends of a connection.
func pair(t testing.TB, network, address string) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, err = net.Dial(network, ln.Addr().String())
	if err == nil {
		far, err = ln.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// backends runs a test on every backend.
func backends(t *testing.T, test func(t *testing.T, e *rondo.Engine)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			e := &rondo.Engine{Backend: name, NumLoops: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
			defer e.Close()
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			// Let the backend open what it needs for its first Channel.
			a, _ := sockets(t)
			first := channel(t, e, a, &recorder{})
			onLoop(t, e, func(l *rondo.Loop) { first.Abort(nil) })
			test(t, e)
		})
	}
}

// onLoop runs f on e's loop and waits for it.
func onLoop(t testing.TB, e *rondo.Engine, f func(l *rondo.Loop)) {
	t.Helper()
	for l := range e.Loops() {
		done := make(chan struct{})
		if err := l.Post(func() { defer close(done); f(l) }); err != nil {
			t.Fatal(err)
		}
		<-done
	}
}

// recorder is a Handler that records messages.
type recorder struct {
	message func(ch *fdpass.Channel, m *fdpass.Message) // nil: nothing

	mu     sync.Mutex
	data   []string
	closed int
	err    error
}

func (r *recorder) Message(ch *fdpass.Channel, m *fdpass.Message) {
	r.mu.Lock()
	r.data = append(r.data, string(m.Data))
	r.mu.Unlock()
	if r.message != nil {
		r.message(ch, m)
	}
}

func (r *recorder) Closed(_ *fdpass.Channel, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	r.err = err
}

func (r *recorder) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data
}

// untilClosed returns Closed's error.
func (r *recorder) untilClosed(t testing.TB) error {
	t.Helper()
	until(t, "Closed", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.closed > 0
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != 1 {
		t.Errorf("Closed was called %d times", r.closed)
	}
	return r.err
}

func channel(t testing.TB, e *rondo.Engine, nc *net.UnixConn, h fdpass.Handler) (ch *fdpass.Channel) {
	t.Helper()
	onLoop(t, e, func(l *rondo.Loop) {
		var err error
		if ch, err = fdpass.New(l, nc, h); err != nil {
			t.Error(err)
		}
	})
	if ch == nil {
		t.FailNow()
	}
	return ch
}

// Messages arrive in order in both directions, with files that work.
func TestMessages(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		a, b := sockets(t)
		var mu sync.Mutex
		files := map[string]*os.File{}
		echo := &recorder{message: func(ch *fdpass.Channel, m *fdpass.Message) {
			if m.Files() == 0 {
				ch.Send(m.Data, nil)
				return
			}
			f, err := m.File(m.Files() - 1)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := m.File(m.Files() - 1); err == nil {
				t.Error("a file was taken twice")
			}
			defer f.Close()
			if !closeOnExec(t, f) {
				t.Error("the file is not close-on-exec")
			}
			ch.Send(m.Data, nil, f)
		}}
		back := &recorder{message: func(_ *fdpass.Channel, m *fdpass.Message) {
			if m.Files() > 0 {
				f, err := m.File(0)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				files[string(m.Data)] = f
			}
		}}
		ch := channel(t, e, a, back)
		channel(t, e, b, echo)
		var want []string
		sent := 0
		onLoop(t, e, func(*rondo.Loop) {
			for i := range 100 {
				data := fmt.Sprint("message ", i)
				want = append(want, data)
				var pass []syscall.Conn
				for range i % 4 {
					pass = append(pass, marked(t, data))
				}
				if err := ch.Send([]byte(data), func(err error) {
					if sent++; err != nil {
						t.Error(err)
					}
				}, pass...); err != nil {
					t.Error(err)
				}
			}
			if sent != 0 {
				t.Error("Send called done")
			}
		})
		until(t, "the messages", func() bool { return len(back.got()) == len(want) })
		for i, data := range back.got() {
			if data != want[i] {
				t.Fatalf("message %d is %q", i, data)
			}
			mu.Lock()
			f := files[data]
			mu.Unlock()
			if (f != nil) != (i%4 > 0) {
				t.Fatalf("%s came with %v", data, f)
			} else if f != nil {
				if b, err := io.ReadAll(io.NewSectionReader(f, 0, 100)); string(b) != data {
					t.Errorf("in the file of %q is %q, %v", data, b, err)
				}
				f.Close()
			}
		}
		onLoop(t, e, func(*rondo.Loop) {
			if sent != 100 {
				t.Errorf("done was called %d times", sent)
			}
			ch.Close()
			ch.Close()
			if err := ch.Send(nil, nil); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Send after Close: %v", err)
			}
		})
		if err := back.untilClosed(t); err != nil {
			t.Error(err)
		}
		if err := echo.untilClosed(t); err != nil {
			t.Error(err)
		}
	})
}

// marked is a file with a text in it.
func marked(t testing.TB, text string) *os.File {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A large message goes in many pieces, and Close waits for the last one.
func TestLargeMessage(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		a, b := sockets(t)
		big := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
		var got []byte
		r := &recorder{message: func(_ *fdpass.Channel, m *fdpass.Message) { got = bytes.Clone(m.Data) }}
		s := &recorder{}
		ch := channel(t, e, a, s)
		var told error = errors.New("nothing was told")
		onLoop(t, e, func(*rondo.Loop) {
			if err := ch.Send(big, func(err error) { told = err }, marked(t, "")); err != nil {
				t.Error(err)
			}
			ch.Close()
		})
		channel(t, e, b, r)
		if err := s.untilClosed(t); err != nil || told != nil {
			t.Errorf("Closed got %v, done %v", err, told)
		}
		if err := r.untilClosed(t); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(got, big) {
			t.Errorf("%d bytes came, want %d", len(got), len(big))
		}
	})
}

// A Channel refuses messages beyond its bounds, and the caller keeps their files.
func TestBounds(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		a, _ := sockets(t)
		before := openFiles(t)
		s := &recorder{}
		ch := channel(t, e, a, s)
		told := 0
		onLoop(t, e, func(*rondo.Loop) {
			f := marked(t, "")
			many := make([]syscall.Conn, fdpass.MaxFiles+1)
			for i := range many {
				many[i] = f
			}
			if err := ch.Send(nil, nil, many...); err != fdpass.ErrTooMuch {
				t.Errorf("too many files: %v", err)
			}
			if err := ch.Send(make([]byte, fdpass.MaxBytes+1), nil); err != fdpass.ErrTooMuch {
				t.Errorf("too many bytes: %v", err)
			}
			gone := marked(t, "")
			gone.Close()
			if err := ch.Send(nil, nil, f, gone); err == nil {
				t.Error("a closed file was sent")
			}
			for i := 0; ; i++ {
				err := ch.Send(nil, func(err error) {
					if told++; !errors.Is(err, net.ErrClosed) {
						t.Errorf("told %v", err)
					}
				}, f)
				if err != nil {
					if err != fdpass.ErrFull || i != fdpass.MaxQueued || ch.Queued() != i {
						t.Errorf("after %d messages: %v", i, err)
					}
					break
				}
			}
			ch.Abort(nil)
			f.Close()
		})
		if err := s.untilClosed(t); !errors.Is(err, net.ErrClosed) || told != fdpass.MaxQueued {
			t.Errorf("Closed got %v; %d were told", err, told)
		}
		untilFiles(t, before-1) // a was one of them
	})
}

// Whatever ends a Channel, its files do not stay open, whether queued, on their way, half
// received or not taken.
func TestNothingLeaks(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		files := func(n int) (files []syscall.Conn) {
			for range n {
				files = append(files, marked(t, ""))
			}
			return files
		}
		header := func(files int, data uint32) []byte {
			h := make([]byte, 12)
			h[0], h[1] = 1, byte(files)
			binary.BigEndian.PutUint32(h[4:], data)
			return h
		}
		for what, test := range map[string]struct {
			raw   []byte // what comes, with some files
			files int
			end   func(b *net.UnixConn, ch *fdpass.Channel)
			want  error // of Closed
		}{
			"not taken":           {append(header(3, 2), "hi"...), 3, func(b *net.UnixConn, _ *fdpass.Channel) { b.CloseWrite() }, nil},
			"half a message":      {header(3, 2), 3, func(b *net.UnixConn, _ *fdpass.Channel) { b.CloseWrite() }, io.ErrUnexpectedEOF},
			"aborted":             {header(3, 2), 3, func(_ *net.UnixConn, ch *fdpass.Channel) { ch.Abort(nil) }, net.ErrClosed},
			"closed":              {header(3, 2), 3, func(_ *net.UnixConn, ch *fdpass.Channel) { ch.Close() }, nil},
			"files unannounced":   {[]byte{1}, fdpass.MaxFiles + 1, nil, fdpass.ErrProtocol},
			"more than announced": {append(header(1, 2), "hi"...), fdpass.MaxFiles + 2, nil, fdpass.ErrProtocol},
			"files missing":       {header(3, 2), 2, nil, fdpass.ErrProtocol},
			"too long":            {header(1, fdpass.MaxBytes+1), 1, nil, fdpass.ErrProtocol},
			"another language":    {[]byte("GET / HTTP/1.1\r\n"), 1, nil, fdpass.ErrProtocol},
		} {
			a, b := sockets(t)
			passed := files(test.files)
			before := openFiles(t)
			r := &recorder{}
			ch := channel(t, e, a, r)
			rawSend(t, b, test.raw, passed)
			onLoop(t, e, func(*rondo.Loop) {
				ch.Send(nil, nil, passed[0]) // a message is on its way, or queued
			})
			if test.end != nil {
				onLoop(t, e, func(*rondo.Loop) { test.end(b, ch) })
			}
			if err := r.untilClosed(t); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("%s: Closed got %v, want %v", what, err, test.want)
			}
			b.Close()
			untilFiles(t, before-2)
			for _, f := range passed {
				f.(*os.File).Close()
			}
		}
	})
}

// A handler that panics ends its Channel, which closes its files.
func TestPanic(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		a, b := sockets(t)
		before := openFiles(t)
		r := &recorder{message: func(*fdpass.Channel, *fdpass.Message) { panic("on purpose") }}
		channel(t, e, a, r)
		ch := channel(t, e, b, &recorder{})
		onLoop(t, e, func(*rondo.Loop) { ch.Send(nil, nil, marked(t, ""), marked(t, "")) })
		if err := r.untilClosed(t); err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("Closed got %v", err)
		}
		untilFiles(t, before) // the two files of marked, without the two sockets
	})
}

// Close and Shutdown of an engine end its Channels.
func TestEngineCloses(t *testing.T) {
	backends(t, func(t *testing.T, other *rondo.Engine) {
		for _, end := range []func(*rondo.Engine) error{
			(*rondo.Engine).Close,
			func(e *rondo.Engine) error { return e.Shutdown(context.Background()) },
		} {
			a, b := sockets(t)
			e := &rondo.Engine{Backend: other.Backend, NumLoops: 1}
			r, told := &recorder{}, 0
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			ch := channel(t, e, a, r)
			onLoop(t, e, func(*rondo.Loop) {
				f := marked(t, "")
				for range fdpass.MaxQueued {
					ch.Send(make([]byte, 10_000), func(error) { told++ }, f)
				}
			})
			end(e)
			if err := r.untilClosed(t); !errors.Is(err, net.ErrClosed) || told != fdpass.MaxQueued {
				t.Errorf("Closed got %v; %d were told", err, told)
			}
			b.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, err := io.Copy(io.Discard, b); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the socket is still open")
			}
		}
	})
}

// What a peer has sent before it closed arrives, even if sending to it fails first.
func TestLastWords(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		a, b := sockets(t)
		r := &recorder{}
		ch := channel(t, e, a, r)
		before := openFiles(t)
		failed := make(chan error, 1)
		onLoop(t, e, func(*rondo.Loop) {
			for _, text := range []string{"one", "two"} {
				head := make([]byte, 12)
				head[0], head[1] = 1, 1
				binary.BigEndian.PutUint32(head[4:], uint32(len(text)))
				rawSend(t, b, append(head, text...), []syscall.Conn{marked(t, text)})
			}
			b.Close()
			if err := ch.Send([]byte("to nobody"), func(err error) { failed <- err }); err != nil {
				t.Error(err)
			}
		})
		if err := r.untilClosed(t); err == nil {
			t.Error("Closed got no error, and a message was not sent")
		}
		if got := r.got(); len(got) != 2 || got[1] != "two" {
			t.Errorf("the messages that came are %q", got)
		}
		if err := <-failed; err == nil {
			t.Error("a message to a closed socket was sent")
		}
		untilFiles(t, before) // the two of marked, without the two sockets
	})
}
