//go:build unix

package main

import (
	"bytes"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

var (
	upgrades = flag.Int("upgrades", 3, "upgrades of the proxy under load")
	live     = flag.Int("live", 50, "connections meanwhile, of which each byte is checked")
	pause    = flag.Duration("pause", 20*time.Millisecond, "mean time between two messages of a connection")
	between  = flag.Duration("between", 100*time.Millisecond, "time between two upgrades, and a thirtieth of the time without one")
)

// Connections of which each byte is checked go on through many upgrades. The log has the
// latencies without upgrades and with them.
func TestProxyUpgradeUnderLoad(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	args, _, pidfile := upgradeArgs(t, echo)
	first, addresses := startCommand(t, exec.Command(binary, args...))
	var conns []net.Conn
	for range *live {
		c := dial(t, addresses[0])
		c.SetDeadline(time.Time{})
		talk(t, c, "a", "a")
		conns = append(conns, c)
	}
	quiet := underLoad(t, conns, func() { time.Sleep(30 * *between) })
	pid := first.cmd.Process.Pid
	busy := underLoad(t, conns, func() {
		for range *upgrades {
			time.Sleep(*between)
			syscall.Kill(pid, syscall.SIGUSR2)
			pid = pidIn(t, pidfile, pid)
		}
	})
	for _, h := range []struct {
		name string
		*hdrhistogram.Histogram
	}{{"without upgrades", quiet}, {"with upgrades", busy}} {
		t.Logf("%s: %d messages; microseconds: p50 %d, p99 %d, p99.9 %d, longest %d", h.name, h.TotalCount(),
			h.ValueAtQuantile(50), h.ValueAtQuantile(99), h.ValueAtQuantile(99.9), h.Max())
	}
	for _, c := range conns {
		c.Close()
	}
	syscall.Kill(pid, syscall.SIGTERM)
	first.wait(0)
}

// underLoad runs f while all connections send messages and want them back. It returns the
// latencies, in microseconds.
func underLoad(t *testing.T, conns []net.Conn, f func()) *hdrhistogram.Histogram {
	stop := make(chan struct{})
	all := hdrhistogram.New(1, 60_000_000, 3)
	var mu sync.Mutex // for all
	var clients sync.WaitGroup
	for i, c := range conns {
		clients.Add(1)
		go func() {
			defer clients.Done()
			r := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)})
			out, in := make([]byte, 2048), make([]byte, 2048)
			for {
				wait := time.Duration(r.Uint64() % uint64(2**pause))
				select {
				case <-stop:
					return
				case <-time.After(wait):
				}
				n := 1 + int(r.Uint64()%2048)
				r.Read(out[:n])
				began := time.Now()
				if _, err := c.Write(out[:n]); err != nil {
					t.Error(err)
					return
				}
				if _, err := io.ReadFull(c, in[:n]); err != nil || !bytes.Equal(in[:n], out[:n]) {
					t.Errorf("connection %d: %v, or wrong bytes", i, err)
					return
				}
				took := time.Since(began)
				mu.Lock()
				all.RecordValue(took.Microseconds())
				mu.Unlock()
			}
		}()
	}
	f()
	close(stop)
	clients.Wait()
	return all
}
