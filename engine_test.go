package rondo_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct{ in, network, address, err string }{
		{"tcp://:5000", "tcp", ":5000", ""},
		{"tcp6://[::1]:5000", "tcp6", "[::1]:5000", ""},
		{"127.0.0.1:5000", "tcp", "127.0.0.1:5000", ""},
		{":5000", "tcp", ":5000", ""},
		{"unix:///run/x.sock", "unix", "/run/x.sock", ""},
		{"unix://@abstract", "unix", "@abstract", ""},
		{"udp://:53", "udp", ":53", ""},
		{"unixgram:///run/x.sock", "unixgram", "/run/x.sock", ""},
		{"unix://", "", "", "no path"},
		{"unixgram://", "", "", "no path"},
		{"udp://localhost", "", "", "want host:port"},
		{"5000", "", "", "want host:port"},
		{"tcp://localhost", "", "", "missing port in address: want host:port"},
		{"tcp://localhost:", "", "", "missing port in address: want host:port"},
		{":", "", "", "missing port in address: want host:port"},
		{"::1:80", "", "", "too many colons in address: want host:port"},
		{"http://localhost:80", "", "", "unknown network http"},
	} {
		network, address, err := rondo.ParseAddress(c.in)
		if network != c.network || address != c.address || (err == nil) != (c.err == "") {
			t.Errorf("ParseAddress(%q) = %q, %q, %v", c.in, network, address, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), fmt.Sprintf("address %q: ", c.in))) {
			t.Errorf("ParseAddress(%q): %v; want it to say %q", c.in, err, c.err)
		}
	}
}

func TestListenErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var e rondo.Engine
	defer e.Close()
	_, err = e.Listen("tcp", taken.Addr().String(), rondo.SocketOptions{}, echo)
	var op *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &op) || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("a port in use: %v", err)
	}
	if _, err = e.Listen("udp", "127.0.0.1:0", rondo.SocketOptions{}, echo); err == nil {
		t.Error("udp was taken for a stream network")
	}
	bad := rondo.Engine{Backend: "kernel-bypass"}
	if _, err = bad.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo); err == nil || !strings.Contains(err.Error(), "choose one of") {
		t.Errorf("an unknown backend: %v", err)
	}
	if err := rondo.Serve("nonsense", echo); err == nil {
		t.Error("Serve took nonsense for an address")
	}
}

// TestZeroEngineCloses: closing and shutting down what never started is fine.
func TestZeroEngineCloses(t *testing.T) {
	var e rondo.Engine
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo); !errors.Is(err, rondo.ErrClosed) {
		t.Errorf("Listen after Close: %v", err)
	}
}

// TestOptions tries what changes no behaviour that other tests look at.
func TestOptions(t *testing.T) {
	for _, e := range []*rondo.Engine{
		{LockThreads: true}, {CPUs: []int{0}}, {CPUs: []int{100_000}}, {Spin: 50 * time.Microsecond}, {NumLoops: 3, Spin: time.Microsecond},
	} {
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{Delay: true, KeepAlive: -1, SendBuffer: 100_000, RecvBuffer: 100_000}, echo)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			roundTrip(t, "tcp", ln.Addr().String(), "hello")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
