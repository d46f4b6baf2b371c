package rondo_test

import (
	"net"
	"testing"

	"github.com/rondo-go/rondo"
)

// echo serves every connection by sending back what comes.
func echo(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) }

func roundTrip(t *testing.T, network, address, msg string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte(msg)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := c.Read(b); err != nil || string(b[:n]) != msg {
		t.Fatalf("echo of %q: %q, %v", msg, b[:n], err)
	}
	return c
}
