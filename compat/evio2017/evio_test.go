package evio_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	evio "github.com/rondo-go/rondo/compat/evio2017"
)

// Every event reaches the program, with its arguments and its results. The tests of
// package evio2017/v0 have the cases.
func TestEvents(t *testing.T) {
	var mu sync.Mutex
	var log []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, fmt.Sprintf(format, args...))
	}
	var wake func(id int) bool
	var at []net.Addr
	ticks := 0
	events := evio.Events{
		Serving: func(w func(id int) bool, addrs []net.Addr) evio.Action {
			wake, at = w, addrs
			note("serving %d", len(addrs))
			go client(t, addrs[1])
			return evio.None
		},
		Opened: func(id int, addr evio.Addr) ([]byte, evio.Options, evio.Action) {
			note("opened %d at %d: %t %t", id, addr.Index, addr.Local.String() == at[1].String(), addr.Remote != nil)
			return []byte("hello"), evio.Options{TCPKeepAlive: time.Minute, ReuseInputBuffer: true}, evio.None
		},
		Data: func(id int, in []byte) ([]byte, evio.Action) {
			if in == nil {
				note("woken %d", id)
				return []byte("!"), evio.Detach
			}
			note("data %d %s: %t %t", id, in, wake(id), wake(id+1))
			return bytes.ToUpper(in), evio.None
		},
		Prewrite:  func(id, amount int) evio.Action { note("prewrite %d %d", id, amount); return evio.None },
		Postwrite: func(id, amount, left int) evio.Action { note("postwrite %d %d %d", id, amount, left); return evio.None },
		Detached: func(id int, rwc io.ReadWriteCloser) evio.Action {
			note("detached %d", id)
			rwc.Close()
			return evio.None
		},
		Closed: func(id int, err error) evio.Action {
			note("closed %d, %v", id, err)
			return evio.Shutdown
		},
		Tick: func() (time.Duration, evio.Action) {
			if ticks++; ticks == 1 {
				note("tick")
			}
			return time.Millisecond, evio.None
		},
	}
	if err := evio.Serve(events, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	want := []string{"serving 2", "tick",
		"opened 1 at 1: true true", "prewrite 1 5", "postwrite 1 5 0",
		"data 1 say: true false", "prewrite 1 3", "postwrite 1 3 0",
		"woken 1", "prewrite 1 1", "postwrite 1 1 0", "detached 1",
		"opened 2 at 1: true true", "prewrite 2 5", "postwrite 2 5 0", "closed 2, <nil>"}
	if !slices.Equal(log, want) {
		t.Errorf("events %q, want %q", log, want)
	}
}

// client makes two connections to the server of TestEvents.
func client(t *testing.T, to net.Addr) {
	for _, test := range []struct{ say, want string }{{"say", "helloSAY!"}, {"", "hello"}} {
		c, err := net.Dial(to.Network(), to.String())
		if err != nil {
			t.Error(err)
			return
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		got := make([]byte, len(test.want))
		io.ReadFull(c, got[:len("hello")])
		io.WriteString(c, test.say)
		if _, err := io.ReadFull(c, got[len("hello"):]); err != nil || string(got) != test.want {
			t.Errorf("got %q, %v", got, err)
		}
		if test.say != "" {
			io.Copy(io.Discard, c) // until it is closed
		}
		c.Close()
	}
}

// should gets the connection's addresses, and decides.
func TestTranslateSome(t *testing.T) {
	answers := make(chan string, 2)
	events := evio.Events{
		Serving: func(_ func(int) bool, addrs []net.Addr) evio.Action {
			go func() {
				for _, to := range addrs {
					c, err := net.Dial(to.Network(), to.String())
					if err != nil {
						answers <- err.Error()
						continue
					}
					answers <- answer(c, "question", len("question"))
					c.Close()
				}
			}()
			return evio.None
		},
		Data:   func(_ int, in []byte) ([]byte, evio.Action) { return in, evio.None },
		Closed: func(id int, _ error) evio.Action { return map[int]evio.Action{2: evio.Shutdown}[id] },
	}
	events = evio.Translate(events, func(id int, addr evio.Addr) bool { return addr.Index == 1 },
		func(_ int, rw io.ReadWriter) io.ReadWriter { return upper{rw} })
	if err := evio.Serve(events, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if a, b := <-answers, <-answers; a != "question" || b != "QUESTION" {
		t.Errorf("%q and %q", a, b)
	}
}

// upper translates output to capitals.
type upper struct{ io.ReadWriter }

func (u upper) Write(p []byte) (int, error) { return u.ReadWriter.Write(bytes.ToUpper(p)) }
