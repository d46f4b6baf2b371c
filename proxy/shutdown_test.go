package proxy_test

import (
	"crypto/tls"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
)

// Clients that have come are served by a proxy that shuts down, whatever they wait for: a target
// that is dialed, a place, a target that is down, the end of their handshake.
func TestShutdownServesWhoHasCome(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.Blackhole("192.0.2.1")
	w.serve(2)
	w.serve(3)
	var well atomic.Bool
	w.Listen(new(rondo.Engine), "tcp", "127.0.0.1:4", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if well.Load() && string(in) == "PING\r\n" {
				in = []byte("+PONG\r\n")
			}
			c.Write(in)
			return len(in), nil
		})
	})
	w.applyAll(proxy.Config{
		Listeners: []proxy.Listener{
			{Network: "tcp", Address: front, Pool: "slow"},
			{Network: "tcp", Address: "127.0.0.1:11", Pool: "full"},
			{Network: "tcp", Address: "127.0.0.1:12", Pool: "down"},
			{Network: "tcp", Address: "127.0.0.1:13", Pool: "slow", TLS: certificate("a.test")},
		},
		Pools: []proxy.Pool{
			{Name: "slow", ConnectTimeout: 2 * time.Second, Targets: append([]proxy.Target{{Network: "tcp", Address: "192.0.2.1:80"}}, to(2)...)},
			{Name: "full", Queue: 1, QueueTime: time.Minute, Targets: one(3, 1)},
			{Name: "down", Queue: 1, QueueTime: time.Minute, Targets: to(4), Check: proxy.Check{Kind: proxy.CheckRedis, Rise: 1, Fall: 1}},
		},
	})
	w.Advance(time.Second)
	dial := func(address string) *rondotest.Conn {
		c := w.Dial("tcp", address)
		c.Send("early")
		w.Run()
		return c
	}
	dialed, other := dial(front), dial(front)
	has := w.Dial("tcp", "127.0.0.1:11")
	has.Expect("3.")
	waits, hopes := dial("127.0.0.1:11"), dial("127.0.0.1:12")
	secret := w.Dial("tcp", "127.0.0.1:13")
	w.Run()
	w.Await(func() {
		var all sync.WaitGroup
		each := func(f func()) {
			all.Add(1)
			go func() {
				defer all.Done()
				f()
			}()
		}
		for _, c := range []struct {
			*rondotest.Conn
			want string
		}{{dialed, "2.early"}, {other, "2.early"}, {waits, "3.early"}, {hopes, "early"}} {
			each(func() {
				c.Expect(c.want)
				c.Close()
			})
		}
		later := w.Timeout(time.Second)
		each(func() {
			<-later.Done()
			well.Store(true)
			has.Close()
			c := tls.Client(secret, wants("a.test"))
			io.WriteString(c, "secret")
			b := make([]byte, 8)
			if _, err := io.ReadFull(c, b); err != nil || string(b) != "2.secret" {
				t.Errorf("the client in the middle of a handshake read %q, %v", b, err)
			}
			secret.Close()
		})
		if err := w.proxy.Shutdown(w.Timeout(time.Hour)); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	w.idle()
}

// When the time of a shutdown is over, clients that still wait are reset.
func TestShutdownEnds(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	w.apply(proxy.Pool{Targets: one(2, 1), Queue: 1, QueueTime: time.Hour})
	c := w.client(2)
	waits := w.Dial("tcp", front)
	w.Run()
	var err error
	w.Await(func() { err = w.proxy.Shutdown(w.Timeout(time.Minute)) })
	if err == nil {
		t.Error("Shutdown has waited for ever")
	}
	w.refused(c)
	w.refused(waits)
	w.idle()
	// Close, and Shutdown of a Server that was never started.
	var s proxy.Server
	if err := errors.Join(s.Close(), s.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}
}

// A client that waits twice waits no longer than QueueTime in all.
func TestQueueTimeIsOne(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.Blackhole("192.0.2.1")
	w.serve(2)
	p := proxy.Pool{Targets: one(2, 1), Queue: 3, QueueTime: 10 * time.Second, ConnectTimeout: 3 * time.Second, EjectAfter: -1}
	w.apply(p)
	c := w.client(2)
	began := w.Now()
	waits := w.Dial("tcp", front)
	w.Advance(6 * time.Second)
	p.Targets = append(p.Targets, proxy.Target{Network: "tcp", Address: "192.0.2.1:80", MaxConns: 1})
	w.apply(p)
	w.Run()
	w.refused(waits)
	if d := w.Now().Sub(began); d < 13*time.Second || d > 14*time.Second {
		t.Errorf("the client was refused after %v: it was dialed for 3 s of these, and may wait for 10", d)
	}
	if s := w.pool(); s.Waited != 1 || s.InVain != 1 {
		t.Errorf("the counts are %+v", s)
	}
	c.Close()
	w.idle()
}
