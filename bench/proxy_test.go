package main

import (
	"context"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestProxies has each proxy of the suite that is installed pass on messages, streams and
// connections that come and go.
func TestProxies(t *testing.T) {
	ctx := context.Background()
	b := tools(t, "load", "epoll", "sink", "server", "rondo")
	s, err := chosenSuite("proxy", nil, []string{"proxy-64-50", "proxy-stream-8", "proxy-rate"})
	if err != nil {
		t.Fatal(err)
	}
	s = withoutMissing(s)
	for _, server := range append(s.Servers, s.Base) {
		for _, w := range s.Workloads {
			p := few(t, b, nil, w, s.Base, server)
			err := p.b.open(ctx)
			if err == nil {
				_, err = p.b.slice(ctx, 5*time.Millisecond, 0)
			}
			if p.b.close(); err != nil {
				t.Errorf("%s under %s: %v", server, w, err)
			}
		}
	}
}

// TestMissingProxies looks for proxies on a machine that has none.
func TestMissingProxies(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s, err := chosenSuite("proxy", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	had := slices.Clone(s.Servers)
	if left := withoutMissing(s).Servers; !slices.Equal(left, []string{"rondo-uring", "net"}) || !slices.Equal(s.Servers, had) {
		t.Errorf("left are %q, of %q", left, s.Servers)
	}
}

// TestSinkVerifies sends streams through proxies that spoil them.
func TestSinkVerifies(t *testing.T) {
	b := tools(t, "load", "sink")
	for _, c := range []struct {
		name  string
		spoil func(p []byte) []byte // of a megabyte
	}{
		{"nothing", func(p []byte) []byte { return p }},
		{"other bytes", func(p []byte) []byte {
			for i := range p {
				p[i] ^= 1
			}
			return p
		}},
		{"a byte less", func(p []byte) []byte { return p[1:] }},
		{"a byte more", func(p []byte) []byte { return append(p, p[0]) }},
		{"a buffer twice", func(p []byte) []byte { return append(p, p[:64<<10]...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			port, err := freePort()
			if err != nil {
				t.Fatal(err)
			}
			sink, err := spawnServer(t.Context(), anyCPU, nil, b.path("sink"), strconv.Itoa(port))
			if err != nil {
				t.Fatal(err)
			}
			defer sink.stop()
			backend := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			if err := sink.accepts(t.Context(), backend); err != nil {
				t.Fatal(err)
			}
			load, err := spawnClient(t.Context(), anyCPU, b.path("load"), "-p", strconv.Itoa(spoiler(t, backend, c.spoil)), "-b", "65536", streamKind)
			if err != nil {
				t.Fatal(err)
			}
			defer load.stop()
			var x sample
			if err := load.ask("", &x); err != nil {
				t.Fatal(err)
			}
			err = load.ask("slice 0.05 0", &x)
			// The end of a connection that still has input is a reset.
			if fails := x.Error != ""; err != nil || fails != (c.name != "nothing") || strings.Contains(x.Error, "no reply") {
				t.Errorf("answer %+v, %v", x, err)
			}
		})
	}
}

// spoiler is a proxy that changes the third megabyte of each stream. It returns its port.
func spoiler(t *testing.T, backend string, spoil func(p []byte) []byte) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			target, err := net.Dial("tcp", backend)
			if err != nil {
				client.Close()
				return
			}
			go func() {
				io.Copy(client, target)
				client.Close()
			}()
			go func() {
				defer target.Close()
				for i, p := 0, make([]byte, 1e6, 2e6); ; i++ {
					if _, err := io.ReadFull(client, p); err != nil {
						return
					}
					out := p
					if i == 2 {
						out = spoil(p)
					}
					if _, err := target.Write(out); err != nil {
						io.Copy(io.Discard, client) // the sink has closed
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().(*net.TCPAddr).Port
}
