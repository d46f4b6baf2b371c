//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A signal behind SHUTDOWN does not end the program at once: further ones do.
func TestRedisSignalBehindShutdown(t *testing.T) {
	for _, c := range []struct {
		signals int
		timeout string
		code    int
	}{{1, "3s", 0}, {1 << 20, "1h", 1}} {
		p, addresses := start(t, "redis", "--addr", "127.0.0.1:0", "--shutdown-timeout", c.timeout)
		slow, conn := dial(t, addresses[0]), dial(t, addresses[0])
		talk(t, slow, "SETRANGE k 49999999 x\r\nGET k\r\n", ":50000000\r\n$")
		talk(t, conn, "SHUTDOWN\r\n", "")
		for end := time.Now().Add(patience); !strings.Contains(p.stderr(), "stopping: a client has called SHUTDOWN"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the log is\n%s", p.stderr())
			}
		}
		for ; c.signals > 0; c.signals-- {
			_ = sendSignal(p.cmd, syscall.SIGTERM) // an error: it has ended
			select {
			case <-p.ended:
				c.signals = 1
			case <-time.After(20 * time.Millisecond): // two at once may count as one
			}
		}
		p.wait(c.code)
	}
}
