package rondo_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// TestAttachListener: a socket that listens already is served, with what waits in it,
// and the file of a unix one is its owner's.
func TestAttachListener(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			for _, balance := range []rondo.Balance{rondo.RoundRobin, rondo.ReusePort} {
				for _, network := range []string{"tcp", "unix"} {
					e := &rondo.Engine{Backend: backend, NumLoops: 2, Balance: balance}
					address := "127.0.0.1:0"
					if network == "unix" {
						address = filepath.Join(t.TempDir(), "s")
					}
					ln, err := net.Listen(network, address)
					if err != nil {
						t.Fatal(err)
					}
					address = ln.Addr().String()
					early, err := net.Dial(network, address)
					if err != nil {
						t.Fatal(err)
					}
					defer early.Close()
					io.WriteString(early, "early")
					served, err := e.AttachListener(ln, rondo.SocketOptions{}, echo)
					if err != nil {
						t.Fatal(err)
					}
					if got := served.Addr(); got.Network() != network || got.String() != address {
						t.Errorf("it listens on %v, want %s", got, address)
					}
					b := make([]byte, 5)
					if n, err := io.ReadFull(early, b); string(b) != "early" || err != nil {
						t.Errorf("one that waited was answered %q, %v", b[:n], err)
					}
					for range 3 {
						roundTrip(t, network, address, "hello")
					}
					e.Close()
					if c, err := net.Dial(network, address); err == nil {
						c.Close()
						t.Error("it listens on, after the engine has closed")
					}
					if network == "unix" {
						if _, err := os.Lstat(address); err != nil {
							t.Errorf("the file: %v", err)
						}
					}
				}
			}
		})
	}
}

// unnamed is a listener that embeds another, so that it might do anything before it.
type unnamed struct{ net.Listener }

// TestAttachListenerFails: then the listener is closed.
func TestAttachListenerFails(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	simulated := n.Engine(&rondo.Engine{})
	for what, test := range map[string]struct {
		e    *rondo.Engine
		veil bool
		want error
	}{
		"no descriptor":  {&rondo.Engine{NumLoops: 1}, true, errors.ErrUnsupported},
		"closed engine":  {&rondo.Engine{NumLoops: 1}, false, rondo.ErrClosed},
		"simulated":      {simulated, false, errors.ErrUnsupported},
		"closed already": {&rondo.Engine{NumLoops: 1}, false, net.ErrClosed},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		given := ln
		switch {
		case test.veil:
			given = unnamed{ln}
		case what == "closed engine":
			test.e.Start()
			test.e.Close()
		case what == "closed already":
			ln.Close()
		}
		attach := func() { _, err = test.e.AttachListener(given, rondo.SocketOptions{}, echo) }
		if test.e == simulated {
			n.Await(attach)
		} else {
			attach()
			test.e.Close()
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", what, err, test.want)
		}
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: then Accept: %v", what, err)
		}
	}
}

// TestListenerPause: connections wait in the system's queue while a listener is paused, and
// are served afterwards, however often it is paused and resumed.
func TestListenerPause(t *testing.T) {
	for _, backend := range backends() {
		for _, balance := range []rondo.Balance{rondo.RoundRobin, rondo.ReusePort} {
			e := &rondo.Engine{Backend: backend, NumLoops: 2, Balance: balance}
			ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo)
			if err != nil {
				t.Fatal(err)
			}
			address := ln.Addr().String()
			roundTrip(t, "tcp", address, "before")
			ln.Pause()
			for range 5 {
				ln.Resume()
				ln.Pause()
			}
			ln.Pause()
			time.Sleep(20 * time.Millisecond)
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			io.WriteString(c, "x")
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: a connection to a paused listener: %v", backend, err)
			}
			for range 5 {
				ln.Resume()
				ln.Pause()
			}
			ln.Resume()
			c.SetReadDeadline(time.Time{})
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Errorf("%s: %v", backend, err)
			}
			roundTrip(t, "tcp", address, "after")
			ln.Pause()
			time.Sleep(time.Millisecond)
			if err := ln.Close(); err != nil {
				t.Errorf("%s: Close while paused: %v", backend, err)
			}
			ln.Resume()
			e.Close()
		}
	}
}

// TestListenerPauseSimulated pauses and resumes at any time, with accepting that fails now
// and then: no connection is forgotten.
func TestListenerPauseSimulated(t *testing.T) {
	for seed := range uint64(100) {
		n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Faults{NoFiles: 0.5, LateCancel: 0.5, Late: 0.3}})
		e := n.Engine(&rondo.Engine{Logger: slog.New(slog.DiscardHandler)})
		ln := n.Listen(e, "tcp", ":7", echo)
		conns := make([]*rondotest.Conn, 20)
		for i := range conns {
			if i%2 == 0 {
				ln.Pause()
			} else {
				ln.Resume()
			}
			conns[i] = n.Dial("tcp", "127.0.0.1:7")
			n.Advance(time.Duration(seed%7) * time.Millisecond)
			conns[i].Send("x")
		}
		ln.Resume()
		for _, c := range conns {
			c.Expect("x")
		}
		n.Close()
	}
}
