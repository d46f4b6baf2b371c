package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/testkit"
)

// SHUTDOWN ends the program with status 0, also if the service manager sends a signal
// right behind it. Clients get the replies that they are owed.
func TestRedisShutdownCommand(t *testing.T) {
	_, port, _ := net.SplitHostPort(testkit.FreeAddress(t))
	for _, args := range [][]string{
		{"--addr", "127.0.0.1:0"},
		{"--addr", "127.0.0.1:0", "--loops", "3"},
		{"--addr", "127.0.0.1:0", "--backend", "std"},
		{"--", "--port", port, "--bind", "127.0.0.1"},
	} {
		p, addresses := start(t, append([]string{"redis"}, args...)...)
		idle := dial(t, addresses[0])
		talk(t, idle, "PING\r\n", "+PONG\r\n")
		conn := dial(t, addresses[0])
		talk(t, conn, "SHUTDOWN ABORT\r\nSHUTDOWN SAVE\r\n", "-ERR No shutdown in progress.\r\n-ERR Errors trying to SHUTDOWN. Check logs.\r\n")
		talk(t, conn, "SET k v\r\nSHUTDOWN\r\nGET k\r\n", "+OK\r\n")
		for _, c := range []net.Conn{conn, idle} {
			if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
				t.Errorf("%v: got %q, %v", args, rest, err)
			}
			c.Close()
		}
		p.wait(0)
		if log := p.stderr(); !strings.Contains(log, "SHUTDOWN: a client ends the server") || !strings.Contains(log, "stopping: a client has called SHUTDOWN") {
			t.Errorf("%v: the log is\n%s", args, log)
		}
	}
}

// A script that has written ends with the server only.
func TestRedisShutdownBesideAScript(t *testing.T) {
	p, addresses := start(t, "redis", "--addr", "127.0.0.1:0")
	script, conn := dial(t, addresses[0]), dial(t, addresses[0])
	talk(t, conn, "CONFIG SET busy-reply-threshold 1\r\n", "+OK\r\n")
	if _, err := io.WriteString(script, "EVAL \"redis.call('SET', 'k', 'v') while true do end\" 0\r\n"); err != nil {
		t.Fatal(err)
	}
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := io.WriteString(conn, "GET k\r\n"); err != nil {
			t.Fatal(err)
		}
		var reply [1]byte
		if _, err := io.ReadFull(conn, reply[:]); err != nil {
			t.Fatal(err)
		}
		if reply[0] == '-' {
			talk(t, conn, "", busy[1:])
			break
		}
		talk(t, conn, "", "-1\r\n")
		if time.Now().After(end) {
			t.Fatal("the script is not busy")
		}
	}
	talk(t, conn, "SHUTDOWN\r\n", busy)
	talk(t, conn, "SHUTDOWN NOSAVE\r\n", "")
	closeWithPeer(conn)
	closeWithPeer(script)
	p.wait(0)
}
