package rondo_test

import (
	"errors"
	"net"
	"net/netip"
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
	c, err := e.ListenPacket(network, address, rondo.SocketOptions{}, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return c
}

// TestPacketsAllocateNothing keeps datagrams' path free of garbage, on every
// backend.
func TestPacketsAllocateNothing(t *testing.T) {
	for _, backend := range pick.Available() {
		s := listenPacket(t, &rondo.Engine{NumLoops: 1, Backend: backend}, "udp", "127.0.0.1:0", reply)
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

// TestListenPacketErrors are worth reading.
func TestListenPacketErrors(t *testing.T) {
	var e rondo.Engine
	defer e.Close()
	s := listenPacket(t, &e, "udp", "127.0.0.1:0", reply)
	_, err := e.ListenPacket("udp", s.LocalAddr().String(), rondo.SocketOptions{}, reply)
	var op *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &op) || op.Op != "listen" || op.Net != "udp" {
		t.Errorf("listening twice: %v", err)
	}
	var unknown net.UnknownNetworkError
	if _, err = e.ListenPacket("tcp", "127.0.0.1:0", rondo.SocketOptions{}, reply); !errors.As(err, &unknown) {
		t.Errorf("datagrams on tcp: %v", err)
	}
	if _, err = e.DialPacket("udp", "", "127.0.0.1", rondo.SocketOptions{}, reply); err == nil {
		t.Error("dialing without a port")
	}
}
