//go:build unix

package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

var (
	upgrades = flag.Int("upgrades", 3, "upgrades under load, of each server")
	live     = flag.Int("live", 50, "connections meanwhile, of which each byte is checked")
	pause    = flag.Duration("pause", 20*time.Millisecond, "mean time between two messages of a connection")
	between  = flag.Duration("between", 100*time.Millisecond, "time between two upgrades, and a thirtieth of the time without one")
)

// Connections of which each byte is checked go on through many upgrades, and new ones come all the
// time. None is refused or lost. The log has the latencies without upgrades and with them.
func TestProxyUpgradeUnderLoad(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	args, _, pidfile := upgradeArgs(t, echo)
	upgradeUnderLoad(t, args, pidfile, echoed)
}

func TestEchoUpgradeUnderLoad(t *testing.T) {
	args, _, pidfile := serverArgs(t, "echo", "--addr", "127.0.0.1:0")
	upgradeUnderLoad(t, args, pidfile, echoed)
}

// Each message is the body of a request, on connections that are kept alive.
func TestHTTPUpgradeUnderLoad(t *testing.T) {
	args, _, pidfile := serverArgs(t, "http", "--addr", "127.0.0.1:0", "--echo", "--access-log", "off")
	upgradeUnderLoad(t, args, pidfile, requested)
}

// An exchange sends a message and wants it back.
type exchange func(c *talker, message []byte) error

// A talker is a client's connection.
type talker struct {
	net.Conn
	in   *bufio.Reader
	back []byte
}

func newTalker(c net.Conn) *talker {
	c.SetDeadline(time.Time{})
	return &talker{c, bufio.NewReader(c), make([]byte, 2048)}
}

func (c *talker) wants(message []byte) error {
	if _, err := io.ReadFull(c.in, c.back[:len(message)]); err != nil {
		return err
	}
	if !bytes.Equal(c.back[:len(message)], message) {
		return fmt.Errorf("wrong bytes")
	}
	return nil
}

func echoed(c *talker, message []byte) error {
	if _, err := c.Write(message); err != nil {
		return err
	}
	return c.wants(message)
}

func requested(c *talker, message []byte) error {
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n", len(message))
	if _, err := c.Write(append([]byte(head), message...)); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode != 200 || !bytes.Equal(got, message):
		return fmt.Errorf("%s, %d bytes, want %d", answer.Status, len(got), len(message))
	case answer.Close: // it was in the middle of a request for too long
		return fmt.Errorf("the server closes the connection")
	}
	return nil
}

func upgradeUnderLoad(t *testing.T, args []string, pidfile string, f exchange) {
	first, addresses := startCommand(t, exec.Command(binary, args...))
	var conns []*talker
	for range *live {
		c := newTalker(dial(t, addresses[0]))
		if err := f(c, []byte("a")); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	quiet := underLoad(t, conns, f, func() { time.Sleep(30 * *between) })
	pid := first.cmd.Process.Pid
	came := func() {}
	busy := underLoad(t, conns, f, func() {
		came = newcomers(t, addresses[0], f)
		for range *upgrades {
			time.Sleep(*between)
			syscall.Kill(pid, syscall.SIGUSR2)
			pid = pidIn(t, pidfile, pid)
		}
	})
	came()
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
	if strings.Contains(first.stderr(), "upgrade: no other process") {
		t.Errorf("an upgrade has failed:\n%s", first.stderr())
	}
}

// newcomers connect, have one message answered, and go, until stop is called.
func newcomers(t *testing.T, address string, f exchange) (stop func()) {
	const clients = 2
	_, address, _ = strings.Cut(address, "://")
	var over atomic.Bool
	var came atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for !over.Load() {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Errorf("refused: %v", err)
					return
				}
				if err := f(newTalker(c), []byte("hello")); err != nil {
					t.Errorf("a new client is lost: %v", err)
					over.Store(true)
				}
				c.Close()
				came.Add(1)
				time.Sleep(*pause / 10)
			}
		}()
	}
	return func() {
		over.Store(true)
		all.Wait()
		t.Logf("%d clients came meanwhile", came.Load())
	}
}

// underLoad runs f while all connections exchange messages. It returns the latencies, in
// microseconds.
func underLoad(t *testing.T, conns []*talker, e exchange, f func()) *hdrhistogram.Histogram {
	stop := make(chan struct{})
	all := hdrhistogram.New(1, 60_000_000, 3)
	var mu sync.Mutex // for all
	var clients sync.WaitGroup
	for i, c := range conns {
		clients.Add(1)
		go func() {
			defer clients.Done()
			r := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)})
			out := make([]byte, 2048)
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
				if err := e(c, out[:n]); err != nil {
					t.Errorf("connection %d: %v", i, err)
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
