//go:build unix

package rondo_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestUnixgram: answers go by name, to who has one; what is too long is told; the
// file is replaced if nobody has it, and removed.
func TestUnixgram(t *testing.T) {
	for _, backend := range pick.Available() {
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
			e := &rondo.Engine{NumLoops: 1, Backend: backend}
			if _, err := e.ListenPacket("unixgram", path, rondo.SocketOptions{}, reply); !errors.Is(err, syscall.EADDRINUSE) {
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
			c, err := (&rondo.Engine{NumLoops: 1, Backend: backend}).DialPacket("unixgram", mine, path, rondo.SocketOptions{},
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
