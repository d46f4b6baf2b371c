package sys

import (
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestTrafficOf: the system counts what a connection has carried.
func TestTrafficOf(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	buf := make([]byte, 3000)
	client.Write(buf[:1000])
	io.ReadFull(server, buf[:1000])
	server.Write(buf)
	io.ReadFull(client, buf)

	var got Traffic
	known := false
	for begin := time.Now(); got.Out < 3000 && time.Since(begin) < time.Minute; time.Sleep(time.Millisecond) {
		if err := Control(server.(*net.TCPConn), func(fd uintptr) error { got, known = TrafficOf(fd); return nil }); err != nil {
			t.Fatal(err)
		}
		if !known && runtime.GOARCH == "arm" {
			return // CI's emulator passes no such structures on
		}
	}
	if !known || got.In != 1000 || got.Out != 3000 || got.Idle < 0 {
		t.Errorf("%+v, %v", got, known)
	}
}

// TestTrafficOfOthers: what is no TCP socket has no traffic.
func TestTrafficOfOthers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if got, ok := TrafficOf(w.Fd()); ok {
		t.Errorf("a pipe has %+v", got)
	}
}
