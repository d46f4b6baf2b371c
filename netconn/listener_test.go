package netconn_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/netconn"
)

// TestListener: errors and deadlines are package net's.
func TestListener(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 2})
		ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
		must(t, err)
		if _, port, _ := net.SplitHostPort(ln.Addr().String()); port == "0" || port == "" {
			t.Errorf("Addr is %v", ln.Addr())
		}
		must(t, ln.SetDeadline(time.Now().Add(10*time.Millisecond)))
		_, err = ln.Accept()
		is(t, err, "accept", os.ErrDeadlineExceeded)
		must(t, ln.SetDeadline(time.Time{}))

		errs := make(chan error)
		for range 3 {
			go func() {
				_, err := ln.Accept()
				errs <- err
			}()
		}
		time.Sleep(5 * time.Millisecond)
		must(t, ln.Close())
		for range 3 {
			is(t, <-errs, "accept", net.ErrClosed)
		}
		_, err = ln.Accept()
		is(t, err, "accept", net.ErrClosed)
		is(t, ln.Close(), "close", net.ErrClosed)
		is(t, ln.SetDeadline(time.Now()), "set", net.ErrClosed)
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			t.Error("the socket still listens")
		}
		_, err = netconn.Listen(e, "tcp", "127.0.0.1:xyz", netconn.Options{})
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "listen" {
			t.Errorf("Listen to no port: %v", err)
		}
	})
}

// TestBacklog: when as many connections wait as may, accepting pauses; none is lost.
func TestBacklog(t *testing.T) {
	const backlog, n = 8, 300
	onEach(t, func(t *testing.T, backend string) {
		for _, b := range []rondo.Balance{rondo.RoundRobin, rondo.ReusePort} {
			e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 2, Balance: b})
			ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{Backlog: backlog})
			must(t, err)
			peers := make([]net.Conn, n)
			for i := range peers {
				peers[i], err = net.Dial("tcp", ln.Addr().String())
				must(t, err)
				defer peers[i].Close()
			}
			time.Sleep(20 * time.Millisecond)
			// Two loops accept up to 64 before they hear of it, and std's 64 ahead. io_uring
			// brings all that it has accepted ahead.
			if open := e.Stats().Open; open > backlog+2*64+64 && backend != "uring" {
				t.Errorf("%d connections were accepted", open)
			}
			ln.SetDeadline(time.Now().Add(patience))
			for range n {
				c, err := ln.Accept()
				must(t, err)
				send(t, c, "x")
				must(t, c.Close())
			}
			for _, p := range peers {
				expect(t, p, "x")
			}
			e.Close()
		}
	})
}

// TestListenerCloses: connections that nobody accepted are reset, also those that become
// ready later; accepted ones go on.
func TestListenerCloses(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 2})
		ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{Filters: []rondo.FilterOpenFunc{filter.AcceptProxy{}.Filter}})
		must(t, err)
		dial := func(first string) net.Conn {
			c, err := net.Dial("tcp", ln.Addr().String())
			must(t, err)
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(patience))
			send(t, c, first)
			return c
		}
		const header = "PROXY UNKNOWN\r\n"
		peer := dial(header)
		ln.SetDeadline(time.Now().Add(patience))
		c, err := ln.Accept()
		must(t, err)
		defer c.Close()
		waits := dial(header)
		late := dial(header[:5])
		eventually(t, "all are accepted", func() bool { return e.Stats().Open == 3 })
		must(t, ln.Close())
		if _, err := waits.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection that waited for Accept: %v", err)
		}
		late.Write([]byte(header[5:]))
		if _, err := late.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection that was not ready: %v", err)
		}
		send(t, c, "x")
		expect(t, peer, "x")
	})
}

// TestAttachListener serves a socket of package net's.
func TestAttachListener(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		inner, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		must(t, err)
		ln, err := netconn.AttachListener(e, inner, netconn.Options{})
		must(t, err)
		peer, err := net.Dial("unix", ln.Addr().String())
		must(t, err)
		defer peer.Close()
		ln.SetDeadline(time.Now().Add(patience))
		c, err := ln.Accept()
		must(t, err)
		defer c.Close()
		send(t, peer, "hello")
		expect(t, c, "hello")
		send(t, c, "hello yourself")
		expect(t, peer, "hello yourself")
		if got := c.LocalAddr().Network(); got != "unix" {
			t.Errorf("network %q", got)
		}
	})
}

// TestProxied: Accept returns a connection whose addresses are those that the PROXY
// protocol announced.
func TestProxied(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{Filters: []rondo.FilterOpenFunc{filter.AcceptProxy{}.Filter}})
		must(t, err)
		peer, err := net.Dial("tcp", ln.Addr().String())
		must(t, err)
		defer peer.Close()
		send(t, peer, "PROXY TCP4 192.0.2.1 192.0.2.2 1000 2000\r\nhello")
		ln.SetDeadline(time.Now().Add(patience))
		c, err := ln.Accept()
		must(t, err)
		defer c.Close()
		if got := c.RemoteAddr().String(); got != "192.0.2.1:1000" {
			t.Errorf("RemoteAddr %s", got)
		}
		expect(t, c, "hello")
		send(t, c, "hello yourself")
		expect(t, peer, "hello yourself")
		_, err = c.Write(make([]byte, 100))
		must(t, err)
	})
}

// TestOptions: what means nothing is an error that names it.
func TestOptions(t *testing.T) {
	e := engine(t, &rondo.Engine{NumLoops: 1})
	nothing := func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
	ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
	must(t, err)
	for want, f := range map[string]func() error{
		"netconn: the engine is nil": func() error { _, err := netconn.Listen(nil, "tcp", ":0", netconn.Options{}); return err },
		"netconn: Options.Backlog is -1: want 0, for the default, or more": func() error {
			_, err := netconn.Listen(e, "tcp", ":0", netconn.Options{Backlog: -1})
			return err
		},
		"netconn: Options.ReadAhead is -1: want 0, for the default, or more": func() error {
			d := netconn.Dialer{Engine: e, Options: netconn.Options{ReadAhead: -1}}
			_, err := d.Dial("tcp", "127.0.0.1:1")
			return err
		},
		"netconn: the engine is nil  ": func() error { _, err := netconn.AttachListener(nil, nil, netconn.Options{}); return err },
		"netconn: the engine is nil ":  func() error { _, err := new(netconn.Dialer).Dial("tcp", "127.0.0.1:1"); return err },
		"netconn: Options.Filters[1] is nil: want a rondo.FilterOpenFunc": func() error {
			_, err := netconn.Listen(e, "tcp", ":0", netconn.Options{Filters: []rondo.FilterOpenFunc{nothing, nil}})
			return err
		},
		"netconn: Options.Filters[0] is nil: want a rondo.FilterOpenFunc": func() error {
			d := netconn.Dialer{Engine: e, Options: netconn.Options{Filters: []rondo.FilterOpenFunc{nil}}}
			_, err := d.Dial("tcp", ln.Addr().String())
			return err
		},
		"listen: ln is nil: want a net.Listener": func() error { _, err := netconn.AttachListener(e, nil, netconn.Options{}); return err },
	} {
		if err := f(); err == nil || err.Error() != strings.TrimRight(want, " ") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
