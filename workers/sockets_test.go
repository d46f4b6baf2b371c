package workers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/workers"
)

// slowly answers after a while that is another one each time.
func slowly(ctx context.Context, line string) ([]byte, error) {
	time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
	return answer(ctx, line)
}

// TestSockets: many connections of several loops, which end their streams and get all
// answers, plain, filtered and with TLS.
func TestSockets(t *testing.T) {
	authority := testcert.New("workers test CA")
	cert := authority.Issue(testcert.ECDSA, "localhost")
	client := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
	eachBackend(t, func(t *testing.T, backend string) {
		leakless(t)
		for name, filters := range map[string][]rondo.FilterOpenFunc{
			"plain":    nil,
			"filtered": {func(*rondo.Conn) rondo.Filter { return &rondo.PassThrough{} }},
			"TLS":      {rtls.Server(&tls.Config{Certificates: []tls.Certificate{cert}})},
		} {
			p := &workers.Pool{MaxWorkers: 4, MaxQueue: 5, MaxPerConn: 3}
			e := &rondo.Engine{Backend: backend, NumLoops: 2}
			address := serve(t, e, rondo.Filtered(reply(slowly).open(p), filters...))
			var clients sync.WaitGroup
			for i := range 20 {
				var c interface {
					io.ReadWriteCloser
					CloseWrite() error
				} = dial(t, address)
				if name == "TLS" {
					c = tls.Client(c.(net.Conn), client)
				}
				clients.Add(1)
				go func() {
					defer clients.Done()
					defer c.Close()
					asked := numbers(1000*i, 1000*i+50)
					if _, err := io.WriteString(c, strings.Join(asked, "\n")+"\n"); err != nil {
						t.Error(err)
						return
					}
					if err := c.CloseWrite(); err != nil {
						t.Error(err)
						return
					}
					if got, err := io.ReadAll(c); string(got) != answers(asked) || err != nil {
						t.Errorf("%s: the answers are %q, %v", name, got, err)
					}
				}()
			}
			clients.Wait()
			p.Wait()
			until(t, "the connections to close", func() bool { return e.Stats().Open == 0 })
			if s := p.Stats(); s != (workers.Stats{}) {
				t.Errorf("%s: in the end: %+v", name, s)
			}
			e.Close()
		}
	})
}

// TestPeerNeverReads: answers wait for a peer that does not read them, and no more work
// of its runs than its share. Each answer is longer than may wait for the wire.
func TestPeerNeverReads(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		const size, share, asked = 3 << 20, 3, 6
		for _, most := range []int{0, 1 << 10, 1 << 20} {
			p, g := &workers.Pool{MaxPerConn: share}, newGate()
			g.letAll()
			e := &rondo.Engine{Backend: backend, NumLoops: 1, MaxOutput: most}
			var ref rondo.Ref
			address := serve(t, e, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
				ref = c.Ref()
				return &session{q: q, reply: func(_ context.Context, line string) ([]byte, error) {
					g.pass(line)
					return bytes.Repeat([]byte(line), size), nil
				}}
			}))
			c := dial(t, address)
			c.SetReadBuffer(64 << 10)
			io.WriteString(c, strings.ReplaceAll("abcdef", "", "\n")[1:])
			until(t, "answers", func() bool { return len(g.order()) >= share })
			time.Sleep(20 * time.Millisecond)
			if n := len(g.order()); n > share+3 { // those that fit into the system's buffers
				t.Errorf("MaxOutput %d: %d functions were called for a peer that does not read", most, n)
			}
			waiting := make(chan int)
			ref.Do(func(c *rondo.Conn) { waiting <- c.Buffered() })
			if n := <-waiting; n > rondo.DefaultMaxOutput {
				t.Errorf("MaxOutput %d: %d bytes wait", most, n)
			}
			c.CloseWrite()
			got := make([]byte, size)
			for i := range asked {
				want := []byte{byte('a' + i)}
				if n, err := io.ReadFull(c, got); err != nil || bytes.Count(got, want) != size {
					t.Fatalf("MaxOutput %d: of answer %s came %d bytes, %v", most, want, bytes.Count(got[:n], want), err)
				}
			}
			if n, err := c.Read(got); err != io.EOF {
				t.Errorf("MaxOutput %d: after the end came %q, %v", most, got[:n], err)
			}
			e.Close()
		}
	})
}

// TestPeerGoes: peers that go away in the middle leave nothing behind.
func TestPeerGoes(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		leakless(t)
		p := &workers.Pool{MaxWorkers: 3, MaxQueue: 4, MaxPerConn: 3}
		e := &rondo.Engine{Backend: backend, NumLoops: 2, Linger: 100 * time.Millisecond}
		address := serve(t, e, reply(func(ctx context.Context, line string) ([]byte, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(rand.IntN(1000)) * time.Microsecond):
			}
			return answer(ctx, line)
		}).open(p))
		var clients sync.WaitGroup
		for i := range 8 {
			clients.Add(1)
			go func() {
				defer clients.Done()
				for range 20 {
					c, err := net.Dial("tcp", address)
					if err != nil {
						t.Error(err)
						return
					}
					c.SetDeadline(time.Now().Add(time.Minute))
					io.WriteString(c, strings.Join(numbers(0, 10), "\n")+"\n")
					switch rand.IntN(3) {
					case 0:
						c.(*net.TCPConn).SetLinger(0)
					case 1:
						got := make([]byte, 6)
						if _, err := io.ReadFull(c, got); string(got) != "re: 0\n" {
							t.Errorf("client %d got %q, %v", i, got, err)
						}
					}
					c.Close()
				}
			}()
		}
		clients.Wait()
		c := dial(t, address)
		if got := ask(t, c, "still here"); got != "re: still here\n" {
			t.Errorf("afterwards: %q", got)
		}
		until(t, "the connections to close", func() bool { return e.Stats().Open == 0 })
		p.Wait()
		if s := p.Stats(); s != (workers.Stats{}) {
			t.Errorf("in the end: %+v", s)
		}
	})
}

// TestTwoEngines: one pool serves several engines. Closing one leaves the other's
// connections their places.
func TestTwoEngines(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		p, g := &workers.Pool{MaxWorkers: 1, MaxQueue: 1}, newGate()
		var engines []*rondo.Engine
		var addresses []string
		for range 2 {
			e := &rondo.Engine{Backend: backend, NumLoops: 2}
			engines = append(engines, e)
			addresses = append(addresses, serve(t, e, reply(g.reply).open(p)))
		}
		first, second := dial(t, addresses[0]), dial(t, addresses[0])
		io.WriteString(first, "1\n2\n3\n")
		until(t, "the pool to be full", func() bool { return p.Stats() == workers.Stats{Goroutines: 1, Running: 1, Queued: 1, Blocked: 1} })
		io.WriteString(second, "4\n")
		until(t, "two blocked ones", func() bool { return p.Stats().Blocked == 2 })
		third := dial(t, addresses[1])
		io.WriteString(third, "5\n")
		until(t, "three blocked ones", func() bool { return p.Stats().Blocked == 3 })
		engines[0].Close()
		until(t, "the last one's place", func() bool { return p.Stats() == workers.Stats{Goroutines: 1, Running: 1, Queued: 1} })
		g.letAll()
		if got := ask(t, third); got != "re: 5\n" {
			t.Errorf("the other engine's connection got %q", got)
		}
		p.Wait()
		if order := fmt.Sprint(g.order()); order != "[1 5]" {
			t.Errorf("called were %s", order)
		}
	})
}
