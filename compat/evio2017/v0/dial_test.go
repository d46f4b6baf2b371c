package evio

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/testkit"
)

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
		nobody := "tcp://" + testkit.FreeAddress(t)
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
