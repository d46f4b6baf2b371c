package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
)

// A world is a proxy at 127.0.0.1:1 of a simulated network, and its targets.
type world struct {
	*rondotest.Network
	t      *testing.T
	proxy  *proxy.Server
	access testkit.Log
	events testkit.Log
}

func newWorld(t *testing.T, o rondotest.Options) *world {
	w := &world{Network: rondotest.New(t, o), t: t}
	w.proxy = &proxy.Server{Engine: w.Engine(new(rondo.Engine)), AccessLog: w.access.Logger(), Logger: w.events.Logger()}
	return w
}

const front = "127.0.0.1:1"

// apply makes the pool the configuration, with one listener.
func (w *world) apply(p proxy.Pool) {
	w.t.Helper()
	w.applyAll(proxy.Config{Listeners: []proxy.Listener{{Network: "tcp", Address: front}}, Pools: []proxy.Pool{p}})
}

func (w *world) applyAll(c proxy.Config) {
	w.t.Helper()
	var err error
	w.Await(func() { err = w.proxy.Apply(c) })
	if err != nil {
		w.t.Fatal(err)
	}
}

// to makes targets at the ports of 127.0.0.1.
func to(ports ...int) (all []proxy.Target) {
	for _, port := range ports {
		all = append(all, proxy.Target{Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	return all
}

// serve makes a target that says its port and then echoes.
func (w *world) serve(port int) *rondo.Listener {
	w.t.Helper()
	return w.Listen(new(rondo.Engine), "tcp", fmt.Sprintf("127.0.0.1:%d", port), func(c *rondo.Conn) rondo.Handler {
		fmt.Fprintf(c, "%d.", port)
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
}

// stop ends a target's listening.
func (w *world) stop(ln *rondo.Listener) {
	w.t.Helper()
	w.Await(func() { ln.Close() })
}

// client connects to the proxy and expects the target of a port.
func (w *world) client(port int) *rondotest.Conn {
	w.t.Helper()
	c := w.Dial("tcp", front)
	c.Expect(fmt.Sprintf("%d.", port))
	return c
}

// refused wants the client to be reset without an answer.
func (w *world) refused(c *rondotest.Conn) {
	w.t.Helper()
	if n, err := c.Read(make([]byte, 10)); n > 0 || err == nil || err == io.EOF || errors.Is(err, rondotest.ErrIdle) {
		w.t.Errorf("a client that cannot be served read %d bytes, %v; want a reset", n, err)
	}
}

// pool returns the counts of the only pool.
func (w *world) pool() proxy.PoolStats { return w.proxy.Stats().Pools[0] }

// idle wants the proxy to have no connections.
func (w *world) idle() {
	w.t.Helper()
	w.Run()
	s := w.proxy.Stats()
	for _, l := range s.Listeners {
		if l.Open != 0 {
			w.t.Errorf("listener %s still has %d connections", l.Address, l.Open)
		}
	}
	for _, p := range s.Pools {
		for _, target := range p.Targets {
			if target.Open != 0 {
				w.t.Errorf("target %s still has %d connections", target.Address, target.Open)
			}
		}
	}
	if open := w.proxy.Engine.Stats().Open; open != 0 {
		w.t.Errorf("the engine still has %d connections", open)
	}
}

// logged returns the value of a field in the last line of the access log.
func (w *world) logged(field string) string {
	lines := strings.Split(strings.TrimSpace(w.access.String()), "\n")
	m := regexp.MustCompile(` ` + field + `=("[^"]*"|\S*)`).FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		return ""
	}
	return m[1]
}

// A stream passes in both directions, with half-close, and is logged and counted.
func TestPasses(t *testing.T) {
	for seed := range uint64(12) {
		w := newWorld(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
		w.serve(2)
		w.apply(proxy.Pool{Name: "web", Targets: to(2)})
		c := w.client(2)
		text := strings.Repeat("over and back ", 3_000)
		w.Await(func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Send(text)
				c.CloseWrite()
			}()
			c.Expect(text)
			c.ExpectEOF()
			<-done
		})
		c.Close()
		w.idle()
		stats := w.pool().Targets[0]
		if stats.Conns != 1 || stats.FromClients != uint64(len(text)) || stats.FromTarget != uint64(len(text))+2 || stats.State != "up" {
			t.Errorf("the target's counts are %+v", stats)
		}
		for field, want := range map[string]string{
			"msg": "connection", "pool": "web", "target": "tcp://127.0.0.1:2", "listener": "tcp://127.0.0.1:1",
			"received": fmt.Sprint(len(text)), "sent": fmt.Sprint(len(text) + 2), "ended_by": "client", "error": "",
		} {
			if got := w.logged(field); got != want {
				t.Errorf("logged %s=%s, want %q", field, got, want)
			}
		}
		if l := w.proxy.Stats().Listeners[0]; l.Accepted != 1 || l.Address != front {
			t.Errorf("the listener's counts are %+v", l)
		}
	}
}

// A client of a target that refuses gets the next one, with the bytes that it has sent.
func TestRetry(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(4)
	w.apply(proxy.Pool{Targets: to(2, 3, 4)})
	for range 3 {
		c := w.Dial("tcp", front)
		c.Send("early")
		c.Expect("4.early")
		c.Close()
	}
	w.idle()
	p := w.pool()
	if p.Retries != p.Targets[0].DialsFailed+p.Targets[1].DialsFailed || p.Retries < 3 || p.Refused != 0 || p.Targets[2].Conns != 3 {
		t.Errorf("the counts are %+v", p)
	}
}

// No target takes the client: it is reset after Tries dials, at once.
func TestRefused(t *testing.T) {
	for _, tries := range []int{0, 1, 2, 100} {
		w := newWorld(t, rondotest.Options{})
		w.apply(proxy.Pool{Tries: tries, Targets: to(2, 3, 4, 5), EjectAfter: -1})
		began := w.Now()
		w.refused(w.Dial("tcp", front))
		if d := w.Now().Sub(began); d > 100*time.Millisecond {
			t.Errorf("the client was told after %v", d)
		}
		w.idle()
		want := uint64(tries)
		if tries == 0 {
			want = proxy.DefaultTries
		}
		if p := w.pool(); p.Retries != min(want, 4)-1 || p.Refused != 1 {
			t.Errorf("Tries %d: the counts are %+v", tries, p)
		}
		if by, err := w.logged("ended_by"), w.logged("error"); by != "proxy" || !strings.Contains(err, "refused") {
			t.Errorf("logged ended_by=%s error=%s", by, err)
		}
	}
}

// A target that is silent costs ConnectTimeout. A client that resets meanwhile is noticed,
// and gives its place back.
func TestSilentTarget(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.Blackhole("192.0.2.1")
	w.serve(2)
	w.apply(proxy.Pool{ConnectTimeout: 3 * time.Second, Targets: append([]proxy.Target{{Network: "tcp", Address: "192.0.2.1:80"}}, to(2)...)})
	began := w.Now()
	w.client(2).Close()
	if d := w.Now().Sub(began); d < 3*time.Second || d > 4*time.Second {
		t.Errorf("the second target answered after %v", d)
	}
	w.client(2).Close()
	c := w.Dial("tcp", front)
	c.Send("hello")
	w.Run()
	c.Reset()
	w.idle()
	if by := w.logged("ended_by"); by != "client" {
		t.Errorf("logged ended_by=%s", by)
	}
	long := w.Dial("tcp", front) // sends more than is read early
	long.Send(strings.Repeat("x", 60_000))
	w.Run()
	w.Await(func() { w.proxy.Engine.Shutdown(w.Timeout(time.Minute)) })
	w.idle()
}

// A target that fails often gets no clients for a while, unless there is no other one.
func TestEjection(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(3)
	w.apply(proxy.Pool{EjectAfter: 2, EjectTime: 10 * time.Second, Targets: to(2, 3)})
	for range 10 {
		w.client(3).Close()
	}
	w.Run()
	if p := w.pool(); p.Targets[0].DialsFailed != 2 || p.Targets[0].Ejections != 1 || p.Targets[0].State != "ejected" {
		t.Errorf("the failing target's counts are %+v", p.Targets[0])
	}
	if log := w.events.String(); !strings.Contains(log, "a target failed too often") {
		t.Errorf("the log is %q", log)
	}
	w.serve(2)
	w.client(3).Close()
	w.client(3).Close()
	w.Advance(11 * time.Second)
	if s := w.pool().Targets[0].State; s != "up" {
		t.Errorf("after EjectTime the target is %s", s)
	}
	seen := make(map[string]bool)
	for range 4 {
		c := w.Dial("tcp", front)
		b := make([]byte, 2)
		io.ReadFull(c, b)
		seen[string(b)] = true
		c.Close()
	}
	if len(seen) != 2 {
		t.Errorf("the clients got %v, want both targets", seen)
	}
	w.idle()
}

// The only target is tried even if it is ejected, and serves as soon as it can.
func TestEjectedIsBetterThanNone(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.apply(proxy.Pool{EjectAfter: 1, EjectTime: time.Hour, Targets: to(2)})
	for range 3 {
		w.refused(w.Dial("tcp", front))
	}
	w.serve(2)
	w.client(2).Close()
	w.idle()
}

// A target that breaks its connections before it has sent anything fails too. One that has
// answered does not.
func TestBroken(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	answer := false
	w.Listen(new(rondo.Engine), "tcp", "127.0.0.1:2", func(c *rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if answer {
				c.Write(in)
				c.Flush()
			}
			c.Loop().AfterFunc(time.Second, func() { c.Abort(nil) })
			return len(in), nil
		})
	})
	w.serve(3)
	w.apply(proxy.Pool{EjectAfter: 2, Targets: to(2, 3)})
	break2 := func() {
		c := w.Dial("tcp", front)
		c.Send("hello")
		if answer {
			c.Expect("hello")
		}
		w.refused(c)
	}
	answer = true
	break2()
	w.client(3).Close()
	answer = false
	break2()
	w.client(3).Close()
	if by, p := w.logged("ended_by"), w.pool().Targets[0]; p.Broken != 1 || p.Ejections != 0 {
		t.Errorf("the counts are %+v, ended_by=%s", p, by)
	}
	break2()
	if p := w.pool().Targets[0]; p.Broken != 2 || p.Ejections != 1 {
		t.Errorf("the counts are %+v", p)
	}
	w.idle()
}

// Limits of targets and listeners.
func TestMaxConns(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	all := to(2)
	all[0].MaxConns = 2
	w.apply(proxy.Pool{Targets: all})
	a, b := w.client(2), w.client(2)
	w.refused(w.Dial("tcp", front))
	if err := w.logged("error"); !strings.Contains(err, "as many connections as they may") {
		t.Errorf("logged error=%s", err)
	}
	a.Close()
	w.Run()
	w.client(2).Close()
	b.Close()
	w.idle()
	w.applyAll(proxy.Config{Listeners: []proxy.Listener{{Network: "tcp", Address: front, MaxConns: 1}}, Pools: []proxy.Pool{{Targets: to(2)}}})
	c := w.client(2)
	w.refused(w.Dial("tcp", front))
	c.Close()
	w.Run()
	w.client(2).Close()
	w.idle()
	if l := w.proxy.Stats().Listeners[0]; l.Refused != 1 {
		t.Errorf("the listener's counts are %+v", l)
	}
}

// Apply keeps what stays, and connections go on, whatever changes.
func TestApply(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	for port := 2; port <= 4; port++ {
		w.serve(port)
	}
	w.apply(proxy.Pool{Name: "a", Targets: to(2)})
	old := w.client(2)
	again := w.proxy.Stats().Listeners[0]
	w.applyAll(proxy.Config{
		Listeners: []proxy.Listener{
			{Network: "tcp", Address: front, Pool: "b"},
			{Network: "tcp", Address: "127.0.0.1:10", Pool: "a"},
			{Network: "unix", Address: "/run/proxy", Pool: "b"},
		},
		Pools: []proxy.Pool{{Name: "a", Targets: to(4, 2)}, {Name: "b", Targets: to(3)}},
	})
	w.client(3).Close()
	other := w.Dial("unix", "/run/proxy")
	other.Expect("3.")
	other.Close()
	s := w.proxy.Stats()
	if l := s.Listeners[0]; l.Accepted != again.Accepted+1 {
		t.Errorf("the listener that stays has counted %+v, before it was %+v", l, again)
	}
	if p := s.Pools[0]; p.Targets[1].Conns != 1 || p.Targets[1].Open != 1 {
		t.Errorf("the target that stays has counted %+v", p.Targets[1])
	}
	// A configuration that cannot be applied changes nothing.
	taken := w.Listen(new(rondo.Engine), "tcp", "127.0.0.1:20", testkit.Echo)
	var err error
	w.Await(func() {
		err = w.proxy.Apply(proxy.Config{
			Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:11"}, {Network: "tcp", Address: taken.Addr().String()}},
			Pools:     []proxy.Pool{{Targets: to(4)}},
		})
	})
	if err == nil {
		t.Error("Apply listens on an address that is taken")
	}
	w.client(3).Close()
	if _, err := w.DialContext(t.Context(), "tcp", "127.0.0.1:11"); err == nil {
		t.Error("the proxy listens on an address of a configuration that failed")
	}
	w.apply(proxy.Pool{Name: "b", Targets: to(4)})
	if _, err := w.DialContext(t.Context(), "tcp", "127.0.0.1:10"); err == nil {
		t.Error("the proxy listens on an address that the configuration no longer has")
	}
	w.client(4).Close()
	old.Send("still there")
	old.Expect("still there")
	old.Close()
	w.idle()
	w.Await(func() { w.proxy.Close() })
	w.Await(func() { err = w.proxy.Apply(proxy.Config{}) })
	if !errors.Is(err, rondo.ErrClosed) {
		t.Errorf("Apply after Close: %v", err)
	}
}

// Values without meaning are errors that name them.
func TestMistakes(t *testing.T) {
	web := proxy.Pool{Name: "web", Targets: to(2)}
	with := func(f func(*proxy.Pool)) proxy.Config {
		p := web
		p.Targets = to(2)
		f(&p)
		return proxy.Config{Pools: []proxy.Pool{p}}
	}
	for want, c := range map[string]proxy.Config{
		`pool "web": it has no targets`:                                         with(func(p *proxy.Pool) { p.Targets = nil }),
		`pool "web": Pool.Tries is -1: want 0, for the default, or more`:        with(func(p *proxy.Pool) { p.Tries = -1 }),
		`pool "web": Pool.Balance is 7: want RoundRobin`:                        with(func(p *proxy.Pool) { p.Balance = 7 }),
		`pool "web": Pool.Idle is -1ns: want 0, for no limit, or more`:          with(func(p *proxy.Pool) { p.Idle = -1 }),
		`target tcp://127.0.0.1:2: Target.Weight is -1: want 0, for 1, to 1000`: with(func(p *proxy.Pool) { p.Targets[0].Weight = -1 }),
		`target tcp://127.0.0.1:2: Target.MaxConns is -1`:                       with(func(p *proxy.Pool) { p.Targets[0].MaxConns = -1 }),
		`target udp://127.0.0.1:2: the network is "udp": want tcp, tcp4`:        with(func(p *proxy.Pool) { p.Targets[0].Network = "udp" }),
		`target tcp://127.0.0.1: want host:port`:                                with(func(p *proxy.Pool) { p.Targets[0].Address = "127.0.0.1" }),
		`target tcp://127.0.0.1:2 is there twice: give it a weight`:             with(func(p *proxy.Pool) { p.Targets = to(2, 2) }),
		`there are two pools "web": want a name for each`:                       {Pools: []proxy.Pool{web, web}},
		`listener tcp://:1: there are 0 pools: want the name of one`:            {Listeners: []proxy.Listener{{Network: "tcp", Address: ":1"}}},
		`listener tcp://:1: there is no pool "app"`:                             {Pools: []proxy.Pool{web}, Listeners: []proxy.Listener{{Network: "tcp", Address: ":1", Pool: "app"}}},
		`listener tcp://:1: Listener.MaxConns is -1: want 0, for no limit`:      {Pools: []proxy.Pool{web}, Listeners: []proxy.Listener{{Network: "tcp", Address: ":1", MaxConns: -1}}},
		`there are two listeners tcp://:1: want one`:                            {Pools: []proxy.Pool{web}, Listeners: []proxy.Listener{{Network: "tcp", Address: ":1"}, {Network: "tcp", Address: ":1"}}},
		`listener udp://:1: the network is "udp": want tcp, tcp4, tcp6 or`:      {Pools: []proxy.Pool{web}, Listeners: []proxy.Listener{{Network: "udp", Address: ":1"}}},
	} {
		var s proxy.Server
		if err := s.Apply(c); err == nil || !strings.HasPrefix(err.Error(), "proxy: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Apply: %v, want %q", err, want)
		}
		if s.Engine != nil {
			t.Errorf("%s: Apply has started an engine", want)
		}
	}
}

// Without an AccessLog nothing is written, and idle times hold.
func TestIdleAndLimit(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.proxy.AccessLog = nil
	w.serve(2)
	w.apply(proxy.Pool{Targets: to(2), Idle: time.Minute})
	c := w.client(2)
	w.Advance(50 * time.Second)
	c.Send("x")
	c.Expect("x")
	w.Advance(50 * time.Second)
	if w.pool().Targets[0].Open != 1 {
		t.Error("a busy connection was closed")
	}
	w.Advance(15 * time.Second)
	w.refused(c)
	w.apply(proxy.Pool{Targets: to(2), Limit: time.Minute})
	c = w.client(2)
	w.Advance(61 * time.Second)
	w.refused(c)
	w.idle()
	if w.access.String() != "" {
		t.Errorf("the access log is %s", w.access.String())
	}
}
