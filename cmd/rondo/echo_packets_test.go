package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

// Datagrams beside streams, on every backend.
func TestEchoOfDatagrams(t *testing.T) {
	for _, args := range []string{"", "--balance reuseport --loops 2", "--backend std"} {
		_, addresses := start(t, append(strings.Fields("echo "+args), "--addr", "udp://127.0.0.1:0", "--addr", "127.0.0.1:0")...)
		if len(addresses) != 2 || !strings.HasPrefix(addresses[0], "udp://") {
			t.Fatalf("%s: addresses are %v", args, addresses)
		}
		c, err := net.Dial("udp", strings.TrimPrefix(addresses[0], "udp://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		b := make([]byte, 100)
		for _, p := range []string{"hello", "", "again"} {
			if _, err := c.Write([]byte(p)); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(b); err != nil || string(b[:n]) != p {
				t.Errorf("%s: echo of %q: %q, %v", args, p, b[:n], err)
			}
		}
		conn := dial(t, addresses[1])
		talk(t, conn, "hello", "hello")
		closeWithPeer(conn)
	}
}
