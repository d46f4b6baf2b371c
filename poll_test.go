package rondo_test

import (
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
)

// onLoop runs f on e's first loop and waits for it.
func onLoop(t *testing.T, e *rondo.Engine, f func(l *rondo.Loop)) {
	t.Helper()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	for l := range e.Loops() {
		done := make(chan struct{})
		if err := l.Post(func() { defer close(done); f(l) }); err != nil {
			t.Fatal(err)
		}
		<-done
		return
	}
}

// number is a file's descriptor, which stays the file's.
func number(t *testing.T, f *os.File) (fd int) {
	t.Helper()
	rc, err := f.SyscallConn()
	if err == nil {
		err = rc.Control(func(number uintptr) { fd = int(number) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// polls runs a test on every backend that can poll descriptors. The others must
// say that they cannot.
func polls(t *testing.T, test func(t *testing.T, e *rondo.Engine)) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			if runtime.GOOS != "windows" {
				test(t, e)
				return
			}
			r, _ := pipe(t)
			onLoop(t, e, func(l *rondo.Loop) {
				if _, err := l.Poll(number(t, r), rondo.Readable, func(rondo.Events) {}); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("Poll on a system without descriptors: %v", err)
				}
			})
		})
	}
}

// TestPoll: f is called for what holds and was asked for, as long as it holds.
func TestPoll(t *testing.T) {
	polls(t, func(t *testing.T, e *rondo.Engine) {
		r, w := pipe(t)
		lines := make(chan string, 10)
		var poll *rondo.Poll
		onLoop(t, e, func(l *rondo.Loop) {
			var err error
			poll, err = l.Poll(number(t, r), rondo.Readable, func(ev rondo.Events) {
				if ev != rondo.Readable {
					t.Errorf("events %b", ev)
				}
				b := make([]byte, 1) // so that some is left for the next turn
				if n, err := r.Read(b); n == 0 {
					lines <- "end: " + err.Error()
					poll.Close()
					return
				}
				lines <- string(b)
			})
			if err != nil {
				t.Error(err)
			}
		})
		for _, c := range "abc" {
			w.Write([]byte(string(c) + string(c)))
			for range 2 {
				if got := <-lines; got != string(c) {
					t.Errorf("read %q, want %q", got, c)
				}
			}
		}
		w.Close()
		if got := <-lines; got != "end: EOF" {
			t.Errorf("at the end: %s", got)
		}
		onLoop(t, e, func(*rondo.Loop) {
			if err := poll.Modify(rondo.Writable); !errors.Is(err, rondo.ErrClosed) {
				t.Errorf("Modify after Close: %v", err)
			}
			poll.Close()
		})
	})
}

// TestPollModify: the mask changes at any time, and 0 is silence.
func TestPollModify(t *testing.T) {
	polls(t, func(t *testing.T, e *rondo.Engine) {
		near, _ := pair(t, "unix")
		file, err := near.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		fd := number(t, file)
		var poll *rondo.Poll
		var calls int
		var last rondo.Events
		onLoop(t, e, func(l *rondo.Loop) {
			if poll, err = l.Poll(fd, rondo.Readable, func(ev rondo.Events) {
				calls++
				last = ev
				if calls == 3 {
					poll.Modify(0)
				}
			}); err != nil {
				t.Error(err)
			}
		})
		at := func() (n int) { onLoop(t, e, func(*rondo.Loop) { n = calls }); return n }
		modify := func(mask rondo.Events) {
			onLoop(t, e, func(*rondo.Loop) {
				calls = 0
				if err := poll.Modify(mask); err != nil || poll.Mask() != mask {
					t.Errorf("Modify: %v; then the mask is %b", err, poll.Mask())
				}
			})
		}
		if n := at(); n != 0 {
			t.Errorf("%d calls before anything could be read", n)
		}
		modify(rondo.Writable)
		until(t, "three calls", func() bool { return at() == 3 })
		for range 5 {
			at() // turns
		}
		if n := at(); n != 3 || last != rondo.Writable {
			t.Errorf("%d calls, %b, with an empty mask after the third", n, last)
		}
		modify(rondo.Readable | rondo.Writable)
		until(t, "three calls", func() bool { return at() == 3 })
		modify(rondo.Readable)
		modify(0)
		modify(rondo.Readable)
		for range 5 {
			at()
		}
		if n := at(); n != 0 {
			t.Errorf("%d calls for what cannot be read, %b", n, last)
		}
	})
}

