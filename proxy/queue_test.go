package proxy_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
)

// one returns a target of a port with a limit of connections.
func one(port, most int) []proxy.Target {
	all := to(port)
	all[0].MaxConns = most
	return all
}

// Clients wait for a place, first come first served, and not for ever.
func TestQueue(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	p := proxy.Pool{Targets: one(2, 1), Queue: 3, QueueTime: 10 * time.Second}
	w.apply(p)
	dial := func() *rondotest.Conn {
		c := w.Dial("tcp", front)
		c.Send("early")
		w.Run()
		return c
	}
	first := w.client(2)
	second, third := dial(), dial()
	w.Advance(time.Second)
	fourth := dial()
	w.refused(w.Dial("tcp", front))
	if err := w.logged("error"); !strings.Contains(err, "as many clients wait as may") {
		t.Errorf("logged error=%s", err)
	}
	if s := w.pool(); s.Waiting != 3 || s.Waited != 3 || s.Refused != 1 {
		t.Errorf("the counts are %+v", s)
	}
	third.Reset() // the queue goes on without it
	first.Close()
	second.Expect("2.early")
	if fourth.Buffered() > 0 {
		t.Error("two clients have the only place")
	}
	second.Close()
	w.Run()
	if q := w.logged("queue"); !strings.HasPrefix(q, "1.") {
		t.Errorf("logged queue=%s, want more than a second", q)
	}
	fourth.Expect("2.early")
	began := w.Now()
	w.refused(w.Dial("tcp", front))
	if d := w.Now().Sub(began); d < 10*time.Second || d > 11*time.Second {
		t.Errorf("a client that waits in vain is told after %v", d)
	}
	if s := w.pool(); s.Waiting != 0 || s.InVain != 1 {
		t.Errorf("the counts are %+v", s)
	}
	// A new configuration may have a place.
	fifth := dial()
	p.Targets = one(2, 2)
	w.apply(p)
	fifth.Expect("2.early")
	// Without a queue nobody waits.
	sixth := dial()
	p.Queue = 0
	w.apply(p)
	w.refused(w.Dial("tcp", front))
	fifth.Close()
	sixth.Expect("2.early")
	sixth.Close()
	fourth.Close()
	w.idle()
	// Nobody is served after Shutdown.
	p.Queue, p.Targets = 5, one(2, 1)
	w.apply(p)
	last, late := w.client(2), dial()
	w.Await(func() { w.proxy.Engine.Shutdown(w.Timeout(time.Minute)) })
	w.refused(late)
	last.Close()
	w.idle()
}

// Clients wait for a target that is down, and get it when it is up.
func TestQueueOfTargetsThatAreDown(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.apply(proxy.Pool{Targets: to(2, 3), Queue: 10, QueueTime: time.Minute, Check: proxy.Check{Kind: proxy.CheckTCP, Rise: 1, Fall: 1}})
	w.Advance(time.Second)
	c := w.Dial("tcp", front)
	c.Send("early")
	w.Advance(10 * time.Second)
	if w.pool().Waiting != 1 {
		t.Errorf("the counts are %+v", w.pool())
	}
	w.serve(3)
	c.Expect("3.early")
	c.Close()
	w.Run()
	w.Await(func() { w.proxy.Close() })
	w.Advance(time.Minute)
	w.idle()
}

