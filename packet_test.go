package rondo_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// reply echoes datagrams.
var reply = rondo.PacketHandlerFunc(func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) { c.Reply(p) })

func listenPacket(t testing.TB, e *rondo.Engine, network, address string, h rondo.PacketHandler) *rondo.PacketConn {
	t.Helper()
	c, err := e.ListenPacket(network, address, rondo.Socket{}, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return c
}

// TestPacketsAllocateNothing keeps datagrams' path free of garbage, on every
// backend.
func TestPacketsAllocateNothing(t *testing.T) {
	for _, backend := range pick.Names() {
		s := listenPacket(t, &rondo.Engine{Loops: 1, Backend: backend}, "udp", "127.0.0.1:0", reply)
		c, err := net.Dial("udp", s.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		msg, back := make([]byte, 1200), make([]byte, 1200)
		n := testing.AllocsPerRun(500, func() {
			for range 4 {
				if _, err := c.Write(msg); err != nil {
					t.Fatal(err)
				}
			}
			for range 4 {
				if _, err := c.Read(back); err != nil {
					t.Fatal(err)
				}
			}
		})
		if n >= 1 {
			t.Errorf("%s: an echo of 4 datagrams makes %v allocations", backend, n)
		}
	}
}

// TestUnixgram: answers go by name, to who has one; what is too long is told; the
// file is replaced if nobody has it, and removed.
func TestUnixgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no unixgram")
	}
	for _, backend := range pick.Names() {
		t.Run(backend, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "unixgram")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			path, mine := filepath.Join(dir, "server"), filepath.Join(dir, "client")
			left, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			e := &rondo.Engine{Loops: 1, Backend: backend}
			if _, err := e.ListenPacket("unixgram", path, rondo.Socket{}, reply); !errors.Is(err, syscall.EADDRINUSE) {
				t.Fatalf("ListenPacket on a socket in use: %v", err)
			}
			left.Close()
			var truncated, name atomic.Value
			listenPacket(t, e, "unixgram", path, rondo.PacketHandlerFunc(func(c *rondo.PacketConn, p []byte, from netip.AddrPort) {
				truncated.Store(c.Truncated())
				name.Store(c.Name())
				c.Reply(p[:min(len(p), 100)])
			}))
			answers := make(chan string, 10)
			c, err := (&rondo.Engine{Loops: 1, Backend: backend}).DialPacket("unixgram", mine, path, rondo.Socket{},
				rondo.PacketHandlerFunc(func(_ *rondo.PacketConn, p []byte, _ netip.AddrPort) { answers <- string(p) }))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Loop().Engine().Close()
			for _, size := range []int{0, 5, 100_000} {
				p := bytes.Repeat([]byte("x"), size)
				if err := c.Ref().WriteTo(p, netip.AddrPort{}); err != nil {
					t.Fatal(err)
				}
				if got := <-answers; got != string(p[:min(size, 100)]) {
					t.Errorf("%d bytes were answered with %q", size, got)
				}
				if name.Load() != mine || truncated.Load() != (size > 64<<10) {
					t.Errorf("%d bytes came from %q, truncated: %v", size, name.Load(), truncated.Load())
				}
			}
			if n := e.Stats().PacketsTruncated; n > 1 {
				t.Errorf("%d datagrams counted as truncated", n)
			}
			e.Close()
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("the file is still there: %v", err)
			}
		})
	}
}

// TestPacketsDroppedAreCounted: what the system had no room for shows in Stats.
func TestPacketsDroppedAreCounted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	for _, backend := range pick.Names() {
		e := &rondo.Engine{Loops: 1, Backend: backend}
		s := listenPacket(t, e, "udp", "127.0.0.1:0", reply)
		paused := make(chan struct{})
		s.Ref().Do(func(s *rondo.PacketConn) { s.Pause(); close(paused) })
		<-paused
		c, err := net.Dial("udp", s.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const flood = 5000
		for range flood {
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		s.Ref().Do((*rondo.PacketConn).Resume)
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			c.Write([]byte("count"))
			st := e.Stats()
			if st.PacketsDropped > 0 && st.PacketsDropped < flood && st.PacketsIn > 0 {
				break
			}
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("%s: %d datagrams in, %d counted as dropped", backend, st.PacketsIn, st.PacketsDropped)
			}
		}
	}
}

// TestListenPacketErrors are worth reading.
func TestListenPacketErrors(t *testing.T) {
	var e rondo.Engine
	defer e.Close()
	s := listenPacket(t, &e, "udp", "127.0.0.1:0", reply)
	_, err := e.ListenPacket("udp", s.LocalAddr().String(), rondo.Socket{}, reply)
	var op *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &op) || op.Op != "listen" || op.Net != "udp" {
		t.Errorf("listening twice: %v", err)
	}
	var unknown net.UnknownNetworkError
	if _, err = e.ListenPacket("tcp", "127.0.0.1:0", rondo.Socket{}, reply); !errors.As(err, &unknown) {
		t.Errorf("datagrams on tcp: %v", err)
	}
	if _, err = e.DialPacket("udp", "", "127.0.0.1", rondo.Socket{}, reply); err == nil {
		t.Error("dialing without a port")
	}
}