// TestPollPanics: a panic in f is logged, and ends the Poll and nothing else.
func TestPollPanics(t *testing.T) {
	polls(t, func(t *testing.T, e *rondo.Engine) {
		var log lockedBuffer
		e.Logger = slog.New(slog.NewTextHandler(&log, nil))
		r, w := pipe(t)
		w.Write([]byte("x"))
		calls := 0
		onLoop(t, e, func(l *rondo.Loop) {
			if _, err := l.Poll(number(t, r), rondo.Readable, func(rondo.Events) {
				calls++
				panic("oh")
			}); err != nil {
				t.Error(err)
			}
		})
		until(t, "the panic", func() bool { return strings.Contains(log.String(), "oh") })
		for range 5 {
			onLoop(t, e, func(*rondo.Loop) {})
		}
		onLoop(t, e, func(*rondo.Loop) {
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	})
}

// TestPollEnds: Close of the engine ends Polls, and after it there are none.
func TestPollEnds(t *testing.T) {
	polls(t, func(t *testing.T, e *rondo.Engine) {
		r, w := pipe(t)
		var loop *rondo.Loop
		onLoop(t, e, func(l *rondo.Loop) {
			loop = l
			for range 3 {
				// Nobody can write to this end: f is never called.
				if _, err := l.Poll(number(t, r), rondo.Writable, func(ev rondo.Events) {
					t.Errorf("events %b", ev)
				}); err != nil {
					t.Error(err)
				}
			}
		})
		r.Close()
		if _, err := w.Write([]byte("x")); err != nil {
			t.Errorf("while the loop has duplicates: %v", err)
		}
		e.Close()
		if _, err := w.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("after the engine has ended: %v, want EPIPE", err)
		}
		if err := loop.Post(func() {}); !errors.Is(err, rondo.ErrClosed) {
			t.Errorf("Post: %v", err)
		}
	})
}

// TestPollRefuses what is always ready.
func TestPollRefuses(t *testing.T) {
	polls(t, func(t *testing.T, e *rondo.Engine) {
		file, err := os.Open("poll_test.go")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		onLoop(t, e, func(l *rondo.Loop) {
			if _, err := l.Poll(number(t, file), rondo.Readable, func(rondo.Events) {}); !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "another goroutine") {
				t.Errorf("Poll of a file: %v", err)
			}
		})
	})
}

// TestPollFails: a descriptor that the system does not watch after all is reported
// once. Some systems watch this one, and find it ready.
func TestPollFails(t *testing.T) {
	polls(t, func(t *testing.T, e *rondo.Engine) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		events := make(chan rondo.Events, 10)
		var poll *rondo.Poll
		onLoop(t, e, func(l *rondo.Loop) {
			if poll, err = l.Poll(number(t, null), rondo.Readable, func(ev rondo.Events) {
				if ev != rondo.Failed {
					poll.Close()
				}
				events <- ev
			}); err != nil {
				t.Error(err)
			}
		})
		switch ev := <-events; {
		case ev == rondo.Failed && errors.Is(poll.Err(), syscall.EPERM):
		case ev == rondo.Readable && poll.Err() == nil:
		default:
			t.Errorf("events %b, %v", ev, poll.Err())
		}
		for range 3 {
			onLoop(t, e, func(*rondo.Loop) {})
		}
		if len(events) > 0 {
			t.Errorf("then events %b", <-events)
		}
	})
}