// A place that becomes free on one loop serves a client of another one: none is forgotten,
// and no target has more connections than it may.
func TestQueueOfManyLoops(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		var open, most, wrong atomic.Int64
		address := testkit.Listen(t, &rondo.Engine{Backend: backend, NumLoops: 2}, func(*rondo.Conn) rondo.Handler {
			if open.Add(1) > most.Load() {
				wrong.Add(1)
			}
			return &counted{&open}
		})
		most.Store(3)
		p := &proxy.Server{Engine: &rondo.Engine{Backend: backend, NumLoops: 3}}
		err := p.Apply(proxy.Config{
			Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:0"}},
			Pools:     []proxy.Pool{{Targets: []proxy.Target{{Network: "tcp", Address: address, MaxConns: 3}}, Queue: 1000, QueueTime: time.Minute}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Engine.Close()
		const clients, each = 20, 10
		done := make(chan error, clients)
		for range clients {
			go func() {
				for range each {
					if err := exchange(p.Addrs()[0].String(), bytes.Repeat([]byte("x"), 1000)); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range clients {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if s := p.Stats().Pools[0]; s.Waiting != 0 || s.Waited == 0 || s.Refused != 0 || s.Targets[0].Conns != clients*each {
			t.Errorf("the counts are %+v", s)
		}
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d times the target had more connections than it may have", n)
		}
	})
}

// counted echoes, and counts its connection until its peer's stream has ended: then the
// proxy may open the next one.
type counted struct{ open *atomic.Int64 }

func (h *counted) Data(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }

func (h *counted) EOF(c *rondo.Conn) {
	h.open.Add(-1)
	c.Close()
}

func (h *counted) Closed(*rondo.Conn, error) {}

// A target that comes back gets a tenth of its share at first, and all of it after SlowStart.
func TestSlowStart(t *testing.T) {
	c := proxy.NewChooser(proxy.Pool{Targets: targets(1, 1), SlowStart: time.Minute})
	share := func(now time.Duration) (n int) {
		c.Now = int64(now) + 1
		for range 110 {
			if c.Choose("") == 0 {
				n++
			}
		}
		return n
	}
	c.ComesBack(0)
	for now, want := range map[time.Duration]int{0: 10} {
		if n := share(now); n < want-1 || n > want+1 {
			t.Errorf("after %v it gets %d of 110, want %d", now, n, want)
		}
	}
	if n := share(30 * time.Second); n < 35 || n > 38 {
		t.Errorf("after half of SlowStart it gets %d of 110, want a third", n)
	}
	if n := share(61 * time.Second); n < 54 || n > 56 {
		t.Errorf("after SlowStart it gets %d of 110, want half", n)
	}
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	w.serve(3)
	w.apply(proxy.Pool{Targets: to(2), SlowStart: time.Minute})
	w.apply(proxy.Pool{Targets: to(2, 3), SlowStart: time.Minute})
	for range 22 {
		c := w.Dial("tcp", front)
		w.Run()
		c.Close()
	}
	w.Run()
	if n := w.pool().Targets[1].Conns; n < 1 || n > 3 {
		t.Errorf("a new target got %d clients of 22, want two", n)
	}
}

// A target that leaves and comes back, as an address of a name may, keeps its counts and the
// places of its connections. Meanwhile the counters show it as long as it has some.
func TestTargetComesBack(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	w.serve(3)
	w.apply(proxy.Pool{Targets: one(2, 1)})
	c := w.client(2)
	w.apply(proxy.Pool{Targets: one(3, 1)})
	w.apply(proxy.Pool{Targets: one(3, 2)})
	if all := w.pool().Targets; len(all) != 2 || all[1].Address != "127.0.0.1:2" || all[1].State != "removed" || all[1].Open != 1 {
		t.Errorf("the targets are %+v", all)
	}
	w.apply(proxy.Pool{Targets: one(2, 1)})
	w.refused(w.Dial("tcp", front))
	if s := w.pool().Targets[0]; s.Open != 1 || s.Conns != 1 || s.State != "up" {
		t.Errorf("the target's counts are %+v", s)
	}
	c.Close()
	w.Run()
	c = w.client(2)
	w.apply(proxy.Pool{Targets: one(3, 1)})
	c.Close()
	w.Run()
	if all := w.pool().Targets; len(all) != 1 {
		t.Errorf("a target without connections is still shown: %+v", all)
	}
	w.apply(proxy.Pool{Targets: one(3, 3)})
	w.apply(proxy.Pool{Targets: one(2, 1)})
	if s := w.pool().Targets[0]; s.Conns != 0 {
		t.Errorf("the counts of a target that had gone are %+v", s)
	}
	w.idle()
}
